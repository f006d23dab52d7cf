"""Plain tables: one line per row, never wider than the window, whatever stands in a name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.screen.layout import Heading, Paper, cells, cut, table

HEADINGS = (Heading("name", cuttable=True), Heading("cores", number=True), Heading("report", spare=1))


def test_columns_are_aligned_numbers_to_the_right() -> None:
    lines, missing = table(HEADINGS, [("a", "8", "fresh"), ("longer", "16", "stale")], Paper())
    assert lines == ["name    cores  report", "a           8  fresh", "longer     16  stale"]
    assert missing == []


def test_names_are_cut_before_columns_are_left_out() -> None:
    rows = [("x" * 30, "8", "fresh")]
    lines, missing = table(HEADINGS, rows, Paper(width=24))
    assert (lines[1], missing) == ("xxxxxxxx~      8  fresh", [])
    lines, missing = table(HEADINGS, rows, Paper(width=20))
    assert (lines[1], missing) == ("xxxxxxxxxxxx~      8", ["report"])


@given(
    rows=st.lists(st.tuples(st.text(max_size=60), st.integers(0, 10**9).map(str), st.text(max_size=20)), max_size=5),
    width=st.integers(1, 100),
)
def test_no_line_is_wider_than_the_window(rows: list[tuple[str, str, str]], width: int) -> None:
    """Wide letters and combining marks included; every line can be printed."""
    lines, _ = table(HEADINGS, rows, Paper(width=width))
    assert len(lines) == len(rows) + 1
    assert all(cells(line) <= width and line.isprintable() for line in lines)


FOLDED = (Heading("pilot"), Heading("cores", number=True), Heading("because", folded=True))


def test_a_long_last_cell_is_folded_and_nothing_is_cut() -> None:
    """Where there is no window it stays one line."""
    rows = [("slot1@a", "8", "one two three four five six seven eight nine"), ("b", "16", "x" * 40)]
    lines, missing = table(FOLDED, rows, Paper(width=50))
    assert missing == []
    assert lines == [
        "pilot    cores  because",
        "slot1@a      8  one two three four five six seven",
        "                eight nine",
        f"b           16  {'x' * 40}",
    ]
    assert table(FOLDED, rows, Paper())[0][1].endswith("seven eight nine")


@given(words=st.lists(st.text("ab日", max_size=12), max_size=30), width=st.integers(1, 120))
def test_folding_loses_no_word(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines, _ = table(FOLDED, [("p", "1", text)], Paper(width=width))
    shown = " ".join(
        line.replace("p", "", 1).replace("1", "", 1) if not number else line for number, line in enumerate(lines[1:])
    )
    assert shown.split() == text.split()


def test_a_wide_letter_is_never_cut_in_half() -> None:
    assert [cut("日本語", width) for width in (6, 5, 4, 1)] == ["日本語", "日本~", "日~", "~"]

"""Plain tables: one line per row, never wider than the window, whatever stands in a name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.screen.layout import Heading, Paper, cells, cut, folded, noted_table, table

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


def test_a_number_is_never_cut_its_column_goes() -> None:
    """Also where no column is called spare: from the right, the name stays."""
    plain = (Heading("name", cuttable=True), Heading("ordered", number=True), Heading("wasted", number=True))
    rows = [("x" * 30, "12345", "98765 core-h")]
    for width, left in ((40, []), (28, ["wasted"]), (16, ["ordered", "wasted"]), (3, ["ordered", "wasted"])):
        lines, missing = table(plain, rows, Paper(width=width))
        assert (missing, all(len(line) <= width for line in lines)) == (left, True)
        assert all(number in lines[1] for number in ("12345", "98765 core-h")[: 2 - len(left)])
        assert lines[1].count("~") == 1


def test_a_sentence_stands_below_its_row_or_at_its_end() -> None:
    """Folded between words in a window; a column where there is none."""
    headings = (Heading("pilot", cuttable=True), Heading("cores", number=True))
    rows, notes = [("slot1@a", "8"), ("b", "16")], ["one two three four five six seven", ""]
    assert noted_table(headings, rows, notes, Paper(width=26), "because") == (
        ["pilot    cores", "slot1@a      8", "    one two three four", "    five six seven", "b           16"],
        [],
    )
    assert noted_table(headings, rows, notes, Paper(), "because")[0][:2] == [
        "pilot    cores  because",
        "slot1@a      8  one two three four five six seven",
    ]


@given(words=st.lists(st.text("ab日", min_size=1, max_size=12), max_size=30), width=st.integers(24, 120))
def test_folding_loses_no_word(words: list[str], width: int) -> None:
    lines = folded(" ".join(words), Paper(width=width))
    assert " ".join(lines).split() == words
    assert all(cells(line) <= width for line in lines)


def test_a_wide_letter_is_never_cut_in_half() -> None:
    assert [cut("日本語", width) for width in (6, 5, 4, 1)] == ["日本語", "日本~", "日~", "~"]

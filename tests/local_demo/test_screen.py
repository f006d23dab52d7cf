"""The table on a terminal says at a glance who is ordered to end and why, in any window."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from drainwise.pool.facts import Account
from local_demo.frame import GONE, ORDERED, SPARED, WAITS, Frame, Row
from local_demo.screen import Screen, picture
from local_demo.timeline import Freed

ROWS = (
    Row("p1", "alice", 8, 6.0, 12, 24, 80, ORDERED, "ordered: gone by itself, would waste 24; 19 s to go"),
    Row("p2", "alice", 16, 16.0, 130, 364, 28, SPARED, "spared: asking would waste 90"),
    Row("p3", "alice", 4, mood=GONE, word="gone after 5 s, wasted 3: 3 idle, 0 lost"),
    Row("b1", "bob", 8, mood=WAITS, word="waits for its cores"),
)
ACCOUNTS = (Account("alice", 24, 16, 0, 150), Account("bob", 0, 8, 8, 0, 8))
FRAME = Frame("the cheapest drain", 26.0, 32, ACCOUNTS, ROWS, (Freed(5.0, 4),), 12, 6.0, 24.0)


def drawn(width: int, frame: Frame = FRAME) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(picture(frame, "heading", ["20.0 s  bob arrives"]))
    return out.getvalue().splitlines()


def test_all_is_seen_at_once() -> None:
    lines = drawn(120)
    [ordered] = [line for line in lines if line.startswith("p1")]
    for words in ("6/8", "12 s", " 24 ", " 80 ", "ordered: gone by itself, would waste 24; 19 s to go"):
        assert words in ordered
    assert any("alice" in line and "24 cores, owed 16" in line and "waits for 8" in line for line in lines)
    assert any("4 of 12, 6 s of 24 s grace" in line and "▃" in line for line in lines)
    assert any("Ctrl-C stops it" in line for line in lines)


@pytest.mark.parametrize("width", [120, 100, 80, 40])
def test_no_line_is_wider_than_the_window_and_none_is_folded(width: int) -> None:
    lines = drawn(width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= len(drawn(120))
    if width >= 80:
        assert any("6/8" in line and " 12 s " in line and " 24 " in line for line in lines)


def test_before_anybody_is_ordered_nothing_came_back() -> None:
    lines = drawn(120, Frame("alice fills the pool", 3.0, 32, ACCOUNTS, ROWS[:1]))
    assert any("no order was given yet" in line for line in lines)


def test_the_cursor_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen(1, 600) as screen:
        screen.say(1.0, "bob arrives")
        screen.show(FRAME)
    shown = capsys.readouterr().out
    assert "bob arrives" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")

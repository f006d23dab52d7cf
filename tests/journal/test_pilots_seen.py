"""What the journal remembers of pilots that end by themselves: looks, sums by user, and nothing lost by a crash."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from drainwise.journal.event import VERSION, Kind
from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory, Noted
from drainwise.reclaim.seen_pilots import MOST_USERS, PERIOD, WINDOW, EndsSeen

from .facts import NOW, RULES, Lines, orders, pilot, remembering, snapshot

OPEN = dataclasses.replace(RULES, policy="open-need")
SIX = [pilot(number, None) for number in range(4)] + [pilot(number, None, "ann", 4) for number in range(4, 6)]


def looking(memory: Memory, lines: Lines, *times_and_pilots: tuple[int, int]) -> None:
    """Look at each time, NOW + s, at the last so many of the six pilots."""
    noted = Noted(lines, memory)
    for time, there in times_and_pilots:
        for event in memory.looked(snapshot(*SIX[6 - there :]), NOW + time, OPEN):
            noted.write(event)


def test_ends_are_counted_by_user() -> None:
    memory, lines = Memory(), Lines()
    looking(memory, lines, (0, 6), (600, 5), (PERIOD, 3), (PERIOD + 60, 2), (2 * PERIOD, 1))
    assert [event["event"] for event in lines.events] == [Kind.PILOTS] * 3, "no more than a look each half hour"
    assert memory.history(NOW + 2 * PERIOD).ends == {
        "alice": EndsSeen(32, (32 + 8) / 2 * PERIOD + 4 * PERIOD),
        "ann": EndsSeen(4, 8 * PERIOD + 6 * PERIOD),
    }


def test_an_agent_that_is_killed_at_any_moment_has_lost_nothing(tmp_path: Path) -> None:
    memory, lines = Memory(), Lines()
    path = tmp_path / "journal"
    for number in range(5):
        path.write_text(lines.text)
        memory = Memory.load([str(path)], NOW + PERIOD * number)
        looking(memory, lines, (PERIOD * number, 6 - number))
    assert memory.history(NOW + 4 * PERIOD).ends["alice"].cores == 32


def test_by_another_policy_nobody_looks() -> None:
    assert Memory().looked(snapshot(*SIX), NOW, RULES) == []


def test_who_got_an_order_and_left_did_not_end_by_itself() -> None:
    """Two of three are ordered, and all three are gone at the next look."""
    memory = Memory()
    [look] = memory.looked(snapshot(*(pilot(number, None) for number in range(1, 4))), NOW - 60, OPEN)
    for event in (look, *orders()):
        memory.note(event)
    [look] = memory.looked(snapshot(pilot(9, None, "bob")), NOW - 60 + PERIOD, OPEN)
    memory.note(look)
    assert memory.history(NOW + PERIOD).ends["alice"].cores == 8


def test_what_is_older_than_the_window_is_forgotten() -> None:
    memory, lines = Memory(), Lines()
    looking(memory, lines, (0, 6), (PERIOD, 3))
    assert "alice" in memory.history(NOW + PERIOD + WINDOW - 1).ends
    assert memory.history(NOW + PERIOD + WINDOW).ends == {}


def test_a_look_stays_small_whoever_runs() -> None:
    many = [pilot(number, None, f"user{number % 1000}", 1 + number % 3) for number in range(3000)]
    [event] = Memory().looked(snapshot(*many), NOW, OPEN)
    assert len(journal_line(event)) < 100 * MOST_USERS
    memory = remembering(event)
    [event] = memory.looked(snapshot(*many[:1500]), NOW + PERIOD, OPEN)
    assert len(journal_line(event)) < 100 * MOST_USERS


@pytest.mark.parametrize("wrong", [{"cores": -1}, {"core_seconds": -1}, {"ended": "8"}, {"user": 7}, {"cores": 8.5}])
def test_a_look_that_is_not_sound_is_refused(wrong: dict[str, object]) -> None:
    row = {"user": "alice", "cores": 8, "ended": 0, "core_seconds": 0, **wrong}
    with pytest.raises(ValueError, match="expected"):
        remembering({"event": Kind.PILOTS, "version": VERSION, "time": NOW, "users": [row]})

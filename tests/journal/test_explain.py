"""Why was my pilot ordered to go? Answered from the journal, by any of the names that a user knows."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from drainwise.facts.units import clock
from drainwise.journal.entries import withdrawal_event
from drainwise.journal.event import Outcome
from drainwise.journal.explain import Sought, explain, in_words, names_of
from drainwise.journal.file import journal_line
from drainwise.journal.memory import ended_events
from drainwise.pool.facts import Ending
from drainwise.reclaim.plan import Withdrawal

from .facts import BEFORE, FIRST, NOW, SECOND, THIRD, Lines, decision, ordered, orders, remembering, snapshot


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """The first pilot was ordered and left, the second was ordered and went on; the order before had failed."""
    lines, given = Lines(), orders(now=NOW + 60)
    refused = orders(snapshot(FIRST, deficit=8), outcome=Outcome.FAILED)
    memory = remembering(*given)
    after = snapshot(ordered(FIRST), ordered(SECOND), THIRD)
    ended = ended_events(memory, {FIRST.run: Ending(FIRST.run, NOW + 2060, False)}, after, NOW + 2100)
    gone = withdrawal_event(
        Withdrawal(ordered(SECOND), 5, "nobody waits for these cores any more"), Outcome.DONE, "", NOW + 900
    )
    for event in (decision(), *refused, decision(now=NOW + 60), *given, gone, *ended):
        lines.write(event)
    path = tmp_path / "journal"
    path.write_text("junk\n" + lines.text)
    return str(path)


def words(journal: str, called: str) -> str:
    return "\n\n".join("\n".join(in_words(one)) for one in explain([journal], Sought(called)))


@pytest.mark.parametrize(
    ("outcome", "head"),
    [
        (Outcome.UNANSWERED, "ordered to end by {}; nobody answered, and the order may have been carried out"),
        (Outcome.NOT_DONE, "not ordered; it was to end by {}"),
        (Outcome.DENIED, "not ordered; it was to end by {}"),
    ],
)
def test_an_order_that_nobody_answered_is_said_once_with_what_became_of_it(
    tmp_path: Path, outcome: str, head: str
) -> None:
    [event] = orders(snapshot(FIRST, deficit=8), outcome=Outcome.UNANSWERED)
    path = tmp_path / "journal"
    later = [] if outcome == Outcome.UNANSWERED else [{**event, "outcome": outcome, "found": NOW + 90}]
    path.write_text("".join(journal_line(one) for one in (decision(), event, *later)))
    lines = words(str(path), FIRST.run).splitlines()
    assert [line for line in lines if "to end by" in line] == [
        f"  {clock(NOW)}  {head.format(f'{clock(NOW + 2900)} (48m20s)')}"
    ]
    path.write_text(path.read_text() + journal_line({**event, "outcome": Outcome.DONE, "found": NOW + 120}))
    assert f"  {clock(NOW)}  ordered to end by {clock(NOW + 2900)} (48m20s)" in words(str(path), FIRST.run)
    assert words(str(path), FIRST.run).count("to end by") == 1


def test_it_says_who_waited_and_which_figures_decided(journal: str) -> None:
    said = words(journal, "slot1_1@node1")
    assert said.splitlines()[:2] == [
        "slot1_1@node1: alice of group_a, 8 cores on node1, running since 2026-11-21 02:43:20Z",
        f"  run {FIRST.run}",
    ]
    assert "owed cores: group_b (16); 0 were free, 0 on their way already" in said
    assert "group_a is over its quota, alice gives back 16 of it" in said
    assert "least-waste: leaves by itself in 32m20s: " in said and "for the chance that it does not leave" in said
    assert "leaving by itself by 2026-11-21 09:05:00Z wastes 0.867 core-h; being killed by" in said
    assert "2 ordered and 1 spared in the same decision; the next would have been slot1_3@node1: not needed" in said


def test_it_tells_every_time_and_how_it_ended(journal: str) -> None:
    said = words(journal, "slot1_1@node1")
    assert "2026-11-21 08:16:40Z  not ordered; it was to end by 2026-11-21 09:05:00Z (48m20s)" in said
    assert "note    said failed" in said
    assert "2026-11-21 08:17:40Z  ordered to end by 2026-11-21 09:05:00Z (47m20s)" in said
    assert "2026-11-21 08:51:00Z  left by itself, 14m before its deadline, 33m20s after its order" in said
    assert "wasted  0.133 core-h; 0.000 core-h promised; at most 49.0 core-h could be lost" in said
    assert "the order was withdrawn: nobody waits for these cores any more" in words(journal, "slot1_2@node1")


def test_a_pilot_that_was_only_spared_is_explained_too(journal: str) -> None:
    said = words(journal, "3.0")
    assert "2026-11-21 08:17:40Z  spared (2 times in all): not needed; with an order: leaves by itself in" in said


@pytest.mark.parametrize("called", ["slot1_1@node1", "1.0", "1", FIRST.run, FIRST.run.rpartition("@")[0]])
def test_a_pilot_is_found_by_each_of_its_names(journal: str, called: str) -> None:
    assert [one.run for one in explain([journal], Sought(called))] == [FIRST.run]


@pytest.mark.parametrize("called", ["", "slot1_1", "ce", "alice", "11", "1.1", "node1", "@"])
def test_nobody_is_shown_another_pilot(journal: str, called: str) -> None:
    """A name counts whole: slot1_1 is not slot1_10, and what several pilots share names none of them."""
    assert explain([journal], Sought(called)) == []


def test_the_names_of_jobs() -> None:
    assert names_of("12_3@1795249000", "12_3") == {"12_3@1795249000", "12_3"}
    assert {"ce#7.1#5", "7.1", "7"} < names_of("ce#7.1#5@9", "slot1@n")


def test_a_decision_that_was_rotated_away_hides_no_order(tmp_path: Path) -> None:
    lines = Lines()
    for event in orders(BEFORE):
        lines.write(event)
    (tmp_path / "journal").write_text(lines.text)
    assert "why     16 cores had to be given back\n" in words(str(tmp_path / "journal"), "1.0")


@pytest.mark.parametrize("acting", [True, False])
def test_a_long_journal_is_read_in_little_memory(tmp_path: Path, acting: bool) -> None:
    """A short name stands in each decision of months; one of them is kept at a time."""
    path, size = tmp_path / "journal", 200_000
    event = {**decision(acting=acting), "summary": "1.0" * (size // 3)}
    path.write_text("".join(journal_line({**event, "taken": NOW + number}) for number in range(60)))
    tracemalloc.start()
    found = explain([str(path)], Sought("1"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == []
    assert peak < 10 * size

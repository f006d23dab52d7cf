"""Pilots are asked for parts of their cores, as the plan has it and where the batch system can lend them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.agent.act import carry_out
from drainwise.agent.cycle_facts import CycleBasis, CycleOutcome
from drainwise.facts.errors import ActionRefused, PoolError, RightsRefused, RunEnded
from drainwise.journal.explain import Sought, as_json, explain, in_words
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from memory_pool import MemoryPool

from .facts import NOW, SETTINGS, pilot, report, snapshot


class Events:
    """A journal that keeps its events."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []

    def write(self, event: dict[str, object]) -> None:
        self.events.append(event)


class LendingPool(MemoryPool):
    """A pool that can lend what pilots return."""

    def __init__(self, *snapshots: Snapshot) -> None:
        super().__init__(*snapshots)
        self.wishes: list[tuple[str, PartialReturn]] = []

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:
        self.called("ask_for_part", pilot.run)
        self.wishes.append((pilot.run, wish))


def able(number: int, node: str, **more: int) -> Pilot:
    """A pilot that can return what it holds but one core; its payloads end within the horizon."""
    one = replace(pilot(number, report(8.0, first_end=NOW + 2000, uncommitted=9e4)), node=node, can_return=7)
    return replace(one, **more)  # type: ignore[arg-type]


def carried_out(pool: MemoryPool, before: Snapshot) -> tuple[CycleOutcome, list[dict[str, object]]]:
    journal = Events()
    plan = make_plan(before, NOW, SETTINGS)
    basis = CycleBasis(before, NOW, SETTINGS, History())
    return carry_out(plan, basis, pool, lambda: NOW, journal), journal.events  # type: ignore[arg-type]


FIRST, SECOND = able(1, "n1"), able(2, "n2")
UNTIL = NOW + SETTINGS.horizon


def test_each_pilot_is_asked_for_its_part_in_all() -> None:
    """What it has returned counts in; the journal has the wish, and nobody is ordered to end."""
    second = replace(SECOND, returned=1, asked=1)
    before = snapshot(FIRST, second, deficit=5)
    pool = LendingPool(before)
    done, events = carried_out(pool, before)
    assert pool.wishes == [(FIRST.run, PartialReturn(5, UNTIL)), (SECOND.run, PartialReturn(6, UNTIL))]
    assert pool.orders == [] and done.exit_code == 0
    assert [(one["event"], one["outcome"], one["asked"], one["returned"]) for one in events] == [
        ("part", "done", 5, 0),
        ("part", "done", 6, 1),
    ]


def test_what_stands_is_not_asked_again() -> None:
    before = snapshot(replace(FIRST, asked=5), deficit=5)
    pool = LendingPool(before)
    assert carried_out(pool, before)[0].parts == () and pool.wishes == []


def test_a_pilot_of_which_nothing_is_needed_is_told() -> None:
    """As long as others wait it keeps away from what it has returned; then it may have all again."""
    idle = replace(FIRST, returned=2, asked=6)
    for deficit, free, asked in ((5, 5.0, 2), (0, 0.0, 0)):
        before = snapshot(idle, deficit=deficit, free=free)
        pool = LendingPool(before)
        carried_out(pool, before)
        assert pool.wishes == [(FIRST.run, PartialReturn(asked))]


def test_a_pool_that_cannot_lend_is_not_asked() -> None:
    """Whatever a snapshot says."""
    before = snapshot(FIRST, deficit=5)
    assert carried_out(MemoryPool(before), before)[0].parts == ()


def test_a_run_that_ended_or_goes_is_passed_over_and_so_is_all_when_nobody_waits() -> None:
    before = snapshot(FIRST, SECOND, deficit=5)
    for after in (snapshot(replace(SECOND, deadline=NOW + 60), deficit=5), snapshot(FIRST, SECOND, deficit=0)):
        pool = LendingPool(after)
        done, _ = carried_out(pool, before)
        assert pool.wishes == [] and {one.outcome for one in done.parts} == {"skipped"}


@pytest.mark.parametrize(
    ("fault", "became"),
    [(RunEnded("gone"), "skipped"), (ActionRefused("no"), "refused"), (RightsRefused("no"), "denied")],
)
def test_one_that_fails_does_not_stop_the_others(fault: PoolError, became: str) -> None:
    before = snapshot(FIRST, SECOND, deficit=5)
    pool = LendingPool(before)
    pool.faults[FIRST.run] = fault
    done, _ = carried_out(pool, before)
    assert [one.outcome for one in done.parts] == [became, "done"]
    assert done.exit_code == (0 if became == "skipped" else 1)


def test_the_journal_explains_what_a_pilot_was_asked_for(tmp_path: Path) -> None:
    """A run that got nothing but wishes is known; of many wishes the last are shown."""
    before = snapshot(FIRST, deficit=5)
    _, [event] = carried_out(LendingPool(before), before)
    journal = tmp_path / "journal"
    journal.write_text("".join(json.dumps({**event, "time": NOW + cycle}) + "\n" for cycle in range(7)))
    [found] = explain([str(journal)], Sought(FIRST.run))
    lines = in_words(found)
    assert lines[2] == "  asked to return cores 7 times; the last are"
    assert (
        len(lines) == 8 and "asked to have returned 5 cores in all; it had returned 0: returns 5 of its 8" in lines[-1]
    )
    assert len(as_json([found])[0]["parts"]) == 7  # type: ignore[arg-type]

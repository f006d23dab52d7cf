"""Parts in the agent's cycles: each pilot is asked once, what it returns is written down, and faults stay small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals, Cycle
from drainwise.facts.errors import ActionRefused, PoolError, PoolUnreachable, RightsRefused, RunEnded
from drainwise.journal.event import Outcome
from drainwise.journal.memory import Memory
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Pilot, Snapshot

from .memory_pool import CORES, NOW, SETTINGS, AlicesPool, Lines


class LendingPool(AlicesPool):
    """Its pilots can return all cores but one; bob waits for jobs of one core."""

    def __init__(self, pilots: int = 2, wanted: int = 8) -> None:
        super().__init__(pilots, wanted)
        self.pilots = {run: replace(one, can_return=CORES - 1) for run, one in self.pilots.items()}
        self.wishes: list[tuple[str, PartialReturn]] = []

    def snapshot(self, now: int) -> Snapshot:
        """With smaller jobs."""
        found = super().snapshot(now)
        return replace(found, accounts=tuple(replace(one, cores_per_job=1.0) for one in found.accounts))

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:
        """Keep the wish."""
        assert reason
        self.called("ask_for_part", pilot.run)
        self.wishes.append((pilot.run, wish))
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], asked=wish.cores)

    def give_back(self, run: str, cores: int) -> None:
        """This pilot has returned so many, and bob has them."""
        held = CORES - cores
        self.pilots[run] = replace(self.pilots[run], cores=held, returned=cores, can_return=held - 1)
        self.wanted -= cores


def cycle(
    pool: LendingPool, memory: Memory, journal: Lines, now: int = NOW, confirmed: ConfirmedWithdrawals | None = None
) -> Cycle:
    """One that acts."""
    return AgentCycle(pool, SETTINGS, memory, journal, lambda: now, acting=True, confirmed=confirmed).run()


def test_a_pilot_is_asked_once_and_what_it_returns_is_written_down() -> None:
    """It goes on; when nobody waits any more it is asked for nothing."""
    pool, memory, journal = LendingPool(), Memory(), Lines()
    for step in range(2):
        assert cycle(pool, memory, journal, NOW + 60 * step).fault == ""
    runs = [run for run, _ in pool.wishes]
    assert (len(set(runs)), len(runs), pool.acts) == (2, 2, [])
    assert {wish for _, wish in pool.wishes} == {PartialReturn(CORES - 1, NOW + SETTINGS.horizon, 1)}
    for run, cores in zip(runs, (5, 3)):
        pool.give_back(run, cores)
    cycle(pool, memory, journal, NOW + 120)
    cycle(pool, memory, journal, NOW + 180)
    assert sorted(pool.wishes[2:]) == [(run, PartialReturn(0)) for run in sorted(runs)]
    assert journal.kinds().count("part") == 4
    seen = [one for event in journal.events if event["event"] == "returned" for one in event["pilots"]]  # type: ignore[attr-defined]
    assert sorted(one["returned"] for one in seen) == [3, 5]


def test_a_loop_asks_for_less_only_when_it_found_that_for_half_a_minute() -> None:
    """The demand may be gone for a moment, as when a job has started in cores that are shown as free still."""
    pool, memory, confirmed = LendingPool(1, wanted=6), Memory(), ConfirmedWithdrawals()
    asked = []
    steps = ((0, 6), (60, 0), (120, 6), (180, 4), (240, 6), (300, 4), (329, 4), (330, 4), (360, 4), (400, 0), (430, 0))
    for time, wanted in steps:
        pool.wanted = wanted
        cycle(pool, memory, Lines(), NOW + time, confirmed)
        asked.append(pool.wishes[-1][1].cores)
    assert asked == [6] * 7 + [4, 4, 4, 0]


def test_what_was_counted_on_is_read_back_until_the_time_of_the_wish_is_over(tmp_path: Path) -> None:
    """From the journal's file, as an agent does that was started anew."""
    pool, journal, path = LendingPool(1, wanted=6), Lines(), tmp_path / "journal"
    cycle(pool, Memory(), journal)
    path.write_text("".join(json.dumps({**event, "v": 1}) + "\n" for event in journal.events))
    [run] = pool.pilots
    due = NOW + SETTINGS.horizon
    assert Memory.load([str(path)], NOW).history(due - 1).counted == {run: 6}
    assert Memory.load([str(path)], NOW).history(due).counted == {}


@pytest.mark.parametrize(
    ("fault", "outcome", "tries"),
    [
        (RunEnded("gone"), Outcome.SKIPPED, 2),
        (ActionRefused("no"), Outcome.REFUSED, 1),
        (RightsRefused("no"), Outcome.DENIED, 1),
        (PoolUnreachable("no"), Outcome.UNREACHABLE, 1),
    ],
)
def test_a_node_that_takes_no_wish_is_left_alone_until_the_next_cycle(
    fault: PoolError, outcome: str, tries: int
) -> None:
    """Both pilots are on the same node; a run that has gone says nothing of its node."""
    pool, journal = LendingPool(), Lines()
    pool.faults["ask_for_part"] = fault
    done = cycle(pool, Memory(), journal)
    assert done.outcome is not None and pool.acts == []
    assert [one.outcome for one in done.outcome.parts] == ([outcome] * tries + [Outcome.SKIPPED])[:2]
    assert [event["outcome"] for event in journal.events if event["event"] == "part"] == [
        one.outcome for one in done.outcome.parts
    ]

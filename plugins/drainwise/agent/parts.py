"""Ask pilots for parts of their cores, as a plan has it: each run is looked at again first, and what stands is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from drainwise.agent.act_outcome import ON_ITS_WAY, RUN_GONE, PartAct, outcome_of
from drainwise.facts.errors import PoolError, RunEnded
from drainwise.journal.entries import part_event
from drainwise.journal.event import DONE, SKIPPED
from drainwise.journal.file import Journal
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import LendsParts
from drainwise.pool.facts import Pilot, Pool
from drainwise.reclaim.parts.part_plans import still_asked
from drainwise.reclaim.plan import Plan

_NO_MORE = "no more of its cores are needed"


@dataclass(frozen=True)
class _Wish:
    pilot: Pilot
    asked: PartialReturn
    reason: str
    waste: int
    counted: int = 0


def is_to_ask(plan: Plan) -> bool:
    """Return whether a plan asks any pilot for other than it was asked for."""
    return bool(plan.asked_no_more) or any(not one.stands for one in plan.returns)


def ask_for_parts(
    plan: Plan,
    pool: Pool,
    running: Mapping[str, Pilot],
    demand: float,
    time: Callable[[], int],
    journal: Journal,
    stopping: Callable[[], bool],
) -> tuple[PartAct, ...]:
    """Ask for the parts of a plan; `running` are the pilots of a second snapshot, in which `demand` cores are owed.

    A wish that asks for less comes first. A node that does not answer, or refuses whoever asks, is asked no more in
    this cycle; nothing depends on a part, since each cycle decides on all of them anew.
    """
    if not isinstance(pool, LendsParts):
        return ()
    acts, avoided = [], dict[str, str]()
    for wish in _wishes(plan, demand):
        if stopping():
            break
        act = _ask(wish, pool, running.get(wish.pilot.run), demand, avoided)
        became = act.outcome, act.detail, wish.reason, wish.waste
        journal.write(part_event(wish.pilot, wish.asked, *became, time(), wish.counted))
        acts.append(act)
    return tuple(acts)


def _wishes(plan: Plan, demand: float) -> Iterator[_Wish]:
    for pilot in plan.asked_no_more:
        yield _Wish(pilot, PartialReturn(still_asked(pilot, demand)), _NO_MORE, 0)
    for one in plan.returns:
        if not one.stands:
            counted = one.pilot.returned + one.counted
            yield _Wish(one.pilot, PartialReturn(one.in_all, one.by, one.chunk), one.reason, one.waste, counted)


def _ask(wish: _Wish, pool: LendsParts, current: Pilot | None, demand: float, avoided: dict[str, str]) -> PartAct:
    pilot, cores = wish.pilot, wish.asked.cores
    if current is None or (current.node, current.account, current.user) != (pilot.node, pilot.account, pilot.user):
        return PartAct(pilot, cores, SKIPPED, RUN_GONE)
    if current.deadline is not None or current.leaving or current.unanswered is not None:
        return PartAct(pilot, cores, SKIPPED, ON_ITS_WAY)
    if cores > current.asked and demand <= 0:
        return PartAct(pilot, cores, SKIPPED, "nobody is owed cores any more")
    if current.node in avoided:
        return PartAct(pilot, cores, SKIPPED, avoided[current.node])
    try:
        pool.ask_for_part(current, wish.asked, wish.reason)
    except PoolError as fault:
        if not isinstance(fault, RunEnded):
            avoided[current.node] = f"{current.node} did not take another wish just now"
        return PartAct(pilot, cores, outcome_of(fault), str(fault))
    return PartAct(pilot, cores, DONE, f"asked to have returned {cores} cores in all")

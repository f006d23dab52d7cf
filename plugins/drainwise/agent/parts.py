"""Ask pilots for parts of their cores, as a plan has it: each run is looked at again first, and what stands is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from drainwise.agent.act_outcome import ON_ITS_WAY, RUN_GONE, Act, PartWish, outcome_of
from drainwise.agent.second_look import SecondLook, takes_orders
from drainwise.facts.errors import PoolError, RunEnded
from drainwise.journal.entries import part_event
from drainwise.journal.event import DONE, SKIPPED
from drainwise.journal.file import Journal
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import LendsParts
from drainwise.pool.facts import Pool
from drainwise.reclaim.parts.part_plans import still_asked
from drainwise.reclaim.plan import Plan

_OWNER = attrgetter("node", "account", "user")


def is_to_ask(plan: Plan) -> bool:
    """Return whether a plan asks any pilot for other than it was asked for."""
    return bool(plan.asked_no_more) or any(not one.stands for one in plan.returns)


def ask_for_parts(
    plan: Plan,
    pool: Pool,
    look: SecondLook,
    time: Callable[[], int],
    journal: Journal,
    stopping: Callable[[], bool],
) -> tuple[Act[PartWish], ...]:
    """Ask for the parts of a plan, by a second look.

    A wish that asks for less comes first. A node that does not answer, or refuses whoever asks, is asked no more in
    this cycle; nothing depends on a part, since each cycle decides on all of them anew.
    """
    if not isinstance(pool, LendsParts):
        return ()
    acts, avoided = list[Act[PartWish]](), dict[str, str]()
    for wish in _wishes(plan, look.demand):
        if stopping():
            break
        act = _ask(wish, pool, look, avoided)
        became = act.outcome, act.detail, wish.reason, wish.waste
        journal.write(part_event(wish.pilot, wish.asked, *became, time(), wish.counted))
        acts.append(act)
    return tuple(acts)


def _wishes(plan: Plan, demand: float) -> Iterator[PartWish]:
    for pilot in plan.asked_no_more:
        yield PartWish(pilot, PartialReturn(still_asked(pilot, demand)), "no more of its cores are needed")
    for one in plan.returns:
        if not one.stands:
            counted = one.pilot.returned + one.counted
            yield PartWish(one.pilot, PartialReturn(one.in_all, one.by, one.chunk), one.reason, one.waste, counted)


def _ask(wish: PartWish, pool: LendsParts, look: SecondLook, avoided: dict[str, str]) -> Act[PartWish]:
    current, cores = look.running.get(wish.pilot.run), wish.asked.cores
    if current is None or _OWNER(current) != _OWNER(wish.pilot):
        return Act(wish, SKIPPED, RUN_GONE)
    if not takes_orders(current):
        return Act(wish, SKIPPED, ON_ITS_WAY)
    if cores > current.asked and look.demand <= 0:
        return Act(wish, SKIPPED, "nobody is owed cores any more")
    if current.node in avoided:
        return Act(wish, SKIPPED, avoided[current.node])
    try:
        pool.ask_for_part(current, wish.asked, wish.reason)
    except PoolError as fault:
        if not isinstance(fault, RunEnded):
            avoided[current.node] = f"{current.node} did not take another wish just now"
        return Act(wish, outcome_of(fault), str(fault))
    return Act(wish, DONE, f"asked to have returned {cores} cores in all")

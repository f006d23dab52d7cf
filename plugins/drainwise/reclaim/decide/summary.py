"""Say in sentences what a plan does, and what jobs it could not make room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from drainwise.facts.units import core_hours
from drainwise.pool.facts import Pilot
from drainwise.pool.free_cores import Hole, WaitingJobs, usable_cores, whole_cores
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.counted_demand import Paused, Unplaced
from drainwise.reclaim.plan import UserPlan
from drainwise.reclaim.quota import Balance
from drainwise.room.choice import RoomMade


def with_requested(requested: Sequence[UserPlan], summary: str, is_for_demand: bool) -> str:
    """Return what is done for requests and nodes that close, then for those who wait."""
    orders = [order for part in requested for order in part.orders]
    if not orders:
        return summary if is_for_demand else "nothing is to be ordered for the request now"
    names = ", ".join(sorted({order.request for order in orders}))
    cores, waste = sum(order.pilot.cores for order in orders), sum(order.waste for order in orders)
    pilots = "1 pilot" if len(orders) == 1 else f"{len(orders)} pilots"
    words = f"{pilots} with {cores} cores for {names} at an expected waste of {core_hours(waste)}"
    return f"{words}; {summary}" if is_for_demand else words


def usable(freed: Iterable[Pilot], jobs: Iterable[WaitingJobs]) -> int:
    """Return the cores of those jobs that the cores of the `freed` pilots could hold, node by node.

    Not more is known: cores that are free already beside a pilot's may make a hole large enough.
    """
    nodes: Counter[str] = Counter()
    for pilot in freed:
        for one in pilot.pieces:
            nodes[one.node] += one.holds.cores
        if not pilot.pieces:
            nodes[pilot.node] += pilot.cores
    return usable_cores([Hole(cores, divisible=True) for cores in nodes.values()], jobs)


def summary_of(
    balance: Balance, chosen: Sequence[Pilot], waste: int, fitting: int | None, pauses: Sequence[Paused], held: int = 0
) -> str:
    """Return the sentence for `chosen` pilots that should waste `waste` core-seconds; fitting: as `usable` counts.

    held: cores of pilots that are better ordered later.
    """
    if balance.demand <= 0 and pauses:
        return "only demand that is paused waits: nothing to give back"
    if balance.demand <= 0:
        return "nobody under quota waits: nothing to give back"
    if not balance.over:
        return "nobody is over quota: nothing to give back"
    needed = whole_cores(balance.demand - balance.free - balance.leaving)
    if balance.deficit <= 0 < min(needed, sum(one.cores for one in balance.over)):
        return "cores that have just come back may serve those who wait: nothing to give back for now"
    if balance.deficit <= 0:
        return "enough cores are free or on their way out: nothing to give back"
    cores = sum(pilot.cores for pilot in chosen)
    who = "1 pilot gives" if len(chosen) == 1 else f"{len(chosen)} pilots give"
    text = f"{who} back {cores} of {balance.deficit} cores at an expected waste of {core_hours(waste)}"
    missing, scattered = balance.deficit - cores - held, 0 if fitting is None else min(cores, balance.deficit) - fitting
    if missing > 0:
        text += f"; {missing} cores are missing (limits of a cycle, or no pilot that fits)"
    if scattered > 0:
        text += f"; {scattered} of them lie in pieces too small for the jobs that wait"
    return text


def waiting_without_place(found: Sequence[Unplaced]) -> str:
    """Return the sentence where those wait for whom no place is known."""
    jobs, accounts = sum(one.jobs for one in found), sorted({one.account for one in found})
    verb = "waits" if jobs == 1 else "wait"
    return f"{_jobs(jobs)} of {', '.join(accounts)} {verb} for room, and it is not known where: nothing to give back"


def in_parts(pilots: int, cores: int) -> str:
    """Return what follows the sentence where pilots return parts; cores: that they are to return together."""
    if not pilots:
        return ""
    who = "1 pilot returns" if pilots == 1 else f"{pilots} pilots return"
    return f"; {who} {cores} cores as payloads end, and {'goes' if pilots == 1 else 'go'} on"


def room_summary(wait: int, made: RoomMade, orders: int, cores: int, waste: int) -> str:
    """Return the sentence for pilots that make room at an expected `waste` in core-seconds; wait: jobs without room."""
    served = sum(made.jobs.values())
    who = "1 pilot gives" if orders == 1 else f"{orders} pilots give"
    room = f"room for {served} of {wait} waiting {'job' if wait == 1 else 'jobs'}"
    text = f"{who} back {cores} cores: {room}, at an expected waste of {core_hours(waste)}"
    missing = sum(made.missing.values())
    return text + (
        f"; for {missing} no room can be made now (limits, quotas, or no pilots that fit)" if missing else ""
    )


def kind_notices(kinds: Sequence[JobKind], made: RoomMade | None) -> list[str]:
    """Return a sentence for each kind that can run nowhere, and for each for which no room can be made."""
    found = []
    for kind in kinds:
        example = f", such as {kind.example}" if kind.example else ""
        whose = f"{_jobs(kind.jobs)} of {kind.account} ({kind.in_words()}{example})"
        if not kind.classes:
            found.append(f"{whose} fit no node of the pool: no pilot goes for them")
        elif made is not None and (missing := made.missing.get(kind.name, 0)):
            found.append(f"no room can be made now for {missing} of {whose}")
    return found


def _jobs(number: int) -> str:
    return "1 waiting job" if number == 1 else f"{number} waiting jobs"

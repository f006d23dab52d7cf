"""Decide what one cycle would do and why: for requests first, then for those who wait.

Where the batch system tells what waits by kind and where that could start, pilots make room for those jobs, place by
place (`user_plans`). Elsewhere cores are counted, and the sentence says how many of them are of use as they lie.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from drainwise.common.garbage import without_collection
from drainwise.facts.units import core_hours
from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.free_cores import Hole, WaitingJobs, usable_cores, waiting_jobs, whole_cores
from drainwise.pool.job_kinds import JobKind
from drainwise.pool.notices import notices_of
from drainwise.pool.scope import is_out_of_scope, with_scope
from drainwise.reclaim.counted_demand import (
    Paused,
    Unplaced,
    intended_room,
    nodes_with_cores_back,
    paused,
    runs_beside,
    unplaced,
    weighed,
    with_untaken,
)
from drainwise.reclaim.decide.on_request import Requested, requested_plans
from drainwise.reclaim.decide.open_until import (
    coming,
    held_cores,
    open_until,
    room_now,
    waits_for_cheaper,
    with_ending_leases,
    within,
)
from drainwise.reclaim.decide.parts import asked_no_more, parts_count, with_all_asked
from drainwise.reclaim.decide.standing import needed_runs, with_replacements, withdrawals
from drainwise.reclaim.decide.user_plans import user_plans, within_hour
from drainwise.reclaim.history import History, refusing_nodes, unbound, void_orders, with_unanswered
from drainwise.reclaim.plan import Order, Plan, UserPlan
from drainwise.reclaim.prices import policy_called
from drainwise.reclaim.quota import (
    Balance,
    WhatIf,
    balance_for,
    on_their_way,
    owed,
    require_whole,
    with_far_ends,
    with_turns,
    without_limits,
)
from drainwise.reclaim.room import DemandLeft, RoomMade, demand_left, room_facts
from drainwise.reclaim.seen_pilots import stuck_pilots, with_expected_ends, with_stuck
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, UnmetDemand, for_whom


@without_collection()
def make_plan(
    snapshot: Snapshot,
    now: int,
    settings: ReclaimSettings,
    history: History | None = None,
    what_if: WhatIf | None = None,
    is_for_demand: bool = True,
) -> Plan:
    """Decide on a snapshot at `now` (UNIX s), knowing what `history` tells of earlier cycles.

    Pilots are ranked within one user only; who gives back, and how many cores, comes from what the batch system knows
    alone. With a `what_if` its cores are planned for, whatever the pool's own balance and the limits of a cycle are.
    The requests that stand and nodes that close come first; without `is_for_demand` nothing else is planned, and only
    orders are withdrawn for requests that were cancelled, and of jobs that are out of the scope now.
    Raises PoolUnreachable for a snapshot that is not whole and UsageError for a policy or user that does not exist.
    """
    policy_called(settings.policy)
    history = history or History()
    snapshot = with_scope(snapshot, settings.scope)
    snapshot = with_expected_ends(with_unanswered(snapshot, history.unanswered), history.run_times, now)
    snapshot = with_stuck(snapshot, now, settings.stuck)
    require_whole(snapshot)
    without_place = unplaced(snapshot, history.untaken, now, settings)
    snapshot = with_untaken(snapshot, history.untaken, history.unmet, now, settings)
    requested = requested_plans(snapshot, now, settings, history)
    if what_if is not None:
        return _what_if_plan(requested, what_if, now, settings, history)
    snapshot = within_hour(with_far_ends(requested.others, now, settings.horizon), history, now, settings)
    opened, seen = open_until(snapshot, now, settings, history), snapshot
    need = opened if settings.policy == OPEN_NEED else None
    until = opened if parts_count(snapshot, settings) else None
    snapshot = with_ending_leases(snapshot, need)
    looked = look_at(snapshot, history, now, settings)
    users: list[UserPlan] = []
    made: RoomMade | None = None
    if is_for_demand:
        bounds = within(settings, need, now)
        users, made = user_plans(snapshot, looked.balance, now, bounds, history, until, looked.left)
        users = waits_for_cheaper(snapshot, users, need, now, settings, history)
        users, made = (with_all_asked(users, until), None) if made is None else (users, room_now(made, users))
    orders = [order for user in users for order in user.orders]
    if made is None:
        parts = for_whom(looked.needs_orders, [one.pilot for one in orders], looked.balance.deficit, history.unmet)
    else:
        parts = for_kinds(orders)
    void = void_orders(snapshot, history)
    withdrawn = withdrawals(looked.counts, looked.balance, now, settings, history, looked.needed)
    pauses = paused(snapshot, history.unmet, now)
    named = [one.sentence for one in pauses] + [one.sentence for one in without_place]
    usable_cores, summary = _summed(looked, users, made, pauses)
    if without_place and (looked.balance.demand <= 0 or not looked.balance.over):
        summary = waiting_without_place(without_place)
    refusing = refusing_nodes(history.nodes, now)
    kinds = kind_notices(snapshot.kinds or (), made if looked.balance.deficit > 0 else None)
    plan = Plan(
        snapshot.taken,
        settings.policy,
        looked.balance,
        (*requested.plans, *users),
        tuple(one for one in withdrawn if is_for_demand or one.pilot.run in void),
        usable_cores,
        summary=with_requested(requested.plans, summary, is_for_demand),
        notices=(
            *([refusing] if refusing else []),
            *requested.faults,
            *coming(seen, snapshot, need),
            *notices_of(snapshot, [*named, *kinds]),
        ),
        closed_nodes=_closed_nodes(requested.others),
        stuck=len(stuck_pilots(seen, now, settings.stuck)),
        waiting={one.name: cores for one in looked.counts.accounts if (cores := owed(one)) > 0},
        parts=parts,
        paused=pauses,
        unplaced=without_place,
        since=opened.since if need or until else None,
        asked_no_more=asked_no_more(seen.pilots, users, looked.balance.demand) if is_for_demand else (),
        missing=None if looked.left is None else jobs_of(looked.left),
    )
    # Where something else changes for those who wait, nothing is replaced.
    others = plan.withdrawals or any(not order.request for order in plan.orders)
    if need is None or not is_for_demand or others:
        return plan
    return with_replacements(plan, looked.waits, snapshot, now, settings, history)


def _summed(
    looked: Looked, users: Sequence[UserPlan], made: RoomMade | None, pauses: Sequence[Paused]
) -> tuple[int, str]:
    """Return how many cores are of use as they lie, and the sentence that sums up what those who wait get.

    made: the room, None where cores are counted.
    """
    orders = [order for user in users for order in user.orders]
    pilots, parts = [order.pilot for order in orders], [one for user in users for one in user.returns]
    waste = sum(one.waste for one in orders) + sum(one.waste for one in parts)
    given = sum(pilot.cores for pilot in pilots)
    returned, held = sum(user.cores_returned for user in users), held_cores(users)
    if looked.left is not None and made is not None and looked.balance.deficit > 0:
        fitting = min(given, cores_of(looked.left, made.jobs))
        text = room_summary(sum(jobs_of(looked.left).values()), made, len(pilots), given, waste)
        text = text if pilots or made.missing or not parts else "no pilot has to go"
    else:
        fitting = usable(pilots, waiting_jobs(looked.counts.accounts))
        text = summary_of(looked.balance, pilots, waste, fitting, pauses, held + returned)
    waits = [f"; for {held} cores it {user.limit}" for user in users if user.held]
    return fitting, text + in_parts(len(parts), returned) + "".join(waits[:1])


def _what_if_plan(requested: Requested, what_if: WhatIf, now: int, settings: ReclaimSettings, history: History) -> Plan:
    """Return the plan for so many cores: whatever waits, without the limits of a cycle."""
    snapshot, settings, history = requested.others, without_limits(settings), unbound(history)
    balance = with_turns(balance_for(what_if, snapshot, now, settings), snapshot, history, now)
    users, _ = user_plans(snapshot, balance, now, settings, history)
    orders = [order for user in users for order in user.orders]
    summary = summary_of(balance, [one.pilot for one in orders], sum(one.waste for one in orders), None, ())
    return Plan(
        snapshot.taken,
        settings.policy,
        balance,
        (*requested.plans, *users),
        (),
        None,
        with_requested(requested.plans, summary, True),
        (*requested.faults, *notices_of(snapshot, [])),
        closed_nodes=_closed_nodes(snapshot),
    )


def _closed_nodes(snapshot: Snapshot) -> int:
    closed = (one for one in snapshot.pilots if one.cannot and not is_out_of_scope(one))
    return len({node for pilot in closed for node in pilot.nodes})


@dataclass(frozen=True)
class Looked:
    """What a snapshot says of those who wait: the demand that counts, and what of it needs orders.

    left: what waits by kind without room, None where cores are counted. needed: runs on their way out whose room a
    waiting job will use. waits: all that waits by kind, with what serves it.
    """

    counts: Snapshot
    needs_orders: Snapshot
    balance: Balance
    left: DemandLeft | None
    needed: frozenset[str] | None
    waits: DemandLeft | None = None


def look_at(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Looked:
    """Weigh a whole snapshot at `now` (UNIX s)."""
    counts, needs_orders, balance = weighed(snapshot, history.unmet, now, settings)
    balance = with_turns(balance, snapshot, history, now)
    if snapshot.kinds is None:
        return Looked(counts, needs_orders, balance, None, None)
    waits = without_room(counts, now, settings, history.unmet)
    needed = needed_runs(waits, snapshot.pilots, now, settings, history.unmet)
    needed |= runs_beside(counts, history.unmet, now, settings)
    left = waits if needs_orders is counts else without_room(needs_orders, now, settings, history.unmet)
    # Room may need more cores than the job has, where its memory or devices are what pilots hold.
    most = sum(one.most if balance.below_share else one.cores for one in balance.over)
    free = float(waits.served.free[:, 0].sum())
    balance = replace(balance, free=free, deficit=min(cores_of(left, jobs_of(left)), most))
    return Looked(counts, needs_orders, balance, left, needed, waits)


def without_room(
    snapshot: Snapshot, now: int, settings: ReclaimSettings, unmet: Mapping[str, UnmetDemand] = MappingProxyType({})
) -> DemandLeft:
    """Serve the kinds of a snapshot, with the demand that counts, from what is free and what returns; return the rest.

    unmet: what is remembered of the kinds, by name: for which of them room was made, and where.
    """
    owing = {one.name: max(0.0, min(one.cores_wanted, one.cores_owed - one.cores_in_use)) for one in snapshot.accounts}
    back, returning = nodes_with_cores_back(unmet, now, settings), defaultdict[str, "list[Amounts]"](list)
    for place in snapshot.places:
        if place.node in back and place.unseen.cores:  # of runs with orders
            returning[place.name].append(place.unseen)
    for one in on_their_way(snapshot.pilots, now, settings.horizon):
        for name, holds in one.returns():
            returning[name].append(holds)
    facts, returns = (
        room_facts(snapshot.kinds or (), snapshot.places),
        {name: sum_of(held) for name, held in returning.items()},
    )
    return demand_left(facts, owing, returns, intended_room(snapshot, unmet, now, settings))


def jobs_of(left: DemandLeft) -> dict[str, int]:
    """Return the jobs without room of each kind that could run somewhere, by its name."""
    jobs = zip(left.facts.kinds, left.without_room().tolist())
    return {kind.name: count for kind, count in jobs if kind.classes and count}


def cores_of(left: DemandLeft, jobs: Mapping[str, int]) -> int:
    """Return the cores of so many jobs of each kind, by its name."""
    return sum(jobs.get(kind.name, 0) * kind.cores for kind in left.facts.kinds)


def for_kinds(orders: Iterable[Order]) -> dict[str, dict[str, AccountPart]]:
    """Return for each kind of jobs its parts of the pilots that make room for it, by run.

    A job's cores are parted among the pilots that make its room together.
    """
    rooms = [(order.pilot, order.room) for order in orders if order.room is not None]
    going, parts = Counter[str](), defaultdict[str, "dict[str, AccountPart]"](dict)
    for pilot, room in rooms:
        going[room.place] += pilot.cores
    for pilot, room in rooms:
        nodes, share = " ".join(pilot.nodes) if pilot.pieces else pilot.node, pilot.cores / going[room.place]
        for kind, jobs in room.jobs:
            cores = jobs * max(1, kind.needs.cores) * share
            parts[kind.name][pilot.run] = AccountPart(nodes, pilot.cores, min(cores, pilot.cores))
    return parts


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
        nodes.update({node: pilot.cores_on((node,)) for node in pilot.nodes})
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

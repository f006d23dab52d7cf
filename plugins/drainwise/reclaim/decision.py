"""Decide what one cycle would do and why; sum the plan up, and list what it could not count on.

Where the batch system tells what waits by kind and where that could start, pilots make room for those jobs, place by
place (`room_plans`). Elsewhere cores are counted, and the sentence says how many of them are of use as they lie.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.free_cores import Hole, WaitingJobs, usable_cores, waiting_jobs, whole_cores
from drainwise.reclaim.history import History, cancelled_runs, cores_allowed, refusing_nodes, too_soon, with_unanswered
from drainwise.reclaim.on_request import (
    by_time,
    clearing_notices,
    clearing_plans,
    clearings_of,
    for_request,
    left_of,
    with_requests,
    with_reserved,
)
from drainwise.reclaim.paused_demand import Paused, paused, weighed
from drainwise.reclaim.plan import Plan, UserPlan
from drainwise.reclaim.policies import policy_called
from drainwise.reclaim.quota import Balance, WhatIf, balance_for, owed, require_whole, without_limits
from drainwise.reclaim.room_plans import (
    KindsLeft,
    for_kinds,
    kind_notices,
    kinds_left,
    most_of,
    needed_runs,
    room_plans,
    room_summary,
)
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import for_whom
from drainwise.reclaim.user_plan import UserPart, user_plan
from drainwise.reclaim.withdrawal import withdrawals

_MOST = 20
"""Notices that are shown; of more only the number."""


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
    orders for requests that were cancelled are withdrawn.
    Raises PoolUnreachable for a snapshot that is not whole and UsageError for a policy or user that does not exist.
    """
    policy_called(settings.policy)
    history = history or History()
    snapshot = with_unanswered(snapshot, history.unanswered)
    require_whole(snapshot)
    snapshot, requested, faults = _requested(snapshot, now, settings, history)
    if what_if is not None:
        return _what_if_plan(snapshot, what_if, now, settings, history, requested, faults)
    looked = look_at(snapshot, history, now, settings)
    balance, wait = looked.balance, too_soon(history, now, settings) if looked.balance.deficit > 0 else ""
    demand, made = list[UserPlan](), None
    if is_for_demand and looked.kinds is not None:
        demand, made = room_plans(looked.kinds, snapshot, balance, now, settings, history, wait)
    elif is_for_demand:
        demand = _user_plans(snapshot, balance, now, settings, history, wait)
    withdrawn = withdrawals(looked.counts, balance, now, settings, history, looked.needed)
    if not is_for_demand:
        cancelled = cancelled_runs(snapshot, history)
        withdrawn = tuple(one for one in withdrawn if one.pilot.run in cancelled)
    orders = [order for user in demand for order in user.orders]
    ordered, pauses = [order.pilot for order in orders], paused(snapshot, history.unmet, now)
    waste = sum(order.waste for order in orders)
    fitting: int | None
    if looked.kinds is not None and made is not None and balance.deficit > 0:
        given = sum(pilot.cores for pilot in ordered)
        fitting = min(given, looked.kinds.cores_of(made.jobs))
        summary = room_summary(looked.kinds, made, len(ordered), given, waste)
    else:
        fitting = usable(ordered, waiting_jobs(looked.counts.accounts))
        summary = summary_of(balance, ordered, waste, fitting, pauses)
    kinds = kind_notices(snapshot.kinds or (), made if balance.deficit > 0 else None)
    refusing = refusing_nodes(history.nodes, now, settings)
    parts = for_kinds(orders) if made else for_whom(looked.needs_orders, ordered, balance.deficit, history.unmet)
    return Plan(
        snapshot.taken,
        settings.policy,
        balance,
        (*requested, *demand),
        withdrawn,
        fitting,
        summary=_summary(requested, wait or summary, is_for_demand),
        notices=(*([refusing] if refusing else []), *faults, *notices_of(snapshot, pauses, kinds)),
        closed_nodes=len({pilot.node for pilot in snapshot.pilots if pilot.cannot}),
        waiting={one.name: cores for one in looked.counts.accounts if (cores := owed(one)) > 0},
        parts=parts,
        paused=pauses,
    )


def _what_if_plan(
    snapshot: Snapshot,
    what_if: WhatIf,
    now: int,
    settings: ReclaimSettings,
    history: History,
    requested: Sequence[UserPlan],
    faults: Sequence[str],
) -> Plan:
    """Return the plan for so many cores: whatever waits, without the limits of a cycle."""
    settings = without_limits(settings)
    balance = balance_for(what_if, snapshot, now, settings)
    users = _user_plans(snapshot, balance, now, settings, history, "")
    orders = [order for user in users for order in user.orders]
    summary = summary_of(balance, [one.pilot for one in orders], sum(one.waste for one in orders), None, ())
    return Plan(
        snapshot.taken,
        settings.policy,
        balance,
        (*requested, *users),
        (),
        None,
        _summary(requested, summary, True),
        (*faults, *notices_of(snapshot)),
        closed_nodes=len({pilot.node for pilot in snapshot.pilots if pilot.cannot}),
    )


@dataclass(frozen=True)
class Looked:
    """What a snapshot says of those who wait: the demand that counts, and what of it needs orders.

    kinds: what waits by kind without room, None where cores are counted. needed: runs on their way out whose room a
    waiting job will use.
    """

    counts: Snapshot
    needs_orders: Snapshot
    balance: Balance
    kinds: KindsLeft | None
    needed: frozenset[str] | None


def look_at(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Looked:
    """Weigh a snapshot at `now` (UNIX s). Raises PoolUnreachable for one that is not whole."""
    counts, needs_orders, balance = weighed(snapshot, history.unmet, now, settings)
    if snapshot.kinds is None:
        return Looked(counts, needs_orders, balance, None, None)
    waits = kinds_left(counts, now, settings)
    needed = needed_runs(waits, snapshot.pilots, now, settings)
    to_order = kinds_left(needs_orders, now, settings) if history.unmet else waits
    deficit = min(to_order.cores, sum(most_of(one, balance) for one in balance.over))
    balance = replace(balance, free=float(waits.free), deficit=deficit)
    return Looked(counts, needs_orders, balance, to_order, needed)


def _requested(
    snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History
) -> tuple[Snapshot, list[UserPlan], list[str]]:
    """Return the plans for requests and for nodes that close, the snapshot without those pilots, and what is wrong."""
    clearings = clearings_of(snapshot, history.requests, now, settings.max_grace)
    plans = clearing_plans(snapshot, clearings, now, settings, history)
    faults = clearing_notices(clearings, plans, now, settings.notice)
    snapshot = with_requests(snapshot, history, now, settings)
    for one in history.requests:
        cores = left_of(one, history.requested)
        if one.by > now + settings.max_grace:
            begin = clock(one.by - settings.max_grace)
            faults.append(f"{one.in_words()}: orders are given from {begin} on ([reclaim] max_grace before)")
            continue
        if not cores or one.nodes or one.by <= now:
            continue
        within = by_time(settings, one.by, now)
        try:
            balance = balance_for(WhatIf(cores, one.user, one.account), snapshot, now, within)
        except UsageError as fault:
            faults.append(f"{one.in_words()}: {fault}")
            continue
        found = [for_request(part, one) for part in _user_plans(snapshot, balance, now, within, history, "")]
        runs = {order.pilot.run for part in found for order in part.orders}
        if (missing := cores - sum(part.cores_given for part in found)) > 0:
            whose = (
                "no pilot fits"
                if one.user or one.account or balance.over
                else "nobody is over quota: name a user or an account"
            )
            faults.append(f"{one.in_words()}: {missing} cores are missing, as {whose}")
        snapshot, plans = with_reserved(snapshot, (), runs), plans + found
    return snapshot, plans, faults


def _summary(requested: Sequence[UserPlan], summary: str, is_for_demand: bool) -> str:
    """Return what is done for requests and nodes that close, then for those who wait."""
    orders = [order for part in requested for order in part.orders]
    if not orders:
        return summary if is_for_demand else "nothing is to be ordered for the request now"
    names = ", ".join(sorted({order.request for order in orders}))
    cores, waste = sum(order.pilot.cores for order in orders), sum(order.waste for order in orders)
    pilots = "1 pilot" if len(orders) == 1 else f"{len(orders)} pilots"
    words = f"{pilots} with {cores} cores for {names} at an expected waste of {core_hours(waste)}"
    return f"{words}; {summary}" if is_for_demand else words


def _user_plans(
    snapshot: Snapshot, balance: Balance, now: int, settings: ReclaimSettings, history: History, wait: str
) -> list[UserPlan]:
    """Return each user's part in turn, until the deficit is met; what a limit delays falls on nobody else."""
    pilots: dict[tuple[str, str], list[Pilot]] = defaultdict(list)
    for pilot in snapshot.pilots:
        pilots[pilot.account, pilot.user].append(pilot)
    users: list[UserPlan] = []
    taken: Counter[str] = Counter()  # by user, who may run under several accounts
    missing, own, cycle = balance.deficit, balance.below_share, 0 if wait else settings.max_cores
    for over in balance.over:
        beyond, most = over.cores, over.most
        for user in over.users:
            cores = min(missing, beyond)
            if cores <= 0:
                break
            allowed = max(0, min(cycle, cores_allowed(user, history, now, settings) - taken[user]))
            part_of, whose = UserPart(cores, beyond, own, most), (over.account, user)
            part = user_plan(whose, pilots[whose], part_of, allowed, now, settings, history, wait)
            users.append(part)
            cycle -= part.cores_given
            taken[user] += part.cores_given
            gone = part.cores_given + part.later
            missing, own, beyond, most = missing - gone, own - gone, beyond - gone, most - gone
    return users


def usable(freed: Iterable[Pilot], jobs: Iterable[WaitingJobs]) -> int:
    """Return the cores of those jobs that the cores of the `freed` pilots could hold, node by node.

    Not more is known: cores that are free already beside a pilot's may make a hole large enough.
    """
    nodes: Counter[str] = Counter()
    for pilot in freed:
        nodes[pilot.node] += pilot.cores
    return usable_cores([Hole(cores, divisible=True) for cores in nodes.values()], jobs)


def notices_of(snapshot: Snapshot, pauses: Sequence[Paused] = (), kinds: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what demand is paused or finds no room, the snapshot's notices, and why pilots can get no order."""
    pilots: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    for pilot in snapshot.pilots:
        if pilot.cannot:
            pilots[pilot.cannot] += 1
            cores[pilot.cannot] += pilot.cores
    reasons = sorted(pilots, key=lambda reason: (-cores[reason], reason))
    found = [*(one.sentence for one in pauses), *kinds, *snapshot.notices]
    found += [f"{_pilots(pilots[why], cores[why])} cannot be given an order: {why}" for why in reasons]
    return (*found[:_MOST], f"{len(found) - _MOST} more notices") if len(found) > _MOST else tuple(found)


def _pilots(number: int, cores: int) -> str:
    return f"{number} {'pilot' if number == 1 else 'pilots'} ({cores} cores)"


def summary_of(
    balance: Balance, chosen: Sequence[Pilot], waste: int, fitting: int | None, pauses: Sequence[Paused]
) -> str:
    """Return the sentence for `chosen` pilots that should waste `waste` core-seconds; fitting: as `usable` counts."""
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
    missing, scattered = balance.deficit - cores, 0 if fitting is None else min(cores, balance.deficit) - fitting
    if missing > 0:
        text += f"; {missing} cores are missing (limits of a cycle, or no pilot that fits)"
    if scattered > 0:
        text += f"; {scattered} of them lie in pieces too small for the jobs that wait"
    return text

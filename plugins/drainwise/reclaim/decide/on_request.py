"""Decide for what an administrator or the batch system plans: nodes that close, and cores on request.

Pilots on a node that closes learn of it as early as the site lets an order be given (`max_grace`), with the closing
time as their deadline: they take no payload that would run beyond it, so nothing idles before. A request is no cycle of
the agent's own: its limits do not apply, and the waste is the least within the time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock, core_hours
from drainwise.pool.closing import PREFIX
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import CUT, LEAVE, Candidate
from drainwise.reclaim.decide.limits import able_and_closed
from drainwise.reclaim.decide.user_plans import user_plans
from drainwise.reclaim.history import History, unbound
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.quota import WhatIf, balance_for, with_turns, without_limits
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import AdminRequest

_CLOSING = 300
"""Seconds within which a node is closed when its time has come: a few periods of the agent."""


@dataclass(frozen=True)
class Clearing:
    """Nodes that close at `by` (UNIX s): no pilot may be there then. name: of a request, or the batch system's own."""

    name: str
    nodes: frozenset[str]
    by: int
    reason: str


def clearings_of(snapshot: Snapshot, requests: Iterable[AdminRequest], now: int, longest: int) -> tuple[Clearing, ...]:
    """Return what is closed at `now` (UNIX s) or closes within `longest` seconds, the soonest first."""
    found = [Clearing(one.name, frozenset(one.nodes), one.by, one.in_words()) for one in requests if one.nodes]
    found += [
        Clearing(one.name, one.places, one.start, one.reason)
        for one in snapshot.closures
        if not one.name.startswith(PREFIX) and (one.end is None or now < one.end)  # ours are there as requests
    ]
    return tuple(sorted((one for one in found if one.by <= now + longest), key=lambda one: (one.by, one.name)))


def with_reserved(snapshot: Snapshot, clearings: Sequence[Clearing], runs: Collection[str]) -> Snapshot:
    """Return the snapshot in which pilots on nodes that close, and those `runs`, are for nobody who waits.

    Nodes that close are no places for new jobs.
    """
    nodes = frozenset(node for one in clearings for node in one.nodes)
    if not (nodes or runs):
        return snapshot
    pilots = (
        replace(one, reserved=True) if not nodes.isdisjoint(one.nodes) or one.run in runs else one
        for one in snapshot.pilots
    )
    places = tuple(one for one in snapshot.places if one.node not in nodes)
    return replace(snapshot, pilots=tuple(pilots), places=places)


def clearing_plans(
    snapshot: Snapshot, clearings: Sequence[Clearing], now: int, settings: ReclaimSettings, history: History
) -> list[UserPlan]:
    """Return the orders at `now` (UNIX s) for the pilots on nodes that close: every one that would be there then.

    So does one that started right before, or while the node was being closed. What starts there later is not ordered:
    where no batch system closes the node, that would be pilot after pilot.
    """
    plans, soonest = list[UserPlan](), dict[str, Clearing]()
    if not clearings:
        return plans
    for clearing in clearings:
        for node in clearing.nodes:
            soonest.setdefault(node, clearing)
    pilots: dict[tuple[str, str, str], list[Pilot]] = defaultdict(list)
    for pilot in snapshot.pilots:
        first = min((soonest[node] for node in pilot.nodes if node in soonest), key=lambda one: one.by, default=None)
        if first is None or (now >= first.by and pilot.started > first.by + _CLOSING):
            continue
        if _would_stay(pilot, max(first.by, now + settings.notice)):
            shown = replace(pilot, reserved=False, deadline=None)  # an order for a later time gives way to this one
            pilots[first.name, pilot.account, pilot.user].append(shown)
    for clearing in clearings:
        site, deadline = by_time(settings, clearing.by, now), max(clearing.by, now + settings.notice)
        site = replace(site, drain_only=True, min_age=0, min_grace=site.grace)  # the node closes for all, and then
        for (name, account, user), theirs in sorted(pilots.items()):
            if name == clearing.name:
                able, closed = able_and_closed(theirs, now, site, history)[account, user]
                cores, orders = sum(one.cores for one in theirs), tuple(_order(one, clearing, deadline) for one in able)
                need = Need(cores, cores)
                plans.append(UserPlan(account, user, cores, 0, "", orders, able, closed, need, clearing.name))
    return plans


def _would_stay(pilot: Pilot, by: int) -> bool:
    if pilot.leaving or (pilot.unanswered is not None and pilot.unanswered <= by):
        return False
    ends = [end for end in (pilot.lease_end, pilot.deadline) if end is not None]
    return not ends or min(ends) > by


def _order(one: Candidate, clearing: Clearing, deadline: int) -> Order:
    way = one.drained
    kind, how = (LEAVE, "can drain until then") if way.kind == LEAVE else (CUT, "is cut then")
    said = f"{one.rule}; " if one.rule else ""
    reason = f"{said}{one.pilot.node} closes at {clock(clearing.by)} ({clearing.reason}): it {how},"
    reason += f" {core_hours(way.waste)} at most"
    return Order(one, kind, deadline, deadline, way.waste, way.waste, reason, request=clearing.name)


def clearing_notices(clearings: Iterable[Clearing], plans: Iterable[UserPlan], now: int, notice: int) -> list[str]:
    """Return why nodes may not be empty at their time; `notice`: the site's, in s."""
    left = Counter(dict.fromkeys((one.name for one in clearings), 0))
    for plan in plans:
        left[plan.request] += len(plan.closed[0])
    found = []
    for one in clearings:
        if now < one.by < now + notice:
            end = clock(now + notice)
            found.append(f"{one.name}: no order ends before {end}, by the site's notice ([features] grace_job)")
        if left[one.name]:
            found.append(f"{one.name}: {left[one.name]} pilots there get no order now; `drainwise plan` says why")
    return found


def by_time(settings: ReclaimSettings, by: int, now: int) -> ReclaimSettings:
    """Return the settings for orders that must be carried out by a time (UNIX s): without the limits of a cycle."""
    within = max(1, by - now)
    return replace(without_limits(settings), horizon=within, grace=within, max_grace=within)


def with_requests(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Snapshot:
    """Return the snapshot at `now` (UNIX s) in which what goes for requests, and nodes that close, are reserved."""
    names = {one.name for one in history.requests}
    runs = frozenset(run for run, (name, _) in history.requested.items() if name in names)
    return with_reserved(snapshot, clearings_of(snapshot, history.requests, now, settings.max_grace), runs)


@dataclass(frozen=True)
class Requested:
    """The plans for requests and for nodes that close, and what is wrong with them, a sentence each.

    others: the snapshot for those who wait, without the pilots that go for a request.
    """

    plans: Sequence[UserPlan]
    faults: Sequence[str]
    others: Snapshot


def requested_plans(snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History) -> Requested:
    """Return what is to be done at `now` (UNIX s) for the requests that stand and the nodes that close."""
    history = unbound(history)
    clearings = clearings_of(snapshot, history.requests, now, settings.max_grace)
    plans = clearing_plans(snapshot, clearings, now, settings, history)
    faults = clearing_notices(clearings, plans, now, settings.notice)
    snapshot = with_requests(snapshot, history, now, settings)
    for one in history.requests:
        if one.by > now + settings.max_grace:
            begin = clock(one.by - settings.max_grace)
            faults.append(f"{one.in_words()}: orders are given from {begin} on ([reclaim] max_grace before)")
            continue
        missing = one.cores - sum(cores for name, cores in history.requested.values() if name == one.name)
        if missing <= 0 or one.nodes or one.by <= now:
            continue
        within = by_time(settings, one.by, now)
        try:
            balance = balance_for(WhatIf(missing, one.user, one.account), snapshot, now, within)
            balance = with_turns(balance, snapshot, history, now)
        except UsageError as fault:
            faults.append(f"{one.in_words()}: {fault}")
            continue
        found = [_for_request(part, one) for part in user_plans(snapshot, balance, now, within, history)[0]]
        runs = {order.pilot.run for part in found for order in part.orders}
        if (missing := missing - sum(part.cores_given for part in found)) > 0:
            whose = (
                "no pilot fits"
                if one.user or one.account or balance.over
                else "nobody is over quota: name a user or an account"
            )
            faults.append(f"{one.in_words()}: {missing} cores are missing, as {whose}")
        snapshot, plans = with_reserved(snapshot, (), runs), plans + found
    return Requested(plans, faults, snapshot)


def _for_request(part: UserPlan, request: AdminRequest) -> UserPlan:
    """Return one user's part as one for a request."""
    reasons = (f"{request.in_words()}; {order.reason}" for order in part.orders)
    orders = tuple(replace(order, request=request.name, reason=why) for order, why in zip(part.orders, reasons))
    return replace(part, orders=orders, request=request.name)

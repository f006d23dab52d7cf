"""Decide for what an administrator or the batch system plans: nodes that close, and cores on request.

Pilots on a node that closes learn of it as early as the site lets an order be given (`max_grace`), with the closing
time as their deadline: they take no payload that would run beyond it, so nothing idles before. A request is no cycle of
the agent's own: its limits do not apply, and the waste is the least within the time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.facts.units import clock, core_hours
from drainwise.pool.closing import PREFIX
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import CUT, LEAVE, Candidates
from drainwise.reclaim.decide.by_user import able_and_closed
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Order, UserPlan
from drainwise.reclaim.policy import Need
from drainwise.reclaim.quota import without_limits
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
        for (name, account, user), theirs in sorted(pilots.items()):
            if name == clearing.name:
                plans.append(_clearing_plan(clearing, account, user, theirs, now, settings, history))
    return plans


def _would_stay(pilot: Pilot, by: int) -> bool:
    if pilot.leaving or (pilot.unanswered is not None and pilot.unanswered <= by):
        return False
    ends = [end for end in (pilot.lease_end, pilot.deadline) if end is not None]
    return not ends or min(ends) > by


def _clearing_plan(
    clearing: Clearing,
    account: str,
    user: str,
    pilots: Sequence[Pilot],
    now: int,
    settings: ReclaimSettings,
    history: History,
) -> UserPlan:
    within = by_time(settings, clearing.by, now)
    within = replace(within, drain_only=True, min_age=0, min_grace=within.grace)  # the node closes for all, and then
    able, closed = able_and_closed(pilots, now, within, history)
    cores = sum(one.cores for one in pilots)
    orders = _orders(able, clearing, max(clearing.by, now + settings.notice))
    need = Need(cores, cores)
    return UserPlan(account, user, cores, 0, "", orders, able, closed, need, clearing.name)


def _orders(able: Candidates, clearing: Clearing, deadline: int) -> tuple[Order, ...]:
    orders = []
    for one in able:
        way = one.drained
        kind = LEAVE if way.kind == LEAVE else CUT
        how = "can drain until then" if kind == LEAVE else "is cut then"
        said = f"{one.rule}; " if one.rule else ""
        reason = f"{said}{one.pilot.node} closes at {clock(clearing.by)} ({clearing.reason}): it {how},"
        reason += f" {core_hours(way.waste)} at most"
        orders.append(Order(one, kind, deadline, deadline, way.waste, way.waste, reason, request=clearing.name))
    return tuple(orders)


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


def left_of(request: AdminRequest, requested: Mapping[str, tuple[str, int]]) -> int:
    """Return the cores that a request still needs orders for; requested: request and cores by run."""
    return max(0, request.cores - sum(cores for name, cores in requested.values() if name == request.name))


def with_requests(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Snapshot:
    """Return the snapshot at `now` (UNIX s) in which what goes for requests, and nodes that close, are reserved."""
    names = {one.name for one in history.requests}
    runs = frozenset(run for run, (name, _) in history.requested.items() if name in names)
    return with_reserved(snapshot, clearings_of(snapshot, history.requests, now, settings.max_grace), runs)


def for_request(part: UserPlan, request: AdminRequest) -> UserPlan:
    """Return one user's part as one for a request."""
    orders = tuple(
        replace(order, request=request.name, reason=f"{request.in_words()}; {order.reason}") for order in part.orders
    )
    return replace(part, orders=orders, request=request.name)

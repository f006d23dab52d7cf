"""Decide for what an administrator or the batch system plans: nodes that close, and cores on request.

Pilots on a node that closes learn of it as early as the site lets an order be given (`max_grace`), with the closing
time as their deadline: they take no payload that would run beyond it, so nothing idles before. A request is no cycle of
the agent's own: its limits do not apply, and the waste is the least within the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock, core_hours
from drainwise.pool.abilities import PREFIX
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import CUT, LEAVE, Candidate, Candidates
from drainwise.reclaim.decide.user_plans import able_and_closed, user_plans
from drainwise.reclaim.history import History, unbound
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.quota import WhatIf, balance_for, with_changed, with_turns, without_limits
from drainwise.reclaim.settings import ReclaimSettings

_CLOSING = 300
"""Seconds within which a node is closed when its time has come: a few periods of the agent."""


@dataclass(frozen=True)
class Clearing:
    """Nodes that close at `by` (UNIX s): no pilot may be there then. name: of a request, or the batch system's own."""

    name: str
    nodes: frozenset[str]
    by: int
    reason: str


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
    history, plans, faults = unbound(history), list[UserPlan](), list[str]()
    closing = [
        Clearing(one.name, frozenset(one.nodes), one.by, one.in_words()) for one in history.requests if one.nodes
    ]
    closing += [
        Clearing(one.name, one.places, one.start, one.reason)
        for one in snapshot.closures
        if not one.name.startswith(PREFIX) and (one.end is None or now < one.end)  # ours are there as requests
    ]
    closing = sorted(
        {one for one in closing if one.by <= now + settings.max_grace}, key=lambda one: (one.by, one.name, one.reason)
    )
    nodes = {node: one for one in reversed(closing) for node in one.nodes}  # the soonest of each
    pilots = defaultdict[Clearing, "list[Pilot]"](list)
    for pilot in snapshot.pilots if nodes else ():
        first = min((nodes[node] for node in pilot.nodes if node in nodes), key=lambda one: one.by, default=None)
        if first is not None and _would_stay(pilot, first, now, settings.notice):
            # An order for a later time gives way to this one.
            pilots[first].append(replace(pilot, reserved=False, deadline=None))
    for clearing in closing:
        parts = _clearing_plans(pilots[clearing], clearing, now, settings, history)
        if now < clearing.by < now + settings.notice:
            end = clock(now + settings.notice)
            faults.append(f"{clearing.name}: no order ends before {end}, by the site's notice ([features] grace_job)")
        if left := sum(len(part.closed) for part in parts):
            faults.append(f"{clearing.name}: {left} pilots there get no order now; `drainwise plan` says why")
        plans += parts
    names = {one.name for one in history.requests}
    snapshot = _reserved(snapshot, {run for run, (name, _) in history.requested.items() if name in names}, nodes)
    for one in history.requests:
        if one.by > now + settings.max_grace:
            begin = clock(one.by - settings.max_grace)
            faults.append(f"{one.in_words()}: orders are given from {begin} on ([reclaim] max_grace before)")
            continue
        missing = one.cores - sum(cores for name, cores in history.requested.values() if name == one.name)
        if missing <= 0 or one.nodes or one.by <= now:
            continue
        within = _by_time(settings, one.by, now)
        try:
            balance = balance_for(WhatIf(missing, one.user, one.account), snapshot, now, within)
            balance = with_turns(balance, snapshot, history, now)
        except UsageError as fault:
            faults.append(f"{one.in_words()}: {fault}")
            continue
        for part in user_plans(snapshot, balance, now, within, history)[0]:
            orders = [
                replace(order, request=one.name, reason=f"{one.in_words()}; {order.reason}") for order in part.orders
            ]
            plans.append(replace(part, orders=tuple(orders), request=one.name))
            snapshot = _reserved(snapshot, {order.pilot.run for order in part.orders})
            missing -= part.cores_given
        if missing > 0:
            whose = (
                "no pilot fits"
                if one.user or one.account or balance.over
                else "nobody is over quota: name a user or an account"
            )
            faults.append(f"{one.in_words()}: {missing} cores are missing, as {whose}")
    return Requested(plans, faults, snapshot)


def _reserved(snapshot: Snapshot, runs: Collection[str], nodes: Collection[str] = ()) -> Snapshot:
    """Return the snapshot in which these runs, and pilots on nodes that close, are for nobody who waits.

    Nodes that close are no places for new jobs.
    """
    there = (one.run for one in snapshot.pilots if any(node in nodes for node in one.nodes)) if nodes else ()
    snapshot = with_changed(snapshot, {*runs, *there}, reserved=True)
    places = tuple(one for one in snapshot.places if one.node not in nodes)
    return replace(snapshot, places=places) if nodes else snapshot


def _would_stay(pilot: Pilot, clearing: Clearing, now: int, notice: int) -> bool:
    """Decide whether a pilot would be there then: also one that started right before, or while the node was closed.

    What starts there later is not ordered: where no batch system closes the node, that would be pilot after pilot.
    """
    by = max(clearing.by, now + notice)
    if now >= clearing.by and pilot.started > clearing.by + _CLOSING:
        return False
    if pilot.leaving or (pilot.unanswered is not None and pilot.unanswered <= by):
        return False
    ends = [end for end in (pilot.lease_end, pilot.deadline) if end is not None]
    return not ends or min(ends) > by


def _clearing_plans(
    pilots: Sequence[Pilot], clearing: Clearing, now: int, settings: ReclaimSettings, history: History
) -> list[UserPlan]:
    """Return the orders for the pilots on nodes that close: the nodes close for all, and at their time."""
    site, deadline = _by_time(settings, clearing.by, now), max(clearing.by, now + settings.notice)
    site, found = replace(site, drain_only=True, min_age=0, min_grace=site.grace), list[UserPlan]()
    by_user = able_and_closed(pilots, now, site, history)
    for (account, user), (some, closed) in sorted(by_user.items(), key=itemgetter(0)):
        able = Candidates(tuple(some), now, site, history)
        orders = tuple(_order(one, clearing, deadline) for one in able)
        cores = sum(one.cores for one in (*some, *(other for other, _ in closed)))
        need = Need(cores, cores)
        found.append(UserPlan(account, user, cores, 0, "", orders, able, closed, need, clearing.name))
    return found


def _by_time(settings: ReclaimSettings, by: int, now: int) -> ReclaimSettings:
    """Return the settings for orders that must be carried out by a time (UNIX s): without the limits of a cycle."""
    within = max(1, by - now)
    return replace(without_limits(settings), horizon=within, grace=within, max_grace=within)


def _order(one: Candidate, clearing: Clearing, deadline: int) -> Order:
    way = one.drained
    kind, how = (LEAVE, "can drain until then") if way.kind == LEAVE else (CUT, "is cut then")
    said = f"{one.rule}; " if one.rule else ""
    reason = f"{said}{one.pilot.node} closes at {clock(clearing.by)} ({clearing.reason}): it {how},"
    reason += f" {core_hours(way.waste)} at most"
    return Order(one, kind, deadline, deadline, way.waste, way.waste, reason, request=clearing.name)

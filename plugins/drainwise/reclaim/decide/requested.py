"""Plan for requests and for nodes that close, before those who wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.core_plans import core_plans
from drainwise.reclaim.decide.on_request import (
    by_time,
    clearing_notices,
    clearing_plans,
    clearings_of,
    for_request,
    left_of,
    with_requests,
    with_reserved,
)
from drainwise.reclaim.history import History, unbound
from drainwise.reclaim.plan import UserPlan
from drainwise.reclaim.quota import WhatIf, balance_for, with_turns
from drainwise.reclaim.settings import ReclaimSettings


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
            balance = with_turns(balance, snapshot, history, now)
        except UsageError as fault:
            faults.append(f"{one.in_words()}: {fault}")
            continue
        found = [for_request(part, one) for part in core_plans(snapshot, balance, now, within, history, "")]
        runs = {order.pilot.run for part in found for order in part.orders}
        if (missing := cores - sum(part.cores_given for part in found)) > 0:
            whose = (
                "no pilot fits"
                if one.user or one.account or balance.over
                else "nobody is over quota: name a user or an account"
            )
            faults.append(f"{one.in_words()}: {missing} cores are missing, as {whose}")
        snapshot, plans = with_reserved(snapshot, (), runs), plans + found
    return Requested(plans, faults, snapshot)

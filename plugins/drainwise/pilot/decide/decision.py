"""The decision of a pilot: to start, stop, leave, or sleep until when. Pure, for the runner and the simulator alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.pilot.decide.lease import Lease, SiteOrders
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import HOLES, NOTHING, PilotSettings
from drainwise.pilot.decide.workload import Workload

BY_DEADLINE = "deadline"
"""Why a payload is stopped: the time is over; it is to be requeued."""
BY_MAXIMUM = "maximum"
"""Why a payload is stopped: it ran for its maximum; it failed."""


@dataclass(frozen=True)
class Decision:
    """The decision at one moment.

    start: in this order. stop: (name, reason) with `BY_DEADLINE` or `BY_MAXIMUM`; one that is being stopped already is
    named again as long as it runs, and its first reason holds. done: the pilot can end, `why_done` says why.
    wake: the next time something must be decided without anything happening before, UNIX s; None: never.
    can_postpone: what CAN_POSTPONE_LAST_JOB says. unfit: (name, reason) of those that no time would make fit here.
    """

    start: tuple[Payload, ...]
    stop: tuple[tuple[str, str], ...]
    done: bool
    why_done: str
    wake: float | None
    can_postpone: bool
    unfit: tuple[tuple[str, str], ...] = ()


def decide(
    workload: Workload,
    waiting: Backlog,
    lease: Lease,
    orders: SiteOrders,
    settings: PilotSettings,
    now: float,
    more_may_come: bool,
    fillable: int | None = None,
) -> Decision:
    """Decide at `now`, UNIX s. Pure, and the same for the same arguments.

    waiting: what could start. more_may_come: payloads may arrive later. fillable: how many of the lease's cores
    payloads may use when one more starts (`ReturnedCores`); None: all.
    Estimates that have passed are moved first (`estimates.move_overdue`); as long as one is not, `wake` is now.
    Source: the rule of a local backend (SPEC §5): of the payloads that fit the free cores the one with the highest
    priority starts; never oversubscribed. None starts whose maximum does not fit the rest of the lease.
    """
    limit = _limit(lease, orders, settings)
    stop = _stop(workload, limit, now)
    bound = _bound(workload, limit, orders, settings)
    cores = lease.cores if fillable is None else fillable
    free = cores - workload.used if bound > now else 0
    start = waiting.highest_first(free, bound, now, workload.running)
    why_done = ""
    if not workload.running and not start:
        fit = [payload for payload in waiting if payload.cores <= cores]
        why_done = _why_done(fit, orders, limit - now, more_may_come)
    most = len(start) + 1
    return Decision(
        start=start,
        stop=stop,
        done=bool(why_done),
        why_done=why_done,
        wake=None if why_done else _wake(workload, start, limit, now),
        # Who may start later ends later; while it drains a pilot fills holes at most.
        can_postpone=not orders.draining
        and now < limit
        and (more_may_come or waiting.ending_by(bound, cores, now, most) == most),
        unfit=tuple(
            (each.name, f"needs {each.cores} cores, the lease has {lease.cores}")
            for each in waiting.larger_than(lease.cores)
        ),
    )


def _limit(lease: Lease, orders: SiteOrders, settings: PilotSettings) -> float:
    """Return when everything must have ended, UNIX s; infinite when nobody says."""
    ends = [end for end in (lease.end, orders.deadline) if end is not None]
    return min(ends) - settings.margin if ends else math.inf


def _stop(workload: Workload, limit: float, now: float) -> tuple[tuple[str, str], ...]:
    over = tuple((running.payload.name, BY_MAXIMUM) for running in workload.past_maximum(now))
    if now < limit:
        return over
    named = {name for name, _ in over}
    return over + tuple((name, BY_DEADLINE) for name in workload.running if name not in named)


def _bound(workload: Workload, limit: float, orders: SiteOrders, settings: PilotSettings) -> float:
    """Return when a payload that starts must surely have ended, UNIX s; none may start when that is minus infinity."""
    if orders.draining and settings.while_draining == NOTHING:
        return -math.inf
    if orders.leave and settings.while_draining == HOLES:
        last_end = workload.last_end
        return -math.inf if last_end is None else min(limit, last_end)
    return limit


def _why_done(fit: Sequence[Payload], orders: SiteOrders, left: float, more_may_come: bool) -> str:
    """Say why a pilot in which nothing runs can end, "" when it cannot; `left` seconds remain."""
    if orders.draining:
        return f"ordered to leave ({orders.source})" if orders.leave else f"draining ({orders.source})"
    if left <= 0:
        return "the lease is over"
    if fit:
        shortest = min(payload.maximum for payload in fit)
        return f"nothing that waits fits the rest of the lease ({shortest:.0f} s needed, {left:.0f} s left)"
    return "" if more_may_come else "no payload waits and none will come"


def _wake(workload: Workload, start: Sequence[Payload], limit: float, now: float) -> float | None:
    times = [now + payload.expected for payload in start]
    if workload.first_end is not None:
        times.append(max(now, workload.first_end))
    next_maximum = workload.next_maximum_end(now)
    if next_maximum is not None:
        times.append(next_maximum)
    if now < limit < math.inf:
        times.append(limit)
    return min(times, default=None)

"""A payload that runs past its estimate gets a new one, never in the past."""

from __future__ import annotations

from drainwise.pilot.estimates import Estimates, expected_run_time
from drainwise.pilot.workload import Running, Workload

LEAST_STEP = 60.0
"""Seconds an estimate moves at least."""
SHARE = 0.1
"""Of the time the payload has run, by which an estimate moves: who ran for long is off by more."""


def next_estimate(running: Running, now: float, estimates: Estimates | None = None) -> float:
    """The expected end of a payload at `now`, UNIX s: always later than now, and never past its maximum by over 1 s.

    One whose estimate still lies ahead keeps it. estimates: are asked first, where there are some.
    """
    latest = max(running.maximum_end, now + 1.0)
    if running.expected_end > now:
        return min(running.expected_end, latest)
    learned = expected_run_time(estimates, running.payload, now - running.start)
    if learned is not None:
        return min(max(running.start + learned, now + 1.0), latest)
    return min(now + max(LEAST_STEP, SHARE * (now - running.start)), latest)


def move_overdue(workload: Workload, now: float, estimates: Estimates | None = None) -> bool:
    """Give every payload past its estimate a new one; True when there was one, so that a report is due."""
    overdue = workload.past_estimate(now)
    for running in overdue:
        workload.move(running.payload.name, next_estimate(running, now, estimates))
    return bool(overdue)


def renew(workload: Workload, now: float, estimates: Estimates) -> None:
    """Before a report: ask anew for every payload, since one that runs on is told from those that ended sooner.

    An end moves only when it moves by enough to matter, so that readers are not told of noise.
    """
    for name, running in list(workload.running.items()):
        elapsed = now - running.start
        learned = expected_run_time(estimates, running.payload, max(0.0, elapsed))
        if learned is None:
            continue
        end = min(max(running.start + learned, now + 1.0), max(running.maximum_end, now + 1.0))
        if abs(end - running.expected_end) > SHARE * (max(end, running.expected_end) - running.start):
            workload.move(name, end)

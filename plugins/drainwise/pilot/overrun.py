"""A payload that runs past its estimate gets a new one, never in the past."""

from __future__ import annotations

from drainwise.pilot.workload import Running, Workload

LEAST_STEP = 60.0
"""Seconds an estimate moves at least."""
SHARE = 0.1
"""Of the time the payload has run, by which an estimate moves: who ran for long is off by more."""


def next_estimate(running: Running, now: float) -> float:
    """The expected end of a payload at `now`, UNIX s: always later than now, and never past its maximum by over 1 s.

    One whose estimate still lies ahead keeps it.
    """
    latest = max(running.maximum_end, now + 1.0)
    if running.expected_end > now:
        return min(running.expected_end, latest)
    return min(now + max(LEAST_STEP, SHARE * (now - running.start)), latest)


def move_overdue(workload: Workload, now: float) -> bool:
    """Give every payload past its estimate a new one; True when there was one, so that a report is due."""
    overdue = workload.past_estimate(now)
    for running in overdue:
        workload.move(running.payload.name, next_estimate(running, now))
    return bool(overdue)

"""Run-time estimates of the payloads that run: renewed before a report, moved when they have passed, never in the past.

A pilot may ask somebody who has learned from payloads that have ended (`RunTimeEstimates`), and works without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload, Workload

LEAST_STEP = 60.0
"""Seconds an estimate moves at least."""
SHARE = 0.1
"""Of the time the payload has run, by which an estimate moves: who ran for long is off by more."""


class RunTimeEstimates(Protocol):
    """Run times that were learned. No method raises for what is wrong outside the pilot: it is logged."""

    def look(self, now: float) -> None:
        """Take in what has ended since the last look, and what runs on at `now`, UNIX s."""

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:
        """Return the seconds that a payload takes in all, given that it has run for `elapsed`; None: nobody can tell.

        events: 0 when it does not say.
        """

    def still_running(self, task: str, elapsed: float, ages: Sequence[float]) -> Sequence[float] | None:
        """Return the probability that a payload which has run for `elapsed` s runs still at each of `ages`, in s.

        None: nobody can tell.
        """


def expected_run_time(estimates: RunTimeEstimates | None, payload: Payload, elapsed: float) -> float | None:
    """Return the learned run time of a payload that has run for `elapsed` s: more than that, at most its maximum."""
    if estimates is None or not payload.task:
        return None
    found = estimates.run_time(payload.task, payload.cores, payload.events, elapsed)
    return None if found is None or found <= elapsed else min(found, payload.maximum)


def next_estimate(running: RunningPayload, now: float, estimates: RunTimeEstimates | None = None) -> float:
    """Return a new expected end at `now`, UNIX s: always later than now, and never past the maximum by over 1 s.

    One whose estimate still lies ahead keeps it. estimates: are asked first, where there are some.
    """
    latest = max(running.maximum_end, now + 1.0)
    if running.expected_end > now:
        return min(running.expected_end, latest)
    learned = expected_run_time(estimates, running.payload, now - running.start)
    if learned is not None:
        return min(max(running.start + learned, now + 1.0), latest)
    return min(now + max(LEAST_STEP, SHARE * (now - running.start)), latest)


def move_overdue(workload: Workload, now: float, estimates: RunTimeEstimates | None = None) -> bool:
    """Give every payload past its estimate a new one; True when there was one, so that a report is due."""
    overdue = workload.past_estimate(now)
    for running in overdue:
        workload.move(running.payload.name, next_estimate(running, now, estimates))
    return bool(overdue)


def renew(workload: Workload, now: float, estimates: RunTimeEstimates) -> None:
    """Estimate every payload anew before a report, since one that runs on differs from those that ended sooner.

    An end moves only when it moves by enough to matter, so that readers get no noise.
    """
    for name, running in list(workload.running.items()):
        elapsed = now - running.start
        learned = expected_run_time(estimates, running.payload, max(0.0, elapsed))
        if learned is None:
            continue
        end = min(max(running.start + learned, now + 1.0), max(running.maximum_end, now + 1.0))
        if abs(end - running.expected_end) > SHARE * (max(end, running.expected_end) - running.start):
            workload.move(name, end)

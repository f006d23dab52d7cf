"""Run-time estimates of the payloads that run: renewed before a report, moved when they have passed, never in the past.

A pilot may ask somebody who has learned from payloads that have ended (`RunTimeEstimates`), and works without.

The waste curve states the waste that a pilot expects of being ended at five future times. One expected end for each
payload hides what happens when it passes: here each runs still at a time with the probability that its like do.
Payloads end independently; the pilot starts nothing more and leaves when all have ended. A day ahead is looked at
closely, and these five times are stated between which the waste changes most evenly: a reader takes it to change evenly
there. A payload that comes to its maximum loses nothing any more from then on.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Protocol

from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload, Workload
from drainwise.pilotad.values import LATEST, MOST_POINTS, curve_text

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


AHEAD = (1800.0, 3600.0, 7200.0, 21600.0, 86400.0)
"""Each time up to the next of these is looked at in `_PARTS` parts; seconds from the report on. The last is stated."""
MOST_PAYLOADS = 256
"""Of a pilot that runs more the curve is left out, so that a report stays quick to make."""
_PARTS = 4
_MOST_MAXIMA = 4  # maximum ends that are looked at, the last ones within `AHEAD`


def waste_curve(workload: Workload, cores: int, now: float, estimates: RunTimeEstimates | None) -> str | None:
    """Return the curve at `now` (UNIX s) of a pilot with so many cores; None where any payload's end is not known.

    A payload runs at most for its maximum. Nothing running: None, as the nine attributes say all there is.
    """
    running = workload.running.values()
    if estimates is None or not 0 < len(running) <= MOST_PAYLOADS or now + AHEAD[-1] > LATEST:
        return None
    seconds = _grid(each.maximum_end - now for each in running)
    busy, lost = [0.0] * len(seconds), [0.0] * len(seconds)
    all_ended = [1.0] * len(seconds)
    for each in running:
        if not each.payload.task:
            return None
        elapsed, unsaved = max(0.0, now - each.start), max(0.0, now - each.unsaved_since)
        runs = estimates.still_running(each.payload.task, elapsed, [elapsed + ahead for ahead in seconds])
        if runs is None:
            return None
        width, left = each.payload.cores, each.maximum_end - now
        for place, (ahead, share) in enumerate(zip(seconds, runs)):
            share = share if ahead < left else 0.0  # noqa: PLW2901 - it is ended at its maximum
            busy[place] += width * share
            lost[place] += width * share * (unsaved + ahead)
            all_ended[place] *= 1.0 - share
    idle = [max(0.0, cores * (1.0 - gone) - work) for gone, work in zip(all_ended, busy)]
    idled = [0.0]
    for place in range(1, len(seconds)):
        idled.append(idled[-1] + (seconds[place] - seconds[place - 1]) * (idle[place - 1] + idle[place]) / 2)
    stated = _most_telling(seconds, [one + other for one, other in zip(idled, lost)])
    return curve_text([(round(now + seconds[place]), round(idled[place]), round(lost[place])) for place in stated])


def _grid(maxima: Iterable[float]) -> list[float]:
    """Return the times from now on at which everything is looked at, in whole s.

    maxima: seconds to the maximum ends, each looked at right before and there.
    """
    found, begin = {0.0}, 0.0
    for end in AHEAD:
        found |= {float(round(begin + (end - begin) * part / _PARTS)) for part in range(1, _PARTS + 1)}
        begin = end
    for left in sorted({float(math.ceil(one)) for one in maxima if 1 < one < AHEAD[-1]})[-_MOST_MAXIMA:]:
        found |= {left - 1, left}
    return sorted(found)


def _most_telling(seconds: Sequence[float], wastes: Sequence[float]) -> list[int]:
    """Return the places of five points; one after the other that which is furthest from the line through the others.

    As a part of the waste there: what wastes much is never chosen.
    """
    stated = [0, len(seconds) - 1]
    while len(stated) <= MOST_POINTS:
        worst, place = -1.0, 0
        for begin, end in zip(stated, stated[1:]):
            slope = (wastes[end] - wastes[begin]) / (seconds[end] - seconds[begin])
            for one in range(begin + 1, end):
                off = abs(wastes[begin] + slope * (seconds[one] - seconds[begin]) - wastes[one]) / max(1.0, wastes[one])
                if off > worst:
                    worst, place = off, one
        insort(stated, place)
    return stated[1:]

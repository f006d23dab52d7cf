"""The waste that a pilot expects of being ended at five future times, by the whole distribution of each payload's end.

One expected end for each payload hides what happens when it passes. Here each payload runs still at a time with the
probability that its like do. Payloads end independently; the pilot starts nothing more and leaves when all have ended.

A day ahead is looked at closely, and these five times are stated between which the waste changes most evenly: a reader
takes it to change evenly there. A payload that comes to its maximum loses nothing any more from then on.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence

from drainwise.pilot.decide.estimates import RunTimeEstimates
from drainwise.pilot.decide.workload import Workload
from drainwise.pilotad.values import LATEST, MOST_POINTS, curve_text

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
        elapsed = max(0.0, now - each.start)
        runs = estimates.still_running(each.payload.task, elapsed, [elapsed + ahead for ahead in seconds])
        if runs is None:
            return None
        width, left = each.payload.cores, each.maximum_end - now
        for place, (ahead, share) in enumerate(zip(seconds, runs)):
            share = share if ahead < left else 0.0  # noqa: PLW2901 - it is ended at its maximum
            busy[place] += width * share
            lost[place] += width * share * (elapsed + ahead)
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

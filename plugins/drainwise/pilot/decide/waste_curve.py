"""The waste that a pilot expects of being ended at five future times, by the whole distribution of each payload's end.

One expected end for each payload hides what happens when it passes. Here each payload runs still at a time with the
probability that its like do. Payloads end independently; the pilot starts nothing more and leaves when all have ended.
"""

from __future__ import annotations

from drainwise.pilot.decide.estimates import RunTimeEstimates
from drainwise.pilot.decide.workload import Workload
from drainwise.pilotad.values import LATEST
from drainwise.pilotad.waste_curve import curve_text

AHEAD = (1800.0, 3600.0, 7200.0, 21600.0, 86400.0)
"""The times of the five points, seconds from the report on."""
MOST_PAYLOADS = 256
"""Of a pilot that runs more the curve is left out, so that a report stays quick to make."""
_PARTS = 4  # between two points; idle time is summed over these


def waste_curve(workload: Workload, cores: int, now: float, estimates: RunTimeEstimates | None) -> str | None:
    """Return the curve at `now` (UNIX s) of a pilot with so many cores; None where any payload's end is not known.

    A payload runs at most for its maximum. Nothing running: None, as the nine attributes say all there is.
    """
    running = workload.running.values()
    if estimates is None or not 0 < len(running) <= MOST_PAYLOADS or now + AHEAD[-1] > LATEST:
        return None
    seconds = _grid()
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
    points, total = [], 0.0
    for place in range(1, len(seconds)):
        total += (seconds[place] - seconds[place - 1]) * (idle[place - 1] + idle[place]) / 2
        if place % _PARTS == 0:
            points.append((round(now + seconds[place]), round(total), round(lost[place])))
    return curve_text(points)


def _grid() -> list[float]:
    """Return the times from now on at which everything is looked at, in s: `_PARTS` parts up to each point."""
    found = [0.0]
    for end in AHEAD:
        begin = found[-1]
        found += [begin + (end - begin) * part / _PARTS for part in range(1, _PARTS + 1)]
    return found

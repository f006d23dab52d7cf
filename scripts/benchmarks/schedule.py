"""First come, first served on one large machine: when each job of a trace would start without pilots and reclaiming.

One heap of running jobs and one pass over the trace; nothing is made per event. It is the yardstick of the engine's
speed, and tells how full a site of so many cores is.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace

from drainwise.facts.errors import UsageError
from drainwise_simulate.trace import TraceJob


def first_come_first_served(jobs: Sequence[TraceJob], cores: int) -> list[float]:
    """The start of each job in s, in the order of `jobs`, which is that of their arrival.

    The job at the head of the queue waits until there are cores enough, and all others wait behind it.
    Raises UsageError for a job that is wider than `cores` and for one that comes before its predecessor.
    """
    running: list[tuple[float, int]] = []
    starts: list[float] = []
    free, now, last = cores, 0.0, 0.0
    for number, submit, run, width, _, _, _ in jobs:
        if width > cores:
            raise UsageError(f"job {number} needs {width} cores, there are {cores}")
        if submit < last:
            raise UsageError(f"job {number} comes before its predecessor: sort the jobs by their arrival")
        last = submit
        if submit > now:  # noqa: PLR1730 - a call of max() takes longer, and this is the loop that is measured
            now = submit
        # Those that have ended since need not be taken out before their cores are needed.
        while free < width:
            end, freed = running[0]
            if end > now:  # noqa: PLR1730
                now = end
            free += freed
            if free >= width:
                heapreplace(running, (now + run, width))
                break
            heappop(running)
        else:
            heappush(running, (now + run, width))
        free -= width
        starts.append(now)
    return starts


def busy_share(jobs: Sequence[TraceJob], starts: Sequence[float], cores: int) -> float:
    """The share (0 to 1) of all core-seconds from the first start to the last that jobs were running."""
    if not starts or starts[-1] <= starts[0]:
        return 0.0
    begin, end = starts[0], starts[-1]
    busy = sum(job.cores * max(0.0, min(end, start + job.run) - start) for job, start in zip(jobs, starts))
    return busy / (cores * (end - begin))

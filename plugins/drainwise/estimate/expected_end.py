"""How long a payload is expected to run on this node: from its events, or from what its like have run.

Pure. "Expected" is a quantile of what is likely; the "maximum" is the payload's limit and never depends on an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drainwise.estimate.run_times import WINDOW, RunTimes

MEDIAN = 0.5
LEAST_JOBS = 5
"""Fewer run times than these say nothing: the next, wider kind of job is looked at, then the request."""
MOST_KINDS = 100_000
"""Kinds of job that are kept; later ones are not learned, so that memory stays bounded."""

Kind = tuple[str, ...]
"""What a job is one of many of, the widest word first: ("atlas", "user7", "task12")."""


def wall_time(
    cpu_time: float, events: float, cores: int, core_power: float, cpu_efficiency: float = 90, base_time: float = 600
) -> float | None:
    """Expected seconds: cpuTime·nEvents/(coreCount·corePower·cpuEfficiency/100) + baseTime, JEDI's formula inverted.

    cpu_time: HS06 s per event. core_power: HS06 of one core here, `hs06_job / allocated_cpu` of $JOBFEATURES.
    cpu_efficiency: per cent. base_time: s. None when the time does not scale with events (cpu_efficiency 0) and for
    values with which it could not be told: none or negative events, cores or power.
    """
    if not (cpu_time >= 0 and events > 0 and cores >= 1 and core_power > 0 and 0 < cpu_efficiency <= 100):
        return None
    power = cores * core_power * cpu_efficiency / 100
    found = cpu_time * events / power + max(0.0, base_time) if power > 0 else math.inf
    return found if found < math.inf else None


class History:
    """Run times by kind of job, from the widest kind to the narrowest.

    window: run times that each kind keeps. widest: words of the widest kind that may speak; with 0 all jobs are one.
    """

    def __init__(self, window: int = WINDOW, least_jobs: int = LEAST_JOBS, widest: int = 0) -> None:
        self._window, self._least, self._widest = window, least_jobs, widest
        self._run_times: dict[Kind, RunTimes] = {}

    def learn(self, kind: Kind, seconds: float) -> None:
        """A job of that kind has ended after so many seconds; every wider kind learns it, too."""
        for length in range(self._widest, len(kind) + 1):
            part = kind[:length]
            found = self._run_times.get(part)
            if found is None:
                if len(self._run_times) >= MOST_KINDS:
                    continue
                found = self._run_times[part] = RunTimes(self._window)
            found.add(seconds)

    def run_time(
        self, kind: Kind, elapsed: float = 0.0, quantile: float = MEDIAN, limit: float | None = None
    ) -> float | None:
        """Expected seconds in all of a job that has run for `elapsed` of them; None when nobody can tell.

        The narrowest kind with enough run times above `elapsed` speaks; never more than `limit`, the job's maximum.
        """
        for length in range(len(kind), self._widest - 1, -1):
            found = self._run_times.get(kind[:length])
            if found is None or len(found) < self._least:
                continue
            # Of those that few have outlived one job more or less would be half of the answer.
            if elapsed > 0 and length > self._widest and found.longer_than(elapsed) < self._least:
                continue
            seconds = found.quantile_after(elapsed, quantile)
            if seconds is not None:
                return seconds if limit is None else min(seconds, limit)
        return None

    def jobs(self, kind: Kind) -> int:
        """How many jobs of that kind were learned."""
        found = self._run_times.get(kind)
        return 0 if found is None else found.seen


def widening(words: Sequence[str]) -> Kind:
    """A kind of these words, without empty ones at its end."""
    found = list(words)
    while found and not found[-1]:
        found.pop()
    return tuple(found)

"""How long a payload is expected to run on this node by its events. Pure.

"Expected" is what is likely; the "maximum" is the payload's limit and never depends on an estimate.
"""

from __future__ import annotations

import math

MEDIAN = 0.5
LEAST_JOBS = 5
"""Fewer run times than these say nothing."""


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

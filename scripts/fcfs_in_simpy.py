"""First come, first served as one would write it in SimPy: what the schedule of the simulator is held against."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import simpy

from drainwise_simulate.trace import TraceJob


def first_come_first_served_in_simpy(jobs: Sequence[TraceJob], cores: int) -> list[float]:
    """The start of each job in s."""
    env = simpy.Environment()
    machine = simpy.Container(env, cores, init=cores)
    starts = [0.0] * len(jobs)

    def run(place: int, job: TraceJob) -> Generator[simpy.Event, Any, Any]:
        yield machine.get(job.cores)
        starts[place] = env.now
        yield env.timeout(job.run)
        yield machine.put(job.cores)

    def arrive() -> Generator[simpy.Event, Any, Any]:
        for place, job in enumerate(jobs):
            if job.submit > env.now:
                yield env.timeout(job.submit - env.now)
            env.process(run(place, job))

    env.process(arrive())
    env.run()
    return starts

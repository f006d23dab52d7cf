"""The simulator: its plain schedule of a whole log against SimPy's, and a whole comparison of all policies.

The excerpts in `traces/` are enough to see the ratio; the targets are meant for the whole logs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.figures import Figure
from drainwise.simulate.comparison import Case, run_cases
from drainwise.simulate.job import Job
from drainwise.simulate.policies import POLICIES
from drainwise.simulate.scenario import Scenario
from drainwise.simulate.schedule import busy_share, first_come_first_served
from drainwise.simulate.trace import Trace
from fcfs_in_simpy import first_come_first_served_in_simpy

REPLICATIONS, PROCESSES = 2, 2


def _seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def fitting_machine(jobs: Sequence[Job]) -> int:
    """Cores of a machine that these jobs keep busy, and that the widest fits on."""
    span, widest = max(1.0, jobs[-1].submit), max(job.cores for job in jobs)
    return max(widest, round(sum(job.run * job.cores for job in jobs) / span))


def against_simpy(trace: Trace, runs: int) -> list[Figure]:
    """The same schedule of the same jobs, in turn; raises RuntimeError when it is not the same, job by job."""
    jobs = trace.jobs
    cores = fitting_machine(jobs)
    starts = first_come_first_served(jobs, cores)
    if starts != first_come_first_served_in_simpy(jobs, cores):
        raise RuntimeError(f"the schedule of {trace.name} is not SimPy's")
    steps = (
        lambda: first_come_first_served_in_simpy(jobs, cores),
        lambda: first_come_first_served(jobs, cores),
    )
    simpy, ours = (
        statistics.median(times) for times in zip(*([_seconds(step) for step in steps] for _ in range(runs)))
    )
    busy = f"{busy_share(jobs, starts, cores):.0%} busy"
    return [
        Figure(f"SimPy, first come, first served: {len(jobs):,} jobs on {cores:,} cores, {busy}", simpy, 1.0, None),
        Figure("the same schedule, job by job, by the simulator", ours, ours / simpy, round(1 / 15, 3)),
    ]


def comparison(trace: Trace, scenario: Scenario) -> list[Figure]:
    """All policies on one log, in several processes."""
    took = _seconds(
        lambda: run_cases([trace.jobs], [Case(scenario)], POLICIES, replications=REPLICATIONS, processes=PROCESSES)
    )
    what = f"{len(POLICIES)} policies, {scenario.moments} decisions each, {REPLICATIONS} replications"
    return [Figure(f"{what}, {len(trace.jobs):,} jobs, {PROCESSES} processes", took, 1.0, None, limit=120.0)]

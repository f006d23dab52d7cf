"""The simulator: its plain schedule of a whole log against SimPy's, and a whole comparison of all policies.

The excerpts in `traces/` are enough to see the ratio; the targets are meant for the whole logs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.figures import Figure
from benchmarks.schedule import busy_share, first_come_first_served
from drainwise_simulate.comparison import Case, run_cases
from drainwise_simulate.policies.named import POLICIES
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import Trace, TraceJob, read_trace
from fcfs_in_simpy import first_come_first_served_in_simpy

REPLICATIONS, PROCESSES = 2, 2


_MIXED = ((8, 0.25), (16, 0.25), (32, 0.25), (64, 0.25))
DAY = 86400.0


def figures(path: str, runs: int) -> list[list[Figure]]:
    """Both tables of one log: the schedule against SimPy's, and a whole comparison on a site that its jobs fill."""
    trace = read_trace(path)
    wide = max(job.cores for job in trace.jobs) > 8
    scenario = Scenario(cores=_site_of(trace), mix=_MIXED if wide else ((8, 1.0),), lease=(15 if wide else 4) * DAY)
    return [against_simpy(trace, runs), comparison(trace, scenario)]


def _site_of(trace: Trace) -> int:
    """Cores of a site that the log keeps busy, in whole pilots of the largest size; 1024 at most."""
    return max(256, min(1024, fitting_machine(trace.jobs) // 64 * 64))


def _seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def fitting_machine(jobs: Sequence[TraceJob]) -> int:
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
    where = f"{len(trace.jobs):,} jobs, {scenario.cores} cores, {PROCESSES} processes"
    return [Figure(f"{what}; {where}", took, 1.0, None, limit=120.0)]

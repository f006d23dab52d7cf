"""One task as its jobs end: estimates when half of its scouts are done and again at the first hundred jobs.

Memory per task is flat: the first jobs until the second estimate, and then their figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drainwise.common.run_times import RunTimes, kind_of
from drainwise_tasks.estimate.exhausted import EXTERNAL, RETRIED, Evidence, TaskVerdict, verdicts
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.quantities import core_power_of
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.scouts import Figure, MissingFigure, Sample
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.spread import Spread

SCOUTS, FIRST_JOBS = "half of the scouts", "first jobs"
"""The two moments at which a task is estimated."""


@dataclass(frozen=True)
class Stage:
    """One estimate of a task: when it was made, from how many good jobs, its figures and the rules that speak.

    missing: the figures for which no job had enough events.
    """

    name: str
    jobs: int
    figures: tuple[Figure, ...]
    verdicts: tuple[TaskVerdict, ...]
    missing: tuple[MissingFigure, ...] = ()


class Task:
    """One task; jobs are added in the order in which they ended, their run times to what all tasks share."""

    def __init__(self, name: str, parameters: Parameters, settings: Settings, run_times: RunTimes) -> None:
        self.name, self.parameters, self._settings = name, parameters, settings
        self.kind, self.run_times = kind_of(name), run_times
        self._sample: Sample | None = Sample(parameters)
        self._half = (settings.scouts + 1) // 2
        self._cpu_time: float | None = None
        self.ended = self.good = self.failed = self.external = 0
        self.work = self.failed_work = 0.0
        """HS06 s of all jobs, and of those that failed."""
        self.stages: list[Stage] = []
        self.asked, self.estimated = Spread(), Spread()
        """How far the request, and the estimate before a job began to count, were from the time that it took."""

    def add(self, job: Finished) -> float | None:
        """Take in a job that has ended; the run time that was expected of it before, in seconds."""
        expected = self.expected(job)
        self.ended += 1
        seconds = job.end - job.start
        self.run_times.learn(self.kind, seconds)
        work = seconds * job.cores * (job.core_power or self.parameters.core_power)
        self.work += work
        if not job.good:
            self.failed += 1
            self.failed_work += work
            self.external += job.external
            return expected
        self.good += 1
        # Held against each other on the same jobs alone.
        requested = job.requested or self.parameters.walltime
        if expected is not None:
            self.estimated.add(expected, seconds)
            if requested:
                self.asked.add(requested, seconds)
        if self._sample is not None:
            self._sample.add(job)
            if self.good == self._half:
                self._estimate(SCOUTS)
            if self.good == self._settings.first_jobs:
                self._estimate(FIRST_JOBS)
                self._sample = None
        return expected

    def expected(self, job: Finished, elapsed: float = 0.0) -> float | None:
        """Return the expected seconds in all of a job of this task after `elapsed`; None: nobody can tell.

        By its events and the median cpuTime once that is known and not 0, else by what its like have run.
        """
        if self._cpu_time is not None and job.events is not None:
            task = self.parameters
            power = core_power_of(job, task)
            found = wall_time(self._cpu_time, job.events, job.cores, power, task.cpu_efficiency, task.base_time)
            if found is not None and found > elapsed:
                return found
        return self.run_times.expected(self.kind, elapsed)

    @property
    def missing(self) -> int:
        """Good jobs that are missing until the first estimate; 0 when it has been made."""
        return 0 if self.stages else self._half - self.good

    def verdicts(self) -> tuple[TaskVerdict, ...]:
        """Return the rules that apply now: those of the last estimate, and of the failures since then."""
        jobs = self._sample.jobs if self._sample is not None else []
        figures = self.stages[-1].figures if self.stages else ()
        now = self._judge(jobs if not self.missing else [], figures)
        if self._sample is not None or not self.stages:
            return now
        known = {verdict.rule for verdict in now}
        kept = tuple(verdict for verdict in self.stages[-1].verdicts if verdict.rule not in known)
        return now + tuple(verdict for verdict in kept if verdict.rule not in _OF_ALL_JOBS)

    def _estimate(self, name: str) -> None:
        if self._sample is None:
            return
        figures = self._sample.figures(self._settings)
        found = self._judge(self._sample.jobs, figures)
        known = {figure.name for figure in figures}
        missing = tuple(figure for figure in self._sample.missing() if figure.name not in known)
        self.stages.append(Stage(name, self.good, figures, found, missing))
        # Where nothing scaled with events, since all was over within baseTime, they say nothing of the time.
        self._cpu_time = self._sample.middle_cpu_time() or None

    def _judge(self, jobs: list[Finished], figures: tuple[Figure, ...]) -> tuple[TaskVerdict, ...]:
        counts = (self.ended, self.failed, self.external, self.work, self.failed_work)
        evidence = Evidence(tuple(jobs), figures, *counts)
        return verdicts(evidence, self.parameters, self._settings)


_OF_ALL_JOBS = (RETRIED, EXTERNAL)


def wall_time(
    cpu_time: float, events: float, cores: int, core_power: float, cpu_efficiency: float = 90, base_time: float = 600
) -> float | None:
    """Return cpuTime·nEvents/(coreCount·corePower·cpuEfficiency/100) + baseTime in s, JEDI's formula inverted.

    cpu_time: HS06 s per event. core_power: HS06 of one core here, `hs06_job / allocated_cpu` of $JOBFEATURES.
    cpu_efficiency: per cent. base_time: s. None when the time does not scale with events (cpu_efficiency 0) and for
    values with which it could not be known: none or negative events, cores or power.
    """
    if not (cpu_time >= 0 and events > 0 and cores >= 1 and core_power > 0 and 0 < cpu_efficiency <= 100):
        return None
    power = cores * core_power * cpu_efficiency / 100
    found = cpu_time * events / power + max(0.0, base_time) if power > 0 else math.inf
    return found if found < math.inf else None

"""A stream of finished payloads becomes one picture: figures per task, and what was expected beside what came true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from drainwise.estimate.learning import Task
from drainwise.estimate.parameters import Parameters
from drainwise.estimate.records import TOO_MANY_TASKS, Finished
from drainwise.estimate.settings import Settings

MOST_TASKS = 10_000
"""Tasks that are kept apart; jobs of further ones are counted as skipped."""
MOST_POINTS = 2000
"""Points of the plot. When they are full every second is dropped, and from then on every second is taken, and so on."""
ALL_OTHERS = "*"
"""The name under which parameters for all tasks that are not named stand."""


class Survey:
    """What is learned from jobs in the order in which they ended."""

    def __init__(self, settings: Settings, parameters: Mapping[str, Parameters], skips: Counter[str]) -> None:
        self._settings, self._parameters, self.skips = settings, parameters, skips
        self.tasks: dict[str, Task] = {}
        self.points: list[tuple[str, float, float]] = []
        """(task, expected, real) seconds of a sample of all jobs that were expected."""
        self._every, self._expected = 1, 0

    def add_all(self, jobs: Iterable[Finished]) -> None:
        """Take in many jobs."""
        tasks = self.tasks
        for job in jobs:
            task = tasks.get(job.task)
            if task is None:
                if len(tasks) >= MOST_TASKS:
                    self.skips[TOO_MANY_TASKS] += 1
                    continue
                task = tasks[job.task] = self._task(job.task)
            expected = task.add(job)
            if expected is not None and job.good:
                self._expected += 1
                if self._expected % self._every == 0:
                    self._point(job, expected)

    def _task(self, name: str) -> Task:
        known = self._parameters
        found = known.get(name) or known.get(ALL_OTHERS) or Parameters()
        return Task(name, found, self._settings)

    def _point(self, job: Finished, expected: float) -> None:
        self.points.append((job.task, expected, job.seconds))
        if len(self.points) > MOST_POINTS:
            del self.points[::2]
            self._every *= 2

"""A survey of finished payloads: figures per task, and expected beside real run times; and the same as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from drainwise.common.run_times import RunTimes
from drainwise_tasks.estimate.exhausted import TaskVerdict, is_exhausted
from drainwise_tasks.estimate.learning import Stage, Task
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.records.record import TOO_MANY_TASKS, Finished
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.spread import Spread

MOST_TASKS = 10_000
"""Tasks that are kept apart; jobs of further ones are counted as skipped."""
MOST_POINTS = 2000
"""Points of the plot. When they are full every second is dropped, and from then on every second is taken, and so on."""
ALL_OTHERS = "*"
"""The name under which parameters for all tasks that are not named stand."""


class Survey:
    """Learns from jobs in the order in which they ended."""

    def __init__(self, settings: Settings, parameters: Mapping[str, Parameters], skips: Counter[str]) -> None:
        self._settings, self._parameters, self.skips = settings, parameters, skips
        self.tasks: dict[str, Task] = {}
        self.run_times = RunTimes()
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
        return Task(name, found, self._settings, self.run_times)

    def _point(self, job: Finished, expected: float) -> None:
        self.points.append((job.task, expected, job.seconds))
        if len(self.points) > MOST_POINTS:
            del self.points[::2]
            self._every *= 2


P90 = 0.9


def as_json(survey: Survey) -> dict[str, object]:
    """Return the output of `drainwise estimate --json`. Times in s, sizes as the unit beside them says."""
    return {
        "tasks": {name: _task(task) for name, task in survey.tasks.items()},
        "skipped": dict(sorted(survey.skips.items())),
    }


def _task(task: Task) -> Mapping[str, object]:
    found = task.verdicts()
    return {
        "jobs": {"ended": task.ended, "good": task.good, "failed": task.failed},
        "missing": task.missing,
        "stages": [_stage(stage) for stage in task.stages],
        "exhausted": is_exhausted(found),
        "verdicts": [_verdict(verdict) for verdict in found],
        "run_time": {"expected": task.run_times.expected(task.kind), "from_jobs": task.run_times.known(task.kind)},
        "error_ratio": {"request": spread_json(task.asked), "estimate": spread_json(task.estimated)},
    }


def _stage(stage: Stage) -> Mapping[str, object]:
    return {
        "name": stage.name,
        "jobs": stage.jobs,
        "figures": {
            figure.name: {name: getattr(figure, name) for name in ("value", "unit", "jobs", "before", "note")}
            for figure in stage.figures
        },
        "missing": {figure.name: figure.why for figure in stage.missing},
        "verdicts": [_verdict(verdict) for verdict in stage.verdicts],
    }


def _verdict(verdict: TaskVerdict) -> Mapping[str, object]:
    return {"rule": verdict.rule, "figures": verdict.figures, "remove": list(verdict.remove), "excuse": verdict.excuse}


def spread_json(spread: Spread) -> Mapping[str, object]:
    """Return median and 90th percentile of an error ratio, and of how many jobs."""
    return {"jobs": spread.jobs, "median": spread.ratio(0.5), "p90": spread.ratio(P90)}

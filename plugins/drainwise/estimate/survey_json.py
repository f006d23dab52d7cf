"""A survey for programs: figures per task, before and after, and from how many jobs each."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.estimate.exhausted import Verdict, is_exhausted
from drainwise.estimate.learning import Stage, Task
from drainwise.estimate.spread import Spread
from drainwise.estimate.survey import Survey

P90 = 0.9


def as_json(survey: Survey) -> dict[str, object]:
    """What `drainwise estimate --json` prints. Times in s, sizes as the unit beside them says."""
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
        "run_time": {"expected": task.run_times.quantile_after(0, 0.5), "from_jobs": len(task.run_times)},
        "error_ratio": {"request": spread_json(task.asked), "estimate": spread_json(task.estimated)},
    }


def _stage(stage: Stage) -> Mapping[str, object]:
    return {
        "name": stage.name,
        "jobs": stage.jobs,
        "figures": {
            figure.name: {
                "value": figure.value,
                "unit": figure.unit,
                "jobs": figure.jobs,
                "before": figure.before,
                "note": figure.note,
            }
            for figure in stage.figures
        },
        "verdicts": [_verdict(verdict) for verdict in stage.verdicts],
    }


def _verdict(verdict: Verdict) -> Mapping[str, object]:
    return {"rule": verdict.rule, "figures": verdict.figures, "remove": list(verdict.remove)}


def spread_json(spread: Spread) -> Mapping[str, object]:
    """Median and 90th percentile of an error ratio, and of how many jobs."""
    return {"jobs": spread.jobs, "median": spread.ratio(0.5), "p90": spread.ratio(P90)}

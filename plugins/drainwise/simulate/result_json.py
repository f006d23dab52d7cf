"""A study as JSON for programs: times in s, wastes in core-seconds and, per core given back, in core-hours."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Union

from drainwise.simulate.intervals import CONFIDENCE, Interval
from drainwise.simulate.scenario import Scenario
from drainwise.simulate.study import Study
from drainwise.simulate.summary import Line

Json = Union[dict[str, "Json"], list["Json"], str, float, int, None]


def as_json(study: Study) -> dict[str, Json]:
    """The whole study but for its single decisions, which are rows of the CSV."""
    return {
        "trace": {
            "name": study.trace.name,
            "computer": study.trace.said("Computer"),
            "jobs": len(study.trace.jobs),
            "skipped": dict(study.trace.skipped),
            "odd": dict(study.odd),
        },
        "scenario": _scenario(study.scenario),
        "replications": study.replications,
        "confidence": CONFIDENCE,
        "results": [
            {
                "jobs_of": part.title,
                "jobs": part.jobs,
                "core_seconds": part.core_seconds,
                "policies": [_line(line) for line in part.lines],
            }
            for part in study.parts
        ],
        "sweeps": {
            sweep.name: [
                {"label": point.label, "value": point.value, "policies": [_line(line) for line in point.lines]}
                for point in sweep.points
            ]
            for sweep in study.sweeps
        },
    }


def _scenario(scenario: Scenario) -> dict[str, Json]:
    found: dict[str, Json] = asdict(scenario)
    found["mix"] = {str(size): share for size, share in scenario.mix}
    return found


def _line(line: Line) -> dict[str, Json]:
    return {
        "policy": line.policy,
        "bursts": line.bursts,
        "replications": line.replications,
        "cores_asked": line.asked,
        "cores_given": line.given,
        "core_hours_per_core": _interval(line.per_core),
        "killed": _interval(line.killed),
        "drained": _interval(line.drained),
        "predicted": _interval(line.predicted),
        "to_clairvoyant": _interval(line.to_best),
        "to_youngest_first": _interval(line.to_youngest),
        "time_p50": _finite(line.half),
        "time_p95": _finite(line.most),
        "restarted_per_burst": _interval(line.restarted),
        "killed_pilots_share": line.at_once,
    }


def _interval(found: Interval | None) -> Json:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}


def _finite(seconds: float) -> float | None:
    """JSON has no infinity: what never came is null."""
    return seconds if math.isfinite(seconds) else None

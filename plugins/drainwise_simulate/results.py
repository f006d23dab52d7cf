"""A study for programs: as JSON, and every single decision as a row of CSV. Times in s, wastes in core-seconds."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Union

from drainwise_simulate.intervals import CONFIDENCE, Interval, quantile
from drainwise_simulate.outcome import Outcome
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.study import Study
from drainwise_simulate.summary import PolicyLine, waits_of

Json = Union[dict[str, "Json"], list["Json"], str, float, int, None]


def as_json(study: Study) -> dict[str, Json]:
    """Return the whole study but for its single decisions, which are rows of the CSV."""
    return {
        "trace": {
            "name": study.trace.name,
            "computer": study.trace.said("Computer"),
            "jobs": len(study.trace.jobs),
            "skipped": dict(study.trace.skipped),
            "unfit": dict(study.unfit),
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


def _line(line: PolicyLine) -> dict[str, Json]:
    return {name: _plain(value) for name, value in vars(line).items()}


def _plain(value: Interval | str | float | None) -> Json:
    """Return a figure as JSON has it: what never came is null, as JSON lacks infinity."""
    if isinstance(value, Interval):
        return {"value": value.value, "low": value.low, "high": value.high}
    return None if value == math.inf else value


HEADINGS = (
    *("jobs_of", "varied", "value", "policy", "replication", "burst", "moment_s"),
    *("cores_held", "cores_asked", "cores_given", "pilots", "pilots_killed"),
    *("killed_core_s", "drained_core_s", "predicted_core_s", "payloads_restarted", "time_p50_s", "time_p95_s"),
)
"""Times in s, wastes in core-seconds; a time is empty where the cores never came."""


def as_csv(study: Study) -> str:
    """Return one row for each decision, the sweeps' too, below a row of headings; lines end as RFC 4180 wants it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADINGS)
    writer.writerows(_rows(study))
    return out.getvalue()


def _rows(study: Study) -> Iterator[tuple[object, ...]]:
    arrivals = bool(study.scenario.arrivals)
    for part in study.parts:
        for one in part.outcomes:
            yield (part.title, "", "", *_decision(one, arrivals))
    for sweep in study.sweeps:
        for point in sweep.points:
            for one in point.outcomes:
                yield (study.parts[0].title, sweep.name, point.label, *_decision(one, arrivals))


def _decision(one: Outcome, arrivals: bool) -> tuple[object, ...]:
    waits = waits_of(one, arrivals)
    return (
        one.policy,
        one.replication,
        one.burst,
        f"{one.moment:.0f}",
        one.held,
        one.asked,
        one.given,
        one.pilots,
        one.ended_at_once,
        f"{one.killed:.1f}",
        f"{one.drained:.1f}",
        f"{one.predicted:.1f}",
        one.restarted,
        *(f"{time:.0f}" if math.isfinite(time) else "" for time in (quantile(waits, share) for share in (0.5, 0.95))),
    )

"""Every single decision of a study as a row, for whoever wants figures of their own."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator

from drainwise.simulate.intervals import quantile
from drainwise.simulate.outcome import Outcome
from drainwise.simulate.study import Study
from drainwise.simulate.summary import waits_of

HEADINGS = (
    "jobs_of",
    "varied",
    "value",
    "policy",
    "replication",
    "burst",
    "moment_s",
    "cores_held",
    "cores_asked",
    "cores_given",
    "pilots",
    "pilots_killed",
    "killed_core_s",
    "drained_core_s",
    "predicted_core_s",
    "payloads_restarted",
    "time_p50_s",
    "time_p95_s",
)
"""Times in s, wastes in core-seconds; a time is empty where the cores never came."""


def as_csv(study: Study) -> str:
    """One row for each decision, the sweeps' too, below a row of headings; lines end as RFC 4180 wants it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADINGS)
    writer.writerows(_rows(study))
    return out.getvalue()


def _rows(study: Study) -> Iterator[tuple[object, ...]]:
    arrivals = bool(study.scenario.comers)
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
        *(_time(quantile(waits, share)) for share in (0.5, 0.95)),
    )


def _time(seconds: float) -> str:
    return f"{seconds:.0f}" if math.isfinite(seconds) else ""

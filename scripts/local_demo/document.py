"""The result as one JSON document: everything that a test needs to check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from drainwise.reclaim.plan_json import as_json
from local_demo.outcome import DemoOutcome
from local_demo.parts import PartsOutcome
from local_demo.sums import verdict
from local_demo.timeline import all_back, cumulative
from local_demo.truth import begun_after, ended_between, lateness
from local_demo.workload import START_UP, DemoWorkload, seconds_of


def document(
    result: DemoOutcome, workload: DemoWorkload, options: Mapping[str, object], parts: PartsOutcome | None
) -> dict[str, object]:
    """Times in seconds (UNIX s where absolute), wastes in core-seconds. parts: the second scene, None for none."""
    sums = result.sums
    reported = {
        result.pilots[one.run]: one.report.heartbeat for one in result.snapshot.pilots if one.report is not None
    }
    back = all_back(sums.freed, sums.cores)
    return {
        "options": dict(options),
        "cores": {"all": workload.cores, "alice_owed": workload.alices_quota, "bob_owed": workload.bobs_quota},
        "pilots": [
            {**asdict(part), "job": result.jobs[part.name], "run": run}
            for part in workload.pilots
            for run, name in result.pilots.items()
            if name == part.name
        ],
        "decided": result.decided,
        "grace": workload.grace,
        "plan": as_json(result.plan),
        "acts": [{"run": act.order.pilot.run, "outcome": act.outcome} for act in result.outcome.acts],
        "ordered": [result.pilots[order.pilot.run] for order in result.plan.orders],
        "left": [leave.name for leave in sums.leaves],
        "survivors": list(result.survivors),
        "released": None if result.released is None else asdict(result.released),
        "bob": {"jobs": dict(result.bobs), "cores_back_after": back},
        "freed": [{"after": after, "cores": cores} for after, cores in cumulative(sums.freed)],
        "leaves": [
            {
                **asdict(leave),
                "wasted": leave.wasted,
                "adds_up": leave.adds_up,
                "unforeseen": asdict(begun_after(result.ran, leave.name, reported[leave.name], leave.ended)),
            }
            for leave in sums.leaves
        ],
        "late": max(0.0, lateness(result.ran, seconds_of(workload), START_UP)),
        "waste": {
            "predicted": sums.predicted,
            "realised": sums.wasted,
            "idle": sums.idle,
            "lost": sums.lost,
            "youngest_first": {
                **asdict(sums.rival),
                "ended_since_reports": sum(
                    ended_between(result.ran, name, reported[name], result.decided) for name in sums.rival.pilots
                ),
            },
        },
        "until_bob_has_all": {**asdict(result.spent), "wasted": result.spent.wasted},
        "parts": None if parts is None else {**asdict(parts), "wasted": parts.spent.wasted},
        "verdict": verdict(sums.wasted, sums.rival.wasted),
    }

"""The story as one JSON document: everything that a test needs to check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from drainwise.reclaim.plan_json import as_json
from local_demo.cast import Cast
from local_demo.story import Story
from local_demo.sums import verdict
from local_demo.timeline import all_back, cumulative


def document(story: Story, cast: Cast, options: Mapping[str, object]) -> dict[str, object]:
    """Times in seconds (UNIX s where absolute), wastes in core-seconds."""
    sums = story.sums
    back = all_back(sums.freed, sums.cores)
    return {
        "options": dict(options),
        "cores": {"all": cast.cores, "alice_owed": cast.alices_quota, "bob_owed": cast.bobs_quota},
        "pilots": [
            {**asdict(part), "job": story.jobs[part.name], "run": run}
            for part in cast.pilots
            for run, name in story.pilots.items()
            if name == part.name
        ],
        "decided": story.decided,
        "grace": cast.grace,
        "plan": as_json(story.plan),
        "acts": [{"run": act.order.pilot.run, "outcome": act.outcome} for act in story.outcome.acts],
        "asked": [story.pilots[order.pilot.run] for order in story.plan.orders],
        "left": [leave.name for leave in sums.leaves],
        "survivors": list(story.survivors),
        "bob": {"jobs": dict(story.bobs), "cores_back_after": back},
        "freed": [{"after": after, "cores": cores} for after, cores in cumulative(sums.freed)],
        "leaves": [{**asdict(leave), "wasted": leave.wasted, "adds_up": leave.adds_up} for leave in sums.leaves],
        "waste": {
            "predicted": sums.predicted,
            "realised": sums.wasted,
            "idle": sums.idle,
            "lost": sums.lost,
            "youngest_first": {**asdict(sums.rival)},
        },
        "verdict": verdict(sums.wasted, sums.rival.wasted),
    }

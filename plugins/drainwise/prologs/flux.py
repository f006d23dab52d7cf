"""Flux: `FLUX_JOB_ID` and `FLUX_JOB_USERID` in the environment, the job's R (RFC 20), and this broker's rank."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drainwise.features.host import cpu_list
from drainwise.prologs.described import DescribedJob, Questions, count


def questions(environment: Mapping[str, str], host: str) -> Questions:  # noqa: ARG001 - as the others have it
    """Return what is to be asked."""
    return {
        "job": ["flux", "job", "info", environment.get("FLUX_JOB_ID", ""), "R"],
        "rank": ["flux", "getattr", "rank"],
    }


def described(environment: Mapping[str, str], answers: Mapping[str, str], host: str, now: int) -> DescribedJob:  # noqa: ARG001
    """Make the facts of a job that starts `now`, UNIX s, unless its R says when."""
    execution = _execution(answers.get("job"))
    start, end = (_time(execution.get(name)) for name in ("starttime", "expiration"))
    limit = int(end - start) if start and end and end > start else None
    rank = count(answers.get("rank"))
    return DescribedJob(
        {
            "job_id": environment.get("FLUX_JOB_ID") or None,
            "jobstart_secs": int(start) if start else now,
            "allocated_cpu": None if rank is None else _cores(execution, rank),
            "wall_limit_secs": limit,
        },
        {},
        environment.get("FLUX_JOB_USERID") or None,
    )


def _execution(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")["execution"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e11 else None


def _cores(execution: dict[str, Any], rank: int) -> int | None:
    try:
        here = [one for one in execution["R_lite"] if rank in cpu_list(str(one["rank"]).strip("[]"))]
        return len(cpu_list(here[0]["children"]["core"])) or None
    except (KeyError, IndexError, TypeError, AttributeError):
        return None

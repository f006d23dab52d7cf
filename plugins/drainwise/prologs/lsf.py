"""LSF: `LSB_*` in the environment, `bjobs -json` and `bhosts -json`.

The run limit is taken as real time, as with ABS_RUNLIMIT=y; MEMLIMIT and SWAPLIMIT are 1024-based, in KB where
they have no unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from drainwise.prologs.described import DescribedJob, Questions, count, is_this_host, size

_LIMITS = "jobid runtimelimit memlimit swaplimit"
_MINUTES = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:\s*min.*|/.*)?")
_CLOCK = re.compile(r"([0-9]+):([0-9]{2})(?:/.*)?")


def job_name(environment: Mapping[str, str]) -> str:
    """Return the job's id, with its index in an array."""
    index = environment.get("LSB_JOBINDEX", "0")
    job = environment.get("LSB_JOBID", "")
    return job if index in {"", "0"} else f"{job}[{index}]"


def questions(environment: Mapping[str, str], host: str) -> Questions:
    """Return what is to be asked."""
    return {
        "job": ["bjobs", "-json", "-o", _LIMITS, job_name(environment)],
        "host": ["bhosts", "-json", "-o", "host_name max", host],
    }


def described(environment: Mapping[str, str], answers: Mapping[str, str], host: str, now: int) -> DescribedJob:
    """Make the facts of a job on `host` that starts `now`, UNIX s."""
    job, slots = _record(answers.get("job")), _record(answers.get("host"))
    return DescribedJob(
        {
            "job_id": job_name(environment) or None,
            "jobstart_secs": now,
            "allocated_cpu": _cores(environment, host),
            "wall_limit_secs": _run_limit(job.get("RUNTIMELIMIT", "")),
            "max_rss_bytes": size(job.get("MEMLIMIT"), 1024),
            "max_swap_bytes": size(job.get("SWAPLIMIT"), 1024),
        },
        {"jobslots": count(slots.get("MAX"))},
        environment.get("LSFUSER") or None,
    )


def _cores(environment: Mapping[str, str], host: str) -> int | None:
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    here = [count(number) or 0 for name, number in zip(words[::2], words[1::2]) if is_this_host(name, host)]
    return sum(here) or count(environment.get("LSB_DJOB_NUMPROC"))


def _run_limit(text: str) -> int | None:
    """Return the seconds of `60.0/hostA`, `60.0 min of hostA` (minutes) or `1:00` (hours and minutes)."""
    clock, minutes = _CLOCK.fullmatch(text.strip()), _MINUTES.fullmatch(text.strip())
    if clock is not None:
        return (int(clock[1]) * 60 + int(clock[2])) * 60
    return int(float(minutes[1]) * 60) if minutes is not None else None


def _record(text: str | None) -> dict[str, str]:
    """Return the one record of an answer, texts alone; empty for anything else."""
    try:
        found = json.loads(text or "{}")["RECORDS"][0]
        return {name: value for name, value in found.items() if isinstance(value, str)}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return {}

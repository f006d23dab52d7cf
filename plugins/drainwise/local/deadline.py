"""When a lease must end: its wall limit, what it was asked, its removal. Pure."""

from __future__ import annotations

from drainwise.local.job import Job

TERM = "term"
KILL = "kill"
AGAIN = 1.0
"""Seconds until what was killed and is still there is killed again."""


def due(job: Job, now: float, kill_wait: float) -> str | None:
    """What a running job gets at `now` (UNIX s): TERM at the end of its lease, KILL `kill_wait` s later, else None."""
    if job.term_sent is None:
        return TERM if job.removed or now >= job.lease_end else None
    if now < job.term_sent + kill_wait:
        return None
    return KILL if job.kill_sent is None or now >= job.kill_sent + AGAIN else None


def next_due(job: Job, kill_wait: float) -> float:
    """When `due` says something else, UNIX s."""
    if job.term_sent is None:
        return float(job.lease_end)
    return job.term_sent + kill_wait if job.kill_sent is None else job.kill_sent + AGAIN


def why_due(job: Job) -> str:
    """The reason in words."""
    if job.removed:
        return "removed"
    if job.deadline is not None and job.deadline < job.wall_end:
        return "its deadline has come"
    return "its wall limit is over"

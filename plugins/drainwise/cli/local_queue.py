"""Jobs of the local batch system as a table for people and as plain values for JSON."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from drainwise.cli.text import printable
from drainwise.local.job import ENDED, Job
from drainwise.local.store import Event
from drainwise.reclaim.words import duration

_HEADINGS = (">job", "account", "user", ">cores", "state", "node", ">run time", ">time left", "command", "remark")
_LONGEST = 40


def queue_table(jobs: Sequence[Job], kept: Mapping[int, str], now: int) -> str:
    """The jobs as columns at `now`, UNIX s; `kept`: what is kept for a job that waits, by its number."""
    rows = [tuple(name.lstrip(">") for name in _HEADINGS), *(_row(job, kept.get(job.job_id, ""), now) for job in jobs)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
    lines = []
    for row in rows:
        cells = (
            cell.rjust(width) if heading.startswith(">") else cell.ljust(width)
            for cell, width, heading in zip(row, widths, _HEADINGS)
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _row(job: Job, kept: str, now: int) -> tuple[str, ...]:
    request, ended = job.request, job.state == ENDED
    ran = "" if not job.started else duration(max(0, int(job.ended or now) - job.started))
    left = "" if ended or not job.started else duration(job.lease_end - now)
    command = printable(" ".join(request.command))
    return (
        str(job.job_id),
        request.account,
        request.user,
        str(request.cores),
        job.state,
        job.node,
        ran,
        left,
        command if len(command) <= _LONGEST else command[: _LONGEST - 1] + "…",
        printable(_remark(job) or kept),
    )


def _remark(job: Job) -> str:
    if job.state != ENDED:
        asked = "" if job.deadline is None else "asked to leave"
        return ", ".join(text for text in (asked, "removed" if job.removed else "", job.note) if text)
    how = "" if job.code is None else f"ended with {job.code}"
    if job.signal is not None:
        how = f"ended by {_signal_name(job.signal)}"
    return f"{how}: {job.note}" if how and job.note else how or job.note


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def job_as_json(job: Job, events: Sequence[Event]) -> dict[str, object]:
    """One job as plain values: times in UNIX s, null where it has not come to that. Its variables are left out."""
    request = job.request
    return {
        "job_id": job.job_id,
        "account": request.account,
        "user": request.user,
        "cores": request.cores,
        "command": list(request.command),
        "wall_limit": request.wall_limit,
        "priority": request.priority,
        "submitted": job.submitted,
        "state": job.state,
        "node": job.node or None,
        "run": job.run or None,
        "started": job.started or None,
        "lease_end": job.lease_end if job.started else None,
        "deadline": job.deadline,
        "removed": job.removed,
        "ended": job.ended,
        "code": job.code,
        "signal": job.signal,
        "note": job.note,
        "events": [{"time": event.time, "text": event.text} for event in events],
    }

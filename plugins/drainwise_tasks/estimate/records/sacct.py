"""Slurm's accounting as finished payloads: `sacct --parsable2` (or `--parsable`) with its header line.

The header names the columns; JobID, State, Start and End are needed. Steps (`12.batch`, `12.0`) follow their job and
lend it the memory and disk figures that Slurm keeps for steps alone. A job's task is its user and job name, an array's
its number. Times without an offset are taken as UTC: ElapsedRaw or Elapsed, where given, says how long a job ran.
"""

from __future__ import annotations

import calendar
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from drainwise.facts.errors import UsageError
from drainwise.facts.units import parse_amount, parse_clock
from drainwise_tasks.estimate.records.record import NOT_A_ROW, UNFINISHED, Finished, sound_one

_RUNNING = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "COMPLETING", "CONFIGURING", "RESIZING")
_EXTERNAL = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED")
_NEEDED = ("JobID", "State", "Start", "End")
_GPUS = re.compile(r"\bgres/gpu=([0-9]{1,9})\b")
_DISK = {"MaxDiskRead": "read_bytes", "MaxDiskWrite": "written_bytes"}


def read_sacct(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the jobs that ended; count those that wait or run still, and rows with other columns than the header.

    Raises UsageError when the first line is no header that names the columns that are needed.
    """
    names: list[str] | None = None
    job: dict[str, str] | None = None
    steps: dict[str, float] = {}
    for line in lines:
        cells = line.decode("utf-8", "replace").rstrip("\r\n").split("|")
        if names is None or cells[0] == "JobID":
            names = _header(cells)
            continue
        if len(cells) != len(names):
            skips[NOT_A_ROW] += 1
            continue
        row = dict(zip(names, cells))
        identity = row.get("JobID", "")
        if "." in identity:
            if job is not None and identity.partition(".")[0] == job["JobID"]:
                _lend(steps, row)
            continue
        if job is not None:
            yield from _sound(job, steps, skips)
        job, steps = row, {}
    if job is not None:
        yield from _sound(job, steps, skips)


def _header(cells: list[str]) -> list[str]:
    missing = [name for name in _NEEDED if name not in cells]
    if missing:
        raise UsageError(
            f"sacct's records: the first line does not name {', '.join(missing)}: have sacct print its header, and them"
        )
    return cells


def _lend(steps: dict[str, float], row: dict[str, str]) -> None:
    for column in ("MaxRSS", *_DISK):
        value = parse_amount(row.get(column, ""))
        if value is not None:
            steps[column] = max(steps.get(column, 0.0), value)


def _sound(job: dict[str, str], steps: dict[str, float], skips: Counter[str]) -> Iterator[Finished]:
    state = (job.get("State", "").split() or [""])[0].rstrip("+")
    if not state or state in _RUNNING:
        skips[UNFINISHED] += 1
        return
    own = {column: parse_amount(job.get(column, "")) for column in ("MaxRSS", *_DISK)}
    sizes = {column: steps.get(column, value) for column, value in own.items()}
    if sizes["MaxRSS"] == 0:
        sizes = dict.fromkeys(own)  # it ended before Slurm looked at it for the first time
    start, end = moment_of(job.get("Start", "")), moment_of(job.get("End", ""))
    ran = parse_clock(job.get("ElapsedRaw", "")) if job.get("ElapsedRaw") else parse_clock(job.get("Elapsed", ""))
    if start is not None and end is not None and ran is not None and end >= start:
        end = start + ran
    one = sound_one(
        {
            "task": _task(job),
            "state": "finished" if state == "COMPLETED" else "failed",
            "external": state in _EXTERNAL,
            "start": start,
            "end": end,
            "cores": _cores(job),
            # Exactly 0 is what stands there when nothing on the node could measure it.
            "cpu_seconds": parse_clock(job.get("TotalCPU", "")) or None,
            "memory_bytes": sizes["MaxRSS"],
            **{name: sizes[column] for column, name in _DISK.items()},
            "requested_seconds": _requested(job),
            "gpus": float(gpus[1]) if (gpus := _GPUS.search(job.get("AllocTRES", ""))) else None,
            "qos": job.get("QOS"),
        },
        skips,
    )
    if one is not None:
        yield one


def _task(job: dict[str, str]) -> str | None:
    identity = re.split(r"[_+]", job.get("JobID", ""), maxsplit=1)
    name = identity[0] if len(identity) > 1 else job.get("JobName") or identity[0]
    return f"{job['User']}/{name}" if job.get("User") and name else name or None


def _cores(job: dict[str, str]) -> object:
    text = job.get("AllocCPUS") or job.get("NCPUS") or "1"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _requested(job: dict[str, str]) -> float | None:
    minutes = job.get("TimelimitRaw", "")
    if minutes.isascii() and minutes.isdigit() and len(minutes) < 12:
        return 60.0 * int(minutes)
    return parse_clock(job.get("Timelimit", ""))


def moment_of(text: str) -> float | None:
    """Return UNIX s of `2026-11-21T15:02:21` (as UTC) or of a number of seconds; None for anything else."""
    if text.isascii() and text.isdigit() and len(text) < 13:
        return float(text)
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None

"""Leases that shrink: what pilots have returned of their cores, who holds it, and what they are told. Pure.

The daemon lends what it believes to be returned. A pilot that uses cores again may find that others hold them still:
its node then owes cores, and each pilot there is told to leave so many alone until they are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from drainwise.local.job import LocalJob
from drainwise.node.settings import DEFAULT_HEARTBEAT_LIMIT
from drainwise.pilotad.partial_return import (
    NOTHING_RETURNED,
    Acknowledgement,
    ReturnedPart,
    acknowledgement,
    returned_part,
)
from drainwise.pilotad.report import PilotReport


def returned_parts(
    live: Iterable[LocalJob],
    reports: Mapping[str, PilotReport],
    now: float,
    heartbeat_limit: int = DEFAULT_HEARTBEAT_LIMIT,
) -> dict[str, ReturnedPart]:
    """Return what the pilots among these jobs have returned at `now` (UNIX s), by run; those who return none left out.

    reports: by run, as far as there are any. heartbeat_limit: seconds.
    """
    found = {}
    for job in live:
        report = reports.get(job.run)
        if report is not None and report.returned_cores is not None:
            part = returned_part(report, job.cores, None, int(now), heartbeat_limit, job.started)
            if part != NOTHING_RETURNED:
                found[job.run] = part
    return found


def held_cores(job: LocalJob, returned: Mapping[str, ReturnedPart]) -> int:
    """Return the cores that a job holds: those of its lease that it has not returned."""
    return job.cores - returned.get(job.run, NOTHING_RETURNED).cores


def owed_by_node(
    live: Iterable[LocalJob], returned: Mapping[str, ReturnedPart], nodes: Mapping[str, int]
) -> dict[str, int]:
    """Return the cores by which what jobs hold on a node exceeds it; 0 where nothing does. nodes: their cores."""
    free = dict(nodes)
    for job in live:
        if job.node in free:
            free[job.node] -= held_cores(job, returned)
    return {name: max(0, -cores) for name, cores in free.items()}


def cores_gone_without(
    live: Iterable[LocalJob],
    returned: Mapping[str, ReturnedPart],
    reports: Mapping[str, PilotReport],
    owed: Mapping[str, int],
) -> dict[str, int]:
    """Return the cores that each pilot goes without, by run: those that it has returned, and those that are owed to it.

    What a node owes is shared among its pilots that return any, as far as their payloads leave cores idle: none of them
    may use it. reports: by run. owed: see `owed_by_node`.
    """
    left, found = dict(owed), {}
    for job in live:
        part = returned.get(job.run)
        if part is not None:
            used = math.ceil(reports[job.run].used_cpu or 0.0)
            waits = max(0, min(left.get(job.node, 0), job.cores - part.cores - max(1, used)))
            left[job.node] = left.get(job.node, 0) - waits
            found[job.run] = part.cores + waits
    return found


def acknowledged(job: LocalJob, returned: Mapping[str, ReturnedPart], owed: int) -> Acknowledgement | None:
    """Return what a pilot is told about its statement; None where none is believed. owed: cores by its node."""
    part = returned.get(job.run)
    return None if part is None else acknowledgement(part, job.cores, part.cores + owed)

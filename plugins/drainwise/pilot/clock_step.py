"""A lease and its payloads after the machine's clock was set: by the new clock they are where they were."""

from __future__ import annotations

from drainwise.pilot.lease import Lease
from drainwise.pilot.workload import Running, Workload


def moved_lease(lease: Lease, seconds: float) -> Lease:
    """The lease by a clock that was set by so much: as long as before."""
    return Lease(lease.cores, lease.start + seconds, None if lease.end is None else lease.end + seconds)


def moved_workload(workload: Workload, seconds: float) -> Workload:
    """What runs by a clock that was set by so much: every payload has run as long as before, and may run as long."""
    moved = Workload(workload.last_start + seconds)
    for each in workload.running.values():
        ends = each.expected_end + seconds, each.maximum_end + seconds
        moved.add(Running(each.payload, each.start + seconds, *ends))
    return moved


def moved_moment(moment: float | None, seconds: float) -> float | None:
    """A moment that was kept, if any."""
    return None if moment is None else moment + seconds

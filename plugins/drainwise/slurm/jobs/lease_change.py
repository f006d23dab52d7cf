"""Decide whether a lease was shortened, and set an end that shows it.

A lease lasts from a run's start to its end (EndTime). slurmctld keeps no earlier end, so there are two witnesses:
* The time limit, for the snapshot and for orders, which may see the job for the first time. Slurm makes it the whole
  minutes that a new end needs, so a lease that ends before its limit is over was shortened. An end on the minute could
  not be known from a lease of that length: `sooner_end` sets none.
* The granted end, for a node's agent, which keeps it since the job began. So the agent tells a job of every lease that
  ends before that, also of one that somebody else has shortened to the minute.
"""

from __future__ import annotations

from drainwise.facts.errors import ActionRefused
from drainwise.slurm import ENDLESS
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import ENDLESS_MINUTES

_MINUTE = 60
_MORE, _LESS = 29, 89  # s


def is_shortened(job: SlurmJob) -> bool:
    """Decide by its time limit whether a run was made to end sooner."""
    if job.start is None or job.end is None or job.limit is None:
        return False
    return job.end < job.start + job.limit * _MINUTE


def shortened_end(job: SlurmJob, granted: int | None) -> int | None:
    """Return the end of a run that ends before the `granted` end (UNIX s, None: without end); None for another one."""
    if job.end is None or job.start is None:
        return None
    return job.end if job.end < (job.start + ENDLESS if granted is None else granted) else None


def granted_by_limit(job: SlurmJob) -> int | None:
    """Return the end that the time limit grants, UNIX s; None without end.

    An order that is older than this look has made the limit the whole minutes up to the new end: still after that end.
    """
    if job.start is None or job.limit is None or job.limit >= ENDLESS_MINUTES:
        return None
    return job.start + job.limit * _MINUTE


def lease_end(job: SlurmJob) -> int | None:
    """Return the end of a run, UNIX s; None without end: Slurm gives it a year then."""
    return None if job.end is None or job.end - (job.start or 0) >= ENDLESS else job.end


def sooner_end(start: int, end: int | None, deadline: int) -> int:
    """Return the end to set so that the run is gone by `deadline` and is seen to be shortened; all UNIX s.

    `end` is None for a lease without end. Raises ActionRefused when the lease ends before `deadline`.
    """
    if end is not None and deadline > end:
        raise ActionRefused(f"its lease ends by {end} already; an order cannot move it later to {deadline}")
    sooner = deadline if end is None else min(deadline, end - 1)
    return sooner - 1 if (sooner - start) % _MINUTE == 0 else sooner


def steps_to(end: int, wanted: int) -> list[int]:
    """Return the ends (UNIX s) to set one after the other so that the last is `wanted` and the time limit stays.

    With each new end Slurm changes the time limit by the difference and half a minute, in whole minutes cut towards 0:
    smaller changes leave it as it is.
    """
    steps = []
    while end != wanted:
        end = min(wanted, end + _MORE) if end < wanted else max(wanted, end - _LESS)
        steps.append(end)
    return steps

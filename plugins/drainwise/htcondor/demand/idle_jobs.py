"""Read the idle jobs of an access point: one ad for all jobs that are alike, as a schedd groups them. Pure.

A schedd groups its jobs by the attributes that it is asked for, and by all that these refer to (QueryOpt.GroupBy). Its
autoclusters would count the running jobs and the held ones, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from drainwise.htcondor.ads.values import LARGEST_POOL
from drainwise.htcondor.demand.concurrency import limits_taken
from drainwise.htcondor.demand.resources import job_needs
from drainwise.htcondor.demand.told import IdleJobs

UNIVERSES = (5, 10, 13)
"""Vanilla (container and docker, too), java, vm: what starts in a slot by itself."""

IDLE = (
    f"JobStatus == 1 && ({' || '.join(f'JobUniverse == {number}' for number in UNIVERSES)})"
    ' && Managed =!= "External" && (JobCoolDownExpiration > time()) =!= true'
)
"""The jobs that a schedd would run now: not those that a job router has taken, whose routed copies count, and not those
that cool down."""

JOB_ATTRIBUTES = (
    "JobStatus",
    "JobUniverse",
    "JobPrio",
    "Owner",
    "User",
    "AccountingGroup",
    "ConcurrencyLimits",
    "DeferralTime",
    "Requirements",
    "RequireGPUs",
    "RequestCpus",
    "RequestMemory",
    "RequestDisk",
)
COUNTED = ("JobIds", "JobCount", "Id", "JobStatus", "JobPrio")
"""What tells one group from the others and says nothing of where it could run."""

_FIRST = re.compile(r"(\d{1,12})\.(\d{1,12})")
_SOON = 600  # s; a job that may start before then is waited for


def idle_jobs(schedd: str, value_of: Callable[[str], object], names: Collection[str], now: float) -> IdleJobs | None:
    """Return the jobs of one group; None for one of which nothing could start at `now` (UNIX s), or that is no group.

    value_of: the evaluated value of an attribute of the group, None where it has none. names: the pool's countables.
    """
    jobs, owner = value_of("JobCount"), value_of("Owner")
    if type(jobs) is not int or not 0 < jobs <= LARGEST_POOL or not isinstance(owner, str):
        return None
    start = value_of("DeferralTime")
    if (type(start) is int or type(start) is float) and start > now + _SOON:
        return None
    group, user, priority = value_of("AccountingGroup"), value_of("User"), value_of("JobPrio")
    submitter = group if isinstance(group, str) and group else owner
    if "@" not in submitter and isinstance(user, str):
        submitter += f"@{user.rpartition('@')[2]}"
    ids = value_of("JobIds")
    first = _FIRST.match(ids) if isinstance(ids, str) else None
    return IdleJobs(
        schedd=schedd,
        submitter=submitter,
        jobs=jobs,
        needs=job_needs(value_of, names),
        priority=priority if type(priority) is int else 0,
        first=(int(first[1]), int(first[2])) if first else (0, 0),
        limits=limits_taken(value_of("ConcurrencyLimits")),
    )

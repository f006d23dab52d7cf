"""The idle jobs of a pool as the access points have them, and what is told beside them: places, limits. Pure.

A schedd groups its jobs by the attributes that it is asked for, and by all that these refer to (QueryOpt.GroupBy): one
ad for all jobs that are alike. Its autoclusters would count the running jobs and the held ones, too.

A job names concurrency limits and how much of each it takes (`ConcurrencyLimits = "db:2, sw.license"`). The
configuration of the negotiator has the largest sum of each (`DB_LIMIT`), and each slot shows what its job takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from drainwise.htcondor.ads.values import LARGEST_POOL
from drainwise.htcondor.demand.resources import job_needs
from drainwise.pool.amounts import Amounts
from drainwise.pool.job_kinds import Place


@dataclass(frozen=True)
class IdleJobs:
    """Idle jobs of one submitter at one access point that ask for the same.

    priority: JobPrio, larger first. first: the first job, (cluster, process). asks: their requirements beside the
    amounts, with the job's own values put in; key: all by which they match otherwise than other jobs. ad: the text of a
    ClassAd with what matching needs. classes: of the places where they may run and could, were they empty; None where
    that could not be found out. limits: what each job takes of concurrency limits, by their names. whole: it takes all
    of a place, however large.
    """

    schedd: str
    submitter: str
    jobs: int
    needs: Amounts
    priority: int = 0
    first: tuple[int, int] = (0, 0)
    asks: str = ""
    key: str = ""
    ad: str = ""
    classes: frozenset[str] | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    whole: bool = False


class SeenPlace(NamedTuple):
    """A slot that is not dynamic and takes jobs: what is free as it says itself, `heard` of at that UNIX time (s).

    is_unclaimed: its state, which is that of what is free.
    """

    place: Place
    heard: int | None
    is_unclaimed: bool = True


@dataclass(frozen=True)
class Told:
    """What was told. silent: why an access point did not tell its jobs, by its name; notices: what is not exact.

    limits_left: what is left of concurrency limits, by their names; one that is not there is not known.
    """

    places: Sequence[SeenPlace] = ()
    jobs: Sequence[IdleJobs] = ()
    answered: frozenset[str] = frozenset()
    silent: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    limits_left: Mapping[str, float] = field(default_factory=dict)


_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?", re.ASCII)
_DEFAULT = "CONCURRENCY_LIMIT_DEFAULT"
_LONGEST = 4096  # characters of an attribute
_ROUNDING = 1e-6


def limits_taken(value: object) -> dict[str, float]:
    """Return what a job takes of each limit, by its name in lower case; value: of ConcurrencyLimits.

    An amount that is none or not positive is 1, as the negotiator reads it.
    """
    taken: dict[str, float] = {}
    for word in re.split(r"[\s,]+", value[:_LONGEST].lower()) if isinstance(value, str) else ():
        name, _, amount = word.partition(":")
        if _NAME.fullmatch(name):
            number = _number(amount)
            taken[name] = number if number is not None and number > 0 else 1.0
    return taken


def largest_sum(name: str, knob: Callable[[str], str | None]) -> float:
    """Return the largest sum of a limit by the negotiator's configuration; endless where it has none that is a number.

    knob: the value of a knob, None where it is not set. A limit `a.b` without a knob of its own has that of its group,
    CONCURRENCY_LIMIT_DEFAULT_A.
    """
    group = name.rpartition(".")[0]
    for one in (f"{name}_LIMIT", *((f"{_DEFAULT}_{group}",) if group else ()), _DEFAULT):
        number = _number(knob(one) or "")
        if number is not None:
            return number
    return math.inf


def jobs_within(jobs: int, taken: Mapping[str, float], left: Mapping[str, float]) -> tuple[int, str]:
    """Return how many of some like jobs the limits let start, and the limit that lets the fewest start, or "".

    taken: what each of them takes; left: what is left of each limit, endless where it is not there.
    """
    most, which = jobs, ""
    for name, amount in taken.items():
        room = left.get(name, math.inf)
        if room < amount * most - _ROUNDING:
            most, which = max(0, math.floor(room / amount + _ROUNDING)), name
    return most, which


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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

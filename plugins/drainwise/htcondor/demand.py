"""What waits at the access points, less what could not start if cores were free.

A submitter ad counts idle jobs of the vanilla universe that could be matched: no held jobs, none of the local and
scheduler universe, none that wait for a factory (`max_idle`, `max_materialize`), and none of the parallel universe. It
does count what a concurrency limit, a deferred start or the job's own requirements hold up, and no ad tells of those.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from drainwise.htcondor.left_out import named
from drainwise.htcondor.pool_ads import LARGEST_POOL, Ad, number, odd_number, shown, text
from drainwise.htcondor.shares import Account

DEDICATED = "DedicatedScheduler@"
_RANGES = {"IdleJobs": LARGEST_POOL, "WeightedIdleJobs": LARGEST_POOL, "RunningJobs": LARGEST_POOL}


@dataclass(frozen=True)
class Demand:
    """Idle jobs and their cores by submitter, over all access points; notices: what was not counted, and why."""

    waiting: Mapping[str, tuple[float, float]]
    notices: tuple[str, ...]


class _LeftOut:
    """Whose demand is not counted, by the reason."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)

    def note(self, name: str, reason: str) -> None:
        self._names[reason].add(name)

    def sentences(self) -> Iterator[str]:
        for reason, names in self._names.items():
            yield f"of what {named(names)} {'waits' if len(names) == 1 else 'wait'} for not all is counted: {reason}"


def demand_of(
    submitters: Sequence[Ad],
    schedds: Sequence[Ad],
    accounts: Sequence[Account],
    running: Mapping[str | None, int],
    cores_per_weight: float,
    largest: int | None,
) -> Demand:
    """What waits by the ads of submitters and schedds, in cores.

    An access point tells seldom how many jobs wait, the nodes at once which ones run: what has started since it told
    (`running`: slots with a job by submitter) waits no more. largest: cores of the largest slot of the pool.
    """
    left_out, told = _LeftOut(), defaultdict[str, float](float)
    idle: dict[str, tuple[float, float]] = {}
    parts = _parts_that_may_run(submitters, schedds)
    for ad in submitters:
        name = text(ad, "Name")
        if name is None:
            continue
        if odd := odd_number(ad, _RANGES):
            left_out.note(name, f"its submitter ad says {odd} = {shown(ad[odd])}")
            continue
        jobs, weight, runs = number(ad, "IdleJobs"), number(ad, "WeightedIdleJobs"), number(ad, "RunningJobs")
        told[name] += math.inf if runs is None else runs
        if name.startswith(DEDICATED):
            left_out.note(name, "HTCondor does not say how many jobs of the parallel universe wait")
        if not jobs or jobs < 1:
            continue
        cores = (jobs if weight is None else weight) * cores_per_weight
        if largest is not None and cores / jobs > largest:
            size = f"{cores / jobs:.4g} cores on average, and the largest slot has {largest}"
            left_out.note(name, f"its jobs ask for {size}")
            continue
        schedd = text(ad, "ScheddName")
        part = parts.get(schedd, 1.0)
        if part < 1:
            left_out.note(name, f"the schedd {shown(schedd)} may run no more jobs (MAX_JOBS_RUNNING)")
        before = idle.get(name, (0.0, 0.0))
        idle[name] = (before[0] + jobs * part, before[1] + cores * part)
    by_name = {account.name: account for account in accounts}
    waiting = {}
    for name, waits in idle.items():
        jobs, cores = _less(waits, running.get(name, 0) - told[name])
        room = _room(by_name.get(name)) * cores_per_weight
        if cores > room:
            left_out.note(name, "it may use no more cores (its ceiling, condor_userprio -setceil)")
            jobs, cores = jobs * room / cores, room
        waiting[name] = (jobs, cores)
    return Demand(waiting, tuple(left_out.sentences()))


def _parts_that_may_run(submitters: Iterable[Ad], schedds: Iterable[Ad]) -> dict[str | None, float]:
    """Of the schedds that may not run all their idle jobs (MAX_JOBS_RUNNING): the part of these that they may."""
    idle: dict[str | None, float] = defaultdict(float)
    for ad in submitters:
        if not odd_number(ad, _RANGES):
            idle[text(ad, "ScheddName")] += number(ad, "IdleJobs") or 0.0
    parts: dict[str | None, float] = {}
    for ad in schedds:
        name, most, runs = text(ad, "Name"), number(ad, "MaxJobsRunning"), number(ad, "ShadowsRunning")
        if name is not None and most is not None and runs is not None and max(0.0, most - runs) < idle[name]:
            parts[name] = max(0.0, most - runs) / idle[name]
    return parts


def _room(account: Account | None) -> float:
    """The weight that a submitter may use beside what it uses."""
    if account is None or account.ceiling is None:
        return math.inf
    return max(0.0, account.ceiling - account.used)


def _less(waits: tuple[float, float], started: float) -> tuple[float, float]:
    """Jobs and cores that still wait when `started` of the jobs run by now."""
    jobs, cores = waits
    if jobs <= 0:
        return 0.0, 0.0
    left = jobs - max(0.0, min(jobs, started))
    return left, cores * left / jobs

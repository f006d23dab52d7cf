"""Demand: the jobs that wait at the access points, less those that could not start if cores were free.

An access point that tells its idle jobs is believed: what no place could run is no demand. Of another, the submitter
ads count: idle jobs of the vanilla universe that could be matched, no held jobs, none of the local and scheduler
universe, none that wait for a factory (`max_idle`, `max_materialize`), and none of the parallel universe. These do
count what a concurrency limit, a deferred start or the job's own requirements hold up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from drainwise.common.printable import one_line
from drainwise.htcondor.ads.values import LARGEST_POOL, Ad, named, number, odd_number, shown, text
from drainwise.htcondor.demand.idle_jobs import IdleJobs, SeenPlace, Told, jobs_within
from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.job_kinds import JobKind, kind_name, merged

DEDICATED = "DedicatedScheduler@"
UNTOLD = "requirements that its access point does not tell"
_RANGES = {"IdleJobs": LARGEST_POOL, "WeightedIdleJobs": LARGEST_POOL, "RunningJobs": LARGEST_POOL}
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Demand:
    """Idle jobs and their cores by submitter, over all access points; notices: what was not counted, and why.

    kinds: the jobs by what they ask; None where no access point was asked.
    """

    waiting: Mapping[str, tuple[float, float]]
    notices: tuple[str, ...]
    kinds: tuple[JobKind, ...] | None = None


@dataclass(frozen=True)
class DemandLimits:
    """What keeps jobs from starting. largest: cores of the largest slot; None: not known.

    rooms: cores that a submitter may use beside what it uses, by its name; endless where it is not there. running:
    slots with a job by submitter. cores_per_weight: cores of a slot weight of 1. claims: what the slots have that a
    submitter has claimed and in which no job runs yet.
    """

    running: Mapping[str | None, int]
    cores_per_weight: float
    largest: int | None
    rooms: Mapping[str, float]
    claims: Mapping[str, Sequence[Amounts]] = field(default_factory=dict)


class _LeftOut:
    """Submitters whose demand is not counted, by the reason."""

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
    limits: DemandLimits,
    told: Told | None = None,
    account_of: Callable[[str], str] = str,
) -> Demand:
    """Return the demand in cores: by what the access points tell, else by the ads of submitters and schedds.

    account_of: the account of a submitter.
    """
    left_out, rooms = _LeftOut(), dict(limits.rooms)
    waiting: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    kinds: list[JobKind] = []
    everywhere = _Everywhere(() if told is None else told.places)
    claims = {name: list(held) for name, held in limits.claims.items()}
    for one in _startable(Told() if told is None else told, schedds, rooms, left_out):
        classes = everywhere.that_hold(one.needs) if one.classes is None else one.classes
        starting = _starting(one, claims.get(one.submitter, [])) if classes else 0
        kinds.append(replace(_kind(one, account_of(one.submitter), classes), starting=starting))
        counted = one.jobs if classes else 0
        _add(waiting, one.submitter, counted, counted * one.needs.cores)
    stated = _stated(submitters, schedds, limits, frozenset() if told is None else told.answered, left_out)
    for name, waits in stated.items():
        jobs, cores = waits
        room = rooms.get(name, math.inf)
        if cores > room:
            left_out.note(name, _CEILING)
            jobs, cores = jobs * room / cores, room
        whole = math.floor(jobs + _ROUNDING)
        if told is not None and whole:
            needs = amounts(math.ceil(cores / jobs - _ROUNDING))
            untold = IdleJobs("", name, whole, needs, asks=UNTOLD, key=UNTOLD)
            kinds.append(_kind(untold, account_of(name), everywhere.that_hold(needs)))
            if not kinds[-1].classes:
                jobs = cores = 0.0
        _add(waiting, name, jobs, cores)
    notices = (*left_out.sentences(), *(() if told is None else (*_silent(told), *told.notices)))
    if told is None:
        return Demand(dict(waiting), notices)
    kept, more = merged(kinds)
    return Demand(dict(waiting), (*notices, *more), kept)


def _starting(one: IdleJobs, claims: list[Amounts]) -> int:
    """Return how many of the jobs will start in a submitter's claims without a job; these are no claims of others then.

    The negotiator has matched them, or the claim's last job has ended: until they run, their access point calls them
    idle.
    """
    fitting = [held for held in claims if held.covers(one.needs)][: one.jobs]
    for held in fitting:
        claims.remove(held)
    return len(fitting)


class _Everywhere:
    """The classes of all places, for jobs of which nothing else is known than what they need."""

    def __init__(self, places: Iterable[SeenPlace]) -> None:
        self._totals: dict[str, set[Amounts]] = defaultdict(set)
        for seen in places:
            self._totals[seen.place.node_class].add(seen.place.total)

    def that_hold(self, needs: Amounts) -> frozenset[str]:
        """Return the classes that have a place where such a job fits, were it empty."""
        return frozenset(name for name, totals in self._totals.items() if any(one.covers(needs) for one in totals))


def _add(waiting: dict[str, tuple[float, float]], name: str, jobs: float, cores: float) -> None:
    before = waiting[name]
    waiting[name] = (before[0] + jobs, before[1] + cores)


def _startable(told: Told, schedds: Iterable[Ad], rooms: dict[str, float], left_out: _LeftOut) -> Iterator[IdleJobs]:
    """Yield the idle jobs that could start, in the order in which they should, and those that no place can run.

    rooms: cores that are left to each submitter; lessened by what it is given.
    """
    left = {name: room for ad in schedds if (name := text(ad, "Name")) and (room := _jobs_to_run(ad)) is not None}
    limits = dict(told.limits_left)
    for one in sorted(told.jobs, key=lambda one: (-one.priority, one.first, one.schedd)):
        jobs, cores = one.jobs, one.needs.cores
        if one.classes is None or one.classes:
            if jobs > left.get(one.schedd, jobs):
                left_out.note(one.submitter, _no_more_jobs(one.schedd))
                jobs = int(left[one.schedd])
            if jobs * cores > rooms.get(one.submitter, math.inf) + _ROUNDING:
                left_out.note(one.submitter, _CEILING)
                jobs = int((rooms[one.submitter] + _ROUNDING) // cores)
            jobs, limit = jobs_within(jobs, one.limits, limits)
            if limit:
                left_out.note(one.submitter, f"the concurrency limit {limit.upper()}_LIMIT lets no more start")
            for name in one.limits.keys() & limits.keys():
                limits[name] -= jobs * one.limits[name]
            if one.schedd in left:
                left[one.schedd] -= jobs
            if one.submitter in rooms:
                rooms[one.submitter] -= jobs * cores
        if jobs > 0:
            yield replace(one, jobs=jobs)


def _kind(one: IdleJobs, account: str, classes: frozenset[str]) -> JobKind:
    example = f"{shown(one.schedd)}#{one.first[0]}.{one.first[1]}" if one.schedd else ""
    return JobKind(
        kind_name(account, one.needs, one.key, whole=one.whole),
        account,
        one.jobs,
        one.needs,
        classes,
        whole=one.whole,
        asks=one_line(one.asks),
        example=example,
    )


def _silent(told: Told) -> Iterator[str]:
    """Say which access points did not tell their jobs."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for schedd, why in told.silent.items():
        reasons[why].add(schedd)
    for why, schedds in reasons.items():
        yield f"the jobs of {named(schedds)} count by their cores alone, wherever they may run: {why}"


def _stated(
    submitters: Sequence[Ad], schedds: Sequence[Ad], limits: DemandLimits, answered: Collection[str], left_out: _LeftOut
) -> dict[str, tuple[float, float]]:
    """Return jobs and cores by submitter by the ads of those whose access point did not answer.

    A submitter ad states seldom how many jobs wait, the nodes at once which ones run: what has started since then
    waits no more.
    """
    stated, idle = defaultdict[str, float](float), dict[str, tuple[float, float]]()
    parts = _parts_that_may_run(submitters, schedds)
    for ad in submitters:
        name, schedd = text(ad, "Name"), text(ad, "ScheddName")
        if name is None:
            continue
        if odd := odd_number(ad, _RANGES):
            left_out.note(name, f"its submitter ad says {odd} = {shown(ad[odd])}")
            continue
        jobs, weight, runs = number(ad, "IdleJobs"), number(ad, "WeightedIdleJobs"), number(ad, "RunningJobs")
        stated[name] += math.inf if runs is None else runs
        if name.startswith(DEDICATED):
            left_out.note(name, "HTCondor does not say how many jobs of the parallel universe wait")
        if not jobs or jobs < 1 or schedd in answered:
            continue
        cores = (jobs if weight is None else weight) * limits.cores_per_weight
        if limits.largest is not None and cores / jobs > limits.largest:
            size = f"{cores / jobs:.4g} cores on average, and the largest slot has {limits.largest}"
            left_out.note(name, f"its jobs ask for {size}")
            continue
        part = parts.get(schedd, 1.0)
        if part < 1:
            left_out.note(name, _no_more_jobs(schedd))
        before = idle.get(name, (0.0, 0.0))
        idle[name] = (before[0] + jobs * part, before[1] + cores * part)
    return {name: _less(waits, limits.running.get(name, 0) - stated[name]) for name, waits in idle.items()}


_CEILING = "it may use no more cores (its ceiling, condor_userprio -setceil)"


def _no_more_jobs(schedd: str | None) -> str:
    return f"the schedd {shown(schedd)} may run no more jobs (MAX_JOBS_RUNNING)"


def _jobs_to_run(schedd: Ad) -> float | None:
    """Return how many more jobs a schedd may run, None where it does not say."""
    most, runs = number(schedd, "MaxJobsRunning"), number(schedd, "ShadowsRunning")
    return None if most is None or runs is None else max(0.0, most - runs)


def _parts_that_may_run(submitters: Iterable[Ad], schedds: Iterable[Ad]) -> dict[str | None, float]:
    """Return the part of its idle jobs that each schedd may run, where MAX_JOBS_RUNNING keeps it from running all."""
    idle: dict[str | None, float] = defaultdict(float)
    for ad in submitters:
        if not odd_number(ad, _RANGES):
            idle[text(ad, "ScheddName")] += number(ad, "IdleJobs") or 0.0
    parts: dict[str | None, float] = {}
    for ad in schedds:
        name, room = text(ad, "Name"), _jobs_to_run(ad)
        if name is not None and room is not None and room < idle[name]:
            parts[name] = room / idle[name]
    return parts


def _less(waits: tuple[float, float], started: float) -> tuple[float, float]:
    """Return the jobs and cores that still wait when `started` of the jobs run by now."""
    jobs, cores = waits
    if jobs <= 0:
        return 0.0, 0.0
    left = jobs - max(0.0, min(jobs, started))
    return left, cores * left / jobs

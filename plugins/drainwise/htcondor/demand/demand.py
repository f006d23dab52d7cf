"""Demand: the jobs that wait at the access points, less those that could not start if cores were free.

An access point that tells its idle jobs is believed: what no place could run is no demand. Of another, the submitter
ads count: idle jobs of the vanilla universe that could be matched, no held jobs, none of the local and scheduler
universe, none that wait for a factory (`max_idle`, `max_materialize`), and none of the parallel universe. These do
count what a concurrency limit, a deferred start or the job's own requirements hold up.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from drainwise.common.printable import one_line
from drainwise.htcondor.ads.values import LARGEST_POOL, Ad, named, number, odd_number, shown, text
from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.job_kinds import JobKind, Place, kind_name, merged

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


_LeftOut = dict[str, set[str]]
"""Submitters whose demand is not counted, by the reason."""


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
    left_out, rooms = defaultdict[str, "set[str]"](set), dict(limits.rooms)
    waiting: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    kinds: list[JobKind] = []
    totals = {(seen.place.node_class, seen.place.total) for seen in (() if told is None else told.places)}

    def that_hold(needs: Amounts) -> frozenset[str]:
        """Return the classes that have a place where a job fits of which nothing but its needs is known."""
        return frozenset(name for name, total in totals if total.covers(needs))

    claims = {name: list(held) for name, held in limits.claims.items()}
    for one in _startable(Told() if told is None else told, schedds, rooms, left_out):
        classes = that_hold(one.needs) if one.classes is None else one.classes
        starting = _starting(one, claims.get(one.submitter, [])) if classes else 0
        kinds.append(replace(_kind(one, account_of(one.submitter), classes), starting=starting))
        counted = one.jobs if classes else 0
        _add(waiting, one.submitter, counted, counted * one.needs.cores)
    stated = _stated(submitters, schedds, limits, frozenset() if told is None else told.answered, left_out)
    for name, waits in stated.items():
        jobs, cores = waits
        room = rooms.get(name, math.inf)
        if cores > room:
            left_out[_CEILING].add(name)
            jobs, cores = jobs * room / cores, room
        whole = math.floor(jobs + _ROUNDING)
        if told is not None and whole:
            needs = amounts(math.ceil(cores / jobs - _ROUNDING))
            untold = IdleJobs("", name, whole, needs, asks=UNTOLD, key=UNTOLD)
            kinds.append(_kind(untold, account_of(name), that_hold(needs)))
            if not kinds[-1].classes:
                jobs = cores = 0.0
        _add(waiting, name, jobs, cores)
    words = (
        f"of what {named(names)} {'waits' if len(names) == 1 else 'wait'} for not all is counted: {reason}"
        for reason, names in left_out.items()
    )
    notices = (*words, *(() if told is None else (*_silent(told), *told.notices)))
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
                left_out[_no_more_jobs(one.schedd)].add(one.submitter)
                jobs = int(left[one.schedd])
            if jobs * cores > rooms.get(one.submitter, math.inf) + _ROUNDING:
                left_out[_CEILING].add(one.submitter)
                jobs = int((rooms[one.submitter] + _ROUNDING) // cores)
            jobs, limit = jobs_within(jobs, one.limits, limits)
            if limit:
                left_out[f"the concurrency limit {limit.upper()}_LIMIT lets no more start"].add(one.submitter)
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
            left_out[f"its submitter ad says {odd} = {shown(ad[odd])}"].add(name)
            continue
        jobs, weight, runs = number(ad, "IdleJobs"), number(ad, "WeightedIdleJobs"), number(ad, "RunningJobs")
        stated[name] += math.inf if runs is None else runs
        if name.startswith(DEDICATED):
            left_out["HTCondor does not say how many jobs of the parallel universe wait"].add(name)
        if not jobs or jobs < 1 or schedd in answered:
            continue
        cores = (jobs if weight is None else weight) * limits.cores_per_weight
        if limits.largest is not None and cores / jobs > limits.largest:
            size = f"{cores / jobs:.4g} cores on average, and the largest slot has {limits.largest}"
            left_out[f"its jobs ask for {size}"].add(name)
            continue
        part = parts.get(schedd, 1.0)
        if part < 1:
            left_out[_no_more_jobs(schedd)].add(name)
        before = idle.get(name, (0.0, 0.0))
        idle[name] = (before[0] + jobs * part, before[1] + cores * part)
    for name, (jobs, cores) in idle.items():
        left = jobs - max(0.0, min(jobs, limits.running.get(name, 0) - stated[name]))
        idle[name] = (left, cores * left / jobs) if jobs > 0 else (0.0, 0.0)
    return idle


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


# A job names concurrency limits and how much of each it takes (`ConcurrencyLimits = "db:2, sw.license"`). The
# configuration of the negotiator has the largest sum of each (`DB_LIMIT`), and each slot shows what its job takes.


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

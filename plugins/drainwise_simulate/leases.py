"""What giving cores back would have wasted in a log of the batch system itself, each job a lease of its own.

At random moments of the log a share of the cores that jobs held then is wanted back. Each way chooses among the same
jobs by what the batch system knew then: cores, start, limit, and the last checkpoint where jobs are taken to make them.
What that wastes is counted by when each job really ended: one that ends before its deadline loses nothing.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import numpy as np

from drainwise.facts.errors import UsageError
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.plan import Need
from drainwise.reclaim.settings import ReclaimSettings
from drainwise_simulate.policies.choosers import Chosen, InOrder
from drainwise_simulate.policies.clairvoyant import Clairvoyant
from drainwise_simulate.policies.exact_totals import cheapest_of_total, total_to_give
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE, SLURM
from drainwise_simulate.scenario import Checkpoints
from drainwise_simulate.trace import MOST_JOBS, Trace, trace_in
from drainwise_tasks.estimate.records.formats import JSON_LINES, format_of, read_as
from drainwise_tasks.estimate.records.record import Finished, lines_in, opened

YOUNGEST = "youngest-first"
_LOOK = 1 << 16


@dataclass(frozen=True)
class LeaseLog:
    """Jobs of an accounting log, by start; how many records were skipped why."""

    name: str
    jobs: tuple[Finished, ...]
    skipped: Counter[str]


@dataclass(frozen=True)
class LeaseCosts:
    """What each way wasted: core-seconds by policy, over `moments`, for `cores` that were wanted in all.

    gpus: GPU-seconds that it wasted. given: the cores that came back.
    """

    moments: int
    cores: int
    wasted: Mapping[str, float]
    gpus: Mapping[str, float]
    given: Mapping[str, float]


def read_log(path: str) -> Trace | LeaseLog:
    """Read a log in the Standard Workload Format, or one of the accountings that `drainwise estimate` reads.

    "-" is the input. Raises UsageError for what cannot be read, and for a log without a job that can be used.
    """
    with opened(path) as stream:
        first = cast("Any", stream).peek(_LOOK)[:_LOOK].lstrip().partition(b"\n")[0]
        if first.startswith(b";") or format_of(first) in {"", JSON_LINES}:
            return trace_in(stream, path)
        return _leases(stream, path)


def _leases(stream: BinaryIO, path: str) -> LeaseLog:
    skipped: Counter[str] = Counter()
    found: list[Finished] = []
    for one in read_as("auto", lines_in(stream, skipped), skipped):
        if len(found) == MOST_JOBS:
            raise UsageError(f"{path}: expected at most {MOST_JOBS} jobs; cut the log")
        if one.end > one.start:
            found.append(one)
    if not found:
        raise UsageError(f"{path}: no job in it that ran: {', '.join(skipped) or 'it is empty'}")
    return LeaseLog(path, tuple(sorted(found, key=lambda one: one.start)), skipped)


def costs_of(
    log: LeaseLog,
    share: float,
    moments: int,
    settings: ReclaimSettings,
    seed: int,
    saves: Checkpoints | None = None,
    preemptible: Container[str] = (),
) -> LeaseCosts:
    """Return what each way wastes when a share of the cores that are held is wanted at so many moments.

    settings: of the agent; the others kill at once. saves: which jobs are taken to make checkpoints. preemptible: the
    qualities of service whose jobs alone Slurm would preempt; () for no row of it.
    """
    jobs = log.jobs
    starts, ends = np.array([one.start for one in jobs]), np.array([one.end for one in jobs])
    dice, cores = random.Random(seed), 0  # noqa: S311 - moments are drawn by lot, repeatably
    wasted, gpus, given = (defaultdict[str, float](float) for _ in range(3))
    for _ in range(moments):
        now = math.floor(dice.uniform(starts[0], ends.max()))
        numbers = np.flatnonzero((starts <= now) & (ends > now)).tolist()
        among = candidates_of((_pilot(number, jobs[number], now, saves) for number in numbers), now, settings)
        held = sum(jobs[number].cores for number in numbers)
        wanted = math.ceil(share * held)
        cores += wanted
        for name, chosen in _choices(among, wanted, jobs, now + settings.horizon, preemptible):
            for sums in (wasted, gpus, given):
                sums[name] += 0.0
            for one in chosen:
                job, seconds = jobs[int(one.candidate.pilot.run)], _lost(jobs, one, saves)
                wasted[name] += job.cores * seconds
                gpus[name] += (job.gpus or 0) * seconds
                given[name] += job.cores
    return LeaseCosts(moments, cores, wasted, gpus, given)


def _pilot(number: int, job: Finished, now: int, saves: Checkpoints | None) -> Pilot:
    end = None if job.requested is None else max(now + 1, math.ceil(job.start + job.requested))
    kept = following = None
    if saves is not None and (saved := _saved(number, job.start, now, saves)) > job.start:
        kept, following = math.floor(saved), math.ceil(saved) + saves.interval + saves.seconds
    user = job.task.partition("/")[0]
    run = f"{number:09d}"
    return Pilot(run, run, "", "", user, job.cores, math.floor(job.start), end, saved=kept, next_save=following)


def _choices(
    among: Candidates, wanted: int, jobs: tuple[Finished, ...], latest: int, preemptible: Container[str]
) -> Iterable[tuple[str, tuple[Chosen, ...]]]:
    """Yield each way with the jobs that it ends: all the same total of cores, but Slurm where too few may be."""
    need = Need(wanted, wanted)
    at_once = replace(among, settings=replace(among.settings, drain_only=False, notice=0), made=None)
    youngest = InOrder(lambda some: (-some.figures.columns.started,))
    yield YOUNGEST, youngest.choose(at_once, need)
    if preemptible:
        able = at_once.some([row for row, one in enumerate(among.pilots) if jobs[int(one.run)].qos in preemptible])
        most = int(able.sizes.sum())
        yield SLURM, youngest.choose(able, Need(min(wanted, most), most)) if most else ()
    rows = cheapest_of_total(among.sizes, among.figures.price, total_to_give(among.sizes, wanted, wanted)).tolist()
    yield SITE_LEAST_WASTE, tuple(Chosen(among[row], among[row].best) for row in rows)
    truth = {one.run: ((one.cores, float(one.started), jobs[int(one.run)].end),) for one in among.pilots}
    yield CLAIRVOYANT, Clairvoyant(truth, latest).choose(at_once, need)


def _lost(jobs: tuple[Finished, ...], one: Chosen, saves: Checkpoints | None) -> float:
    """Return the seconds of its work that a job really loses by its order."""
    number = int(one.candidate.pilot.run)
    job, end = jobs[number], one.option.deadline
    if job.end <= end:
        return 0.0
    return end - _saved(number, job.start, end, saves)


def _saved(number: int, start: float, moment: float, saves: Checkpoints | None) -> float:
    """Return until when a job's work is saved at a moment (UNIX s), its start where nothing is; some never save."""
    if saves is None or random.Random(number).random() >= saves.share:  # noqa: S311 - drawn, and always the same
        return start
    return saves.last(start, moment)

"""Forecast a launch in which every job takes as long as expected: each start, and the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from drainwise.facts.errors import UsageError
from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.resources import CPU, Resources
from drainwise.launch.choice.work import LaunchJob, Work
from drainwise.launch.files.job_reader import LOCAL
from drainwise.launch.this_machine.slots import enough, mapped, misfit


class Planned(NamedTuple):
    """A job that starts `start` seconds from the beginning, and the pressure it has then (s)."""

    job: LaunchJob
    start: float
    pressure: float


def forecast(engine: Engine, pools: Mapping[str, Mapping[str, int] | None], most: int | None = None) -> list[Planned]:
    """Play the launch to its end, in the order of starts; the engine is used up by it.

    pools: what each backend has, by name; None where jobs start as soon as they can. most: jobs at once in each.
    """
    running = Counter[str]()
    free = {name: None if pool is None else dict(pool) for name, pool in pools.items()}
    engine.parallel = max([1, *(pool[CPU] for pool in pools.values() if pool)])
    planned: list[Planned] = []
    ends: list[tuple[float, int, LaunchJob]] = []
    now = 0.0
    engine.expect(now)
    while True:
        for name, pool in free.items():
            while most is None or running[name] < most:
                job = engine.choose(name, lambda _, job, pool=pool: pool is None or enough(job.reserved, pool))  # type: ignore[misc]
                if job is None:
                    break
                planned.append(Planned(job, now, engine.urgency(job)[1]))
                engine.start(job, now)
                _take(pool, job.reserved, -1)
                running[name] += 1
                heappush(ends, (now + job.ete, job.index, job))
        if not ends:
            return planned
        now, _, job = heappop(ends)
        _take(free[job.work.backend], job.reserved, 1)
        running[job.work.backend] -= 1
        engine.was_done(job)


def at_once(planned: Iterable[Planned], pools: Mapping[str, Mapping[str, int] | None]) -> dict[str, int]:
    """Return the largest number of jobs at the same time, by backend without a pool: the plan relies on it."""
    moves: dict[str, list[tuple[float, int]]] = {}
    for job, start, _ in planned:
        if pools[job.work.backend] is None:
            moves.setdefault(job.work.backend, []).extend([(start, 1), (start + job.ete, -1)])
    return {name: max(accumulate(step for _, step in sorted(found))) for name, found in sorted(moves.items())}


def _take(pool: dict[str, int] | None, resources: Resources, sign: int) -> None:
    if pool is not None:
        for name, amount in resources.amounts().items():
            if amount:
                pool[name] += sign * amount


def placed(work: Work, pools: Mapping[str, Mapping[str, int] | None], only_here: bool) -> Work:
    """Return the job as a plan has it, without asking any backend: as it is, if it may run.

    pools: what each backend has, None where nobody knows. only_here: it is mapped to this machine. Raises UsageError.
    """
    if only_here:
        return work._replace(backend=LOCAL, reserved=mapped(work.resources, pools[LOCAL] or {}))
    if work.backend not in pools:
        raise UsageError(f"job {work.name[:100]!a}: backend = {work.backend!a}: expected one of {', '.join(pools)}")
    pool = pools[work.backend]
    why = "" if pool is None else misfit(work.resources, pool)
    if why:
        raise UsageError(f"job {work.name[:100]!a}: it can never run in {LOCAL}: {why}")
    return work

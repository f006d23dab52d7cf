"""Unclaimed cores as they lie: three free cores on each of ten nodes are no help to a job of eight."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.pool.facts import Account

ROUNDING = 1e-6
"""Cores; quotas and weights are sums of floats."""


@dataclass(frozen=True)
class Hole:
    """Free cores in one place; `divisible` when several jobs can share them (a partitionable slot)."""

    cores: int
    divisible: bool


@dataclass(frozen=True)
class WaitingJobs:
    """`jobs` of `cores` each that wait."""

    cores: int
    jobs: int


def whole_cores(cores: float) -> int:
    """Return cores rounded down, as no part of a core can be given back."""
    return max(0, math.floor(cores + ROUNDING))


def waiting_jobs(accounts: Iterable[Account]) -> list[WaitingJobs]:
    """Return the jobs that the accounts wait with and are owed cores for: free cores are for them first."""
    found = []
    for one in accounts:
        cores = math.ceil(max(one.cores_per_job, 1.0) - ROUNDING)
        jobs = whole_cores(min(one.cores_wanted, one.cores_owed - one.cores_in_use) / cores)
        if jobs > 0:
            found.append(WaitingJobs(cores, jobs))
    return found


def usable_cores(holes: Iterable[Hole], waiting: Iterable[WaitingJobs]) -> int:
    """Return the cores of the waiting jobs that would fit: the largest first, each where it fits tightest."""
    room = [hole for hole in holes if hole.cores > 0]
    placed = 0
    for kind in sorted(waiting, key=lambda one: -one.cores):
        left, after = kind.jobs, []
        for hole in sorted(room, key=lambda one: one.cores):
            fit = hole.cores // kind.cores if hole.divisible else int(hole.cores >= kind.cores)
            taken = min(fit, left)
            left -= taken
            placed += taken * kind.cores
            if not taken:
                after.append(hole)
            elif hole.divisible:
                after.append(Hole(hole.cores - taken * kind.cores, divisible=True))
        room = after
    return placed

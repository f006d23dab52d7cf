"""Unclaimed cores as they lie: three free cores on each of ten nodes are no help to a job of eight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Hole:
    """Free cores in one place; `divisible` when several jobs can share them (a partitionable slot)."""

    cores: int
    divisible: bool


@dataclass(frozen=True)
class Waiting:
    """`jobs` of `cores` each that wait."""

    cores: int
    jobs: int


def usable_cores(holes: Iterable[Hole], waiting: Iterable[Waiting]) -> int:
    """Cores of those waiting jobs that would fit: the largest jobs are placed first, each where it fits tightest."""
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

"""Serve the waiting jobs with what is free and what comes back anyway; what is left over needs room to be made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.free_cores import whole_cores
from drainwise.room.facts import Mask, Real, RoomFacts, Whole


@dataclass(frozen=True)
class ServedJobs:
    """`jobs` of a kind, by its name, that a place serves by what is `free` there and what is `returning`."""

    kind: str
    place: str
    jobs: int
    free: Amounts
    returning: Amounts


@dataclass(frozen=True, eq=False)
class OpenDemand:
    """Waiting jobs of each kind (K), whatever their accounts are owed, and the cores that each account is owed."""

    facts: RoomFacts
    jobs: Whole
    owed: Mapping[str, float]

    def jobs_of(self, kind: int) -> int:
        """Return the whole jobs of a kind that its account is owed the cores for."""
        cores = self.owed.get(self.facts.kinds[kind].account, 0.0)
        return min(int(self.jobs[kind]), whole_cores(cores / int(self.facts.cores[kind])))

    def without(self, jobs: Whole) -> OpenDemand:
        """Return the demand when so many jobs of each kind (K) have room."""
        owed = dict(self.owed)
        for kind in np.flatnonzero(jobs).tolist():
            account = self.facts.kinds[kind].account
            owed[account] = owed.get(account, 0.0) - int(jobs[kind]) * int(self.facts.cores[kind])
        return OpenDemand(self.facts, self.jobs - jobs, owed)


@dataclass(frozen=True, eq=False)
class DemandLeft:
    """What is left after the free and returning amounts were used.

    jobs: of each kind, whatever the accounts are owed. owed: cores that each account is owed still. room: P × R, free
    and returning amounts that no job uses. closed: P, places that one job has for itself. served: who uses what.
    """

    jobs: Whole
    owed: Mapping[str, float]
    room: Real
    closed: Mask
    served: tuple[ServedJobs, ...]


def demand_left(
    facts: RoomFacts,
    owed: Mapping[str, float],
    returning: Mapping[str, Amounts],
    intended: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> DemandLeft:
    """Serve kind by kind, as many whole jobs as its account is `owed` cores for, from free room first.

    returning: amounts by the name of the place that comes to have them. Of the places where a kind fits, those are used
    first that have nothing dear that it does not need (GPUs, licences), then the tightest, then by name. intended: the
    jobs of each kind for which room was made on a place, by their names: they have it first where more cores' jobs are
    served so.
    """
    left = _served(facts, owed, returning, {})
    if not (intended and left.jobs.any()):
        return left
    as_intended = _served(facts, owed, returning, intended)
    return as_intended if _cores(facts, as_intended.jobs) < _cores(facts, left.jobs) else left


def _cores(facts: RoomFacts, jobs: Whole) -> int:
    return int((jobs * facts.cores).sum())


def _served(
    facts: RoomFacts,
    owed: Mapping[str, float],
    returning: Mapping[str, Amounts],
    intended: Mapping[str, Mapping[str, int]],
) -> DemandLeft:
    demand = OpenDemand(facts, np.array([kind.jobs for kind in facts.kinds], dtype=np.int64), owed)
    free = facts.free.copy()
    back = np.zeros_like(free)
    for name, held in returning.items():
        if name in facts.index:
            back[facts.index[name]] += facts.vector(held)
    closed = np.zeros(len(facts.places), dtype=bool)
    served = []
    for row, most in (*_intended_rows(facts, intended), *((row, None) for row in range(len(facts.kinds)))):
        kind, wanted = facts.kinds[row], demand.jobs_of(row)
        if wanted < 1 or not facts.may[row].any():
            continue
        every = np.arange(len(facts.places))
        now = np.where(closed, 0, facts.fitting(row, free.T, every))
        later = np.where(closed, 0, facts.fitting(row, (free + back).T, every))
        if most is not None:
            now, later = np.minimum(now, most), np.minimum(later, most)
        count = jobs_on_places(later, int(facts.several[row]), wanted)
        if not count:
            continue
        parts = count * int(facts.several[row])
        order = _tightest_first(facts, row, free)
        first = _in_order(np.minimum(now, count), order, parts)
        more = _in_order(np.minimum(later, count) - first, order, parts - int(first.sum()))
        demand = demand.without(np.where(np.arange(len(facts.kinds)) == row, count, 0))
        for at in np.flatnonzero(first + more).tolist():
            here = int(first[at] + more[at])
            alone = bool(facts.whole[row] or not facts.divisible[at])
            takes = free[at] + back[at] if alone else here * facts.needs[row]
            from_free = np.minimum(free[at], takes)
            from_back = takes - from_free
            free[at] -= from_free
            back[at] -= from_back
            closed[at] |= alone
            name = facts.places[at].name
            served.append(ServedJobs(kind.name, name, here, facts.amounts(from_free), facts.amounts(from_back)))
    return DemandLeft(demand.jobs, demand.owed, free + back, closed, tuple(served))


def _intended_rows(facts: RoomFacts, intended: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[int, Real]]:
    """Yield each kind that has places of its own, by its row, and how many of its jobs each place may have at most."""
    for row, kind in enumerate(facts.kinds):
        most = np.zeros(len(facts.places))
        for name, jobs in intended.get(kind.name, {}).items():
            if name in facts.index:
                most[facts.index[name]] = jobs
        if most.any():
            yield row, most


def jobs_on_places(fitting: Real, several: int, wanted: int) -> int:
    """Return how many jobs, `wanted` at most, find `several` different places each where `fitting` of them fit."""
    low, high = 0, wanted
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(fitting, middle).sum() >= several * middle:
            low = middle
        else:
            high = middle - 1
    return low


def _tightest_first(facts: RoomFacts, kind: int, free: Real) -> Whole:
    dear = [row for row, name in enumerate(facts.resources) if name not in {"cores", "memory", "disk"}]
    unneeded = facts.totals[:, [row for row in dear if not facts.needs[kind, row]]].sum(axis=1)
    return np.lexsort((np.arange(len(free)), free[:, 0], unneeded))


def _in_order(most: Real, order: Whole, wanted: int) -> Whole:
    """Return how many each place takes when `wanted` are given to the places in this order, `most` to each."""
    before = np.cumsum(most[order]) - most[order]
    taken = np.zeros(len(most), dtype=np.int64)
    taken[order] = np.clip(wanted - before, 0, most[order])
    return taken

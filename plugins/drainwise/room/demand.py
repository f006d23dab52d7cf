"""Serve the waiting jobs with what is free and what comes back anyway; what is left over needs room to be made.

What waits and where it could start stand side by side as arrays: kinds, places and amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from drainwise.pool.amounts import PLAIN, Amounts, amounts
from drainwise.pool.free_cores import whole_cores
from drainwise.pool.job_kinds import JobKind, Place

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RoomFacts:
    """K kinds in the order in which they should start, P places by name, R resources: cores, and what a kind needs.

    index: of each place by its name. needs: K × R, of one job in one place. totals, free: P × R. may: K × P, where jobs
    of a kind may run. divisible: P, whether several jobs can share the place. whole: K, whether a job shares none.
    several: K, on how many places at once a job runs. cores: K, of a whole job.
    """

    kinds: tuple[JobKind, ...]
    places: tuple[Place, ...]
    index: Mapping[str, int]
    resources: tuple[str, ...]
    needs: Real
    totals: Real
    free: Real
    may: Mask
    divisible: Mask
    whole: Mask
    several: Whole
    cores: Whole

    def vector(self, held: Amounts) -> tuple[int, ...]:
        """Return the amounts of each resource."""
        return _vector(held, self.resources)

    def amounts(self, rows: Real) -> list[Amounts]:
        """Return of each row (any number × R) its amounts by their names."""
        known: dict[tuple[float, ...], Amounts] = {}
        for row in set(map(tuple, rows.tolist())):
            named = {name: int(amount) for name, amount in zip(self.resources, row) if amount > 0}
            plain = [named.pop(name, 0) for name in PLAIN]
            known[row] = amounts(*plain, tuple(sorted(named.items())))
        return [known[tuple(row)] for row in rows.tolist()]

    def fitting(self, kind: int, room: Real) -> Real:
        """Return how many jobs of a kind fit into the `room` (P × R) of each place; never below 0."""
        needed = np.flatnonzero(self.needs[kind])
        fit = np.floor(room[:, needed] / self.needs[kind, needed]).min(axis=1)
        if self.whole[kind]:
            fit = np.where(room[:, 0] >= self.totals[:, 0], np.minimum(fit, 1), 0)
        fit = np.where(self.divisible, fit, np.minimum(fit, 1))
        return np.where(self.may[kind], np.maximum(fit, 0), 0)


def room_facts(kinds: Iterable[JobKind], places: Iterable[Place]) -> RoomFacts:
    """Return the arrays of these kinds, in their order, and these places, in any order."""
    kinds, places = tuple(kinds), tuple(sorted(places, key=lambda one: one.name))
    names = {name for kind in kinds for name, _ in kind.needs.named()} - {"cores"}
    plain = [name for name in PLAIN if name in names]
    resources = ("cores", *plain, *sorted(names.difference(plain)))
    classes = {name: row for row, name in enumerate(sorted({place.node_class for place in places}))}
    class_of = np.array([classes[place.node_class] for place in places], dtype=np.int64)
    allowed = np.zeros((len(kinds), len(classes)), dtype=bool)
    for row, kind in enumerate(kinds):
        allowed[row, [classes[name] for name in kind.classes if name in classes]] = True
    may, index = allowed[:, class_of], {place.name: row for row, place in enumerate(places)}
    for row, kind in enumerate(kinds):
        may[row, [index[name] for name in kind.barred if name in index]] = False
        if kind.at:
            may[row] &= [place.name in kind.at for place in places]
    needs = _matrix((kind.needs for kind in kinds), resources)
    needs[:, 0] = np.maximum(needs[:, 0], 1)
    return RoomFacts(
        kinds,
        places,
        index,
        resources,
        needs,
        _matrix((place.total for place in places), resources),
        _matrix((place.free for place in places), resources),
        may,
        np.array([place.divisible for place in places], dtype=bool),
        np.array([kind.whole for kind in kinds], dtype=bool),
        np.array([max(1, kind.places) for kind in kinds], dtype=np.int64),
        np.array([kind.cores for kind in kinds], dtype=np.int64),
    )


def _vector(held: Amounts, resources: tuple[str, ...]) -> tuple[int, ...]:
    others = dict(held.others)
    return tuple(getattr(held, name) if name in PLAIN else others.get(name, 0) for name in resources)


def _matrix(rows: Iterable[Amounts], resources: tuple[str, ...]) -> Real:
    known: dict[Amounts, tuple[int, ...]] = {}
    vectors = [known.get(one) or known.setdefault(one, _vector(one, resources)) for one in rows]
    return np.array(vectors, dtype=np.float64).reshape(len(vectors), len(resources))


@dataclass(frozen=True)
class ServedJobs:
    """`jobs` of a kind, by its name, that a place serves by what is `free` there and what is `returning`."""

    kind: str
    place: str
    jobs: int
    free: Amounts
    returning: Amounts


@dataclass(frozen=True, eq=False)
class DemandLeft:
    """What is left after the free and returning amounts were used.

    jobs: of each kind, whatever the accounts are owed. owed: cores that each account is owed still. room: P × R, free
    and returning amounts that no job uses. closed: P, places that one job has for itself. served: who uses what.
    """

    facts: RoomFacts
    jobs: Whole
    owed: Mapping[str, float]
    room: Real
    closed: Mask
    served: tuple[ServedJobs, ...]

    def without_room(self, with_room: Whole | None = None) -> Whole:
        """Return the jobs of each kind (K) that its account is owed the cores for, when so many more have room."""
        more = np.zeros_like(self.jobs) if with_room is None else with_room
        kinds, taken = self.facts.kinds, Counter[str]()
        for kind, jobs in zip(kinds, more.tolist()):
            taken[kind.account] += jobs * kind.cores
        owed = [whole_cores((self.owed.get(one.account, 0.0) - taken[one.account]) / one.cores) for one in kinds]
        found: Whole = np.minimum(self.jobs - more, np.array(owed, dtype=np.int64))
        return found


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
    return as_intended if (as_intended.jobs - left.jobs) @ facts.cores < 0 else left


def _served(
    facts: RoomFacts,
    owed: Mapping[str, float],
    returning: Mapping[str, Amounts],
    intended: Mapping[str, Mapping[str, int]],
) -> DemandLeft:
    jobs, owed = np.array([kind.jobs for kind in facts.kinds], dtype=np.int64), dict(owed)
    free, closed, served = facts.free.copy(), np.zeros(len(facts.places), dtype=bool), list[ServedJobs]()
    back = np.zeros_like(free)
    for name, held in returning.items():
        if name in facts.index:
            back[facts.index[name]] += facts.vector(held)
    rooms = [(row, _at_places(facts, intended.get(kind.name, {}))) for row, kind in enumerate(facts.kinds)]
    rooms = [(row, most) for row, most in rooms if most.any()]
    anywhere = np.full(len(facts.places), np.inf)
    for row, most in (*rooms, *((row, anywhere) for row in range(len(facts.kinds)))):
        kind, several = facts.kinds[row], int(facts.several[row])
        wanted = min(int(jobs[row]), whole_cores(owed.get(kind.account, 0.0) / kind.cores))
        if wanted < 1 or not facts.may[row].any():
            continue
        most = np.where(closed, 0, most)  # noqa: PLW2901
        now, later = (np.minimum(facts.fitting(row, room), most) for room in (free, free + back))
        count = jobs_on_places(later, several, wanted)
        if not count:
            continue
        order = _tightest_first(facts, row, free)
        first = _in_order(np.minimum(now, count), order, count * several)
        here = first + _in_order(np.minimum(later, count) - first, order, count * several - int(first.sum()))
        jobs[row] -= count
        owed[kind.account] = owed.get(kind.account, 0.0) - count * kind.cores
        at = np.flatnonzero(here)
        alone = facts.whole[row] | ~facts.divisible[at]
        takes = np.where(alone[:, None], free[at] + back[at], here[at, None] * facts.needs[row])
        from_free = np.minimum(free[at], takes)
        free[at] -= from_free
        back[at] -= takes - from_free
        closed[at] |= alone
        each = zip(at.tolist(), here[at].tolist(), facts.amounts(from_free), facts.amounts(takes - from_free))
        served += [ServedJobs(kind.name, facts.places[place].name, number, *held) for place, number, *held in each]
    return DemandLeft(facts, jobs, owed, free + back, closed, tuple(served))


def _at_places(facts: RoomFacts, jobs: Mapping[str, int]) -> Real:
    """Return how many jobs each place may have at most: these by its name, no others."""
    most = np.zeros(len(facts.places))
    for name, number in jobs.items():
        if name in facts.index:
            most[facts.index[name]] = number
    return most


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

"""Put what waits and where it could start side by side: kinds, places and amounts as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drainwise.pool.amounts import PLAIN, Amounts, amounts
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

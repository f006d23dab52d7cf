"""Find the cheapest pilots that make an exact total of cores (a knapsack): exactly where bounded work is enough for it.

Taking the pilots in the order of waste per core until the total is passed is the best that could be had if a pilot
could be divided. Any other set pays for each pilot by which it differs from that order (its reduced cost). So, as in
Pisinger's search of a knapsack's core: from the place where the order stops outwards, pilot after pilot is searched by
dynamic programming over the cores by which a set differs; what the best set found so far pays in all bounds what one
pilot may cost; when no pilot is left that costs less alone, the set is proven the best. That is mostly at once, and a
matter of the sizes, not of the number of pilots.

Pools exist in which the proof needs far more, and users may choose their sizes. When the work for it is used up, the
search begins anew near the total, without a proof; the best set that was found counts.

A cost is a pair, waste first and then cores × PRIORITY_FACTOR, held as a complex number: numpy adds such pairs part by
part and compares the first parts first. Reduced costs are scaled to whole numbers, so that equal is equal. Waste is in
whole core-seconds: a set that wastes less wastes less by one at least, and what cannot be that is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.totals.arrays import Mask, Pair, Real, Whole
from drainwise.reclaim.totals.core_search import UNREACHED, CoreSearch
from drainwise.reclaim.totals.subset_sums import some_that_make

_NEAREST = 24
"""Pilots on each side of the place where the order stops that are searched first."""
_PROOF, _NEAR = 24_000_000, 12_000_000
"""Cells that a search for a proof may pass over, and one without; some tenths of a second each."""
_WITHIN = 4096
"""Cores from the goal within which small pilots may be exchanged in any order."""
_SEVERAL = 8
"""Pilots with a remainder of cores that most have not, of each kind, that the search without a proof begins with."""


@dataclass(frozen=True)
class CheapestSet:
    """The places of pilots that make a total, ascending. is_proven: no others waste less; else others may."""

    places: Whole
    is_proven: bool


def cheapest_of_total(sizes: Whole, waste: Real, priority: Real, total: int) -> Whole:
    """Return the places of the pilots of `cheapest_set`."""
    return cheapest_set(sizes, waste, priority, total).places


def cheapest_set(sizes: Whole, waste: Real, priority: Real, total: int) -> CheapestSet:
    """Return the pilots that have `total` cores together at the least total waste that bounded work finds.

    sizes: cores ≥ 1. waste: whole core-seconds ≥ 0. priority: whole numbers. Of pilots that waste the same per core
    those of the lowest priority go first, as far as the total allows (of the sets searched the one with the least
    Σ cores × priority); of pilots that are equal in all, the first. Raises ValueError when no pilots make `total` (see
    `subset_sums.total_to_give`).
    """
    if total <= 0:
        return CheapestSet(np.empty(0, dtype=np.int64), True)
    if total >= int(sizes.sum()):
        if total > int(sizes.sum()):
            raise ValueError(f"no pilots of these sizes make {total} cores")
        return CheapestSet(np.arange(len(sizes)), True)
    fits = np.flatnonzero(sizes <= total)
    if len(fits) < len(sizes):
        of_these = cheapest_set(sizes[fits], waste[fits], priority[fits], total)
        return CheapestSet(fits[of_these.places], of_these.is_proven)
    core = _Core(sizes, waste, priority, total)
    search = core.proof()
    if search.is_complete:
        return CheapestSet(core.set_of(search), True)
    found = core.some()
    for first in (np.empty(0, dtype=np.int64), found):
        near = core.near(first)
        search = near if near.pays < search.pays else search
    if search.pays.real <= core.pays_of(found):
        return CheapestSet(core.set_of(search), False)
    return CheapestSet(found, False)


class _Core:
    """The order of waste per core, and what each pilot pays that a set treats otherwise."""

    def __init__(self, sizes: Whole, waste: Real, priority: Real, total: int) -> None:
        self._sizes, self._waste, self._priority, self._total = sizes, waste, priority, total
        self._taken, self._last, nearest = _by_waste_per_core(sizes, waste, priority, total)
        self._steps = np.where(self._taken, -sizes, sizes)
        self._goal = total - int(sizes[self._taken].sum())
        self._nearest = self._outwards(nearest)

    def _pays(self, places: Whole) -> Pair:
        """Return the reduced costs: what treating these pilots otherwise than the order does adds to a set."""
        sizes, last = self._sizes, self._last
        sign = np.where(self._taken[places], -1.0, 1.0)
        reduced = np.empty(len(places), dtype=np.complex128)
        reduced.real = sign * (self._waste[places] * sizes[last] - self._waste[last] * sizes[places])
        reduced.imag = sign * sizes[places] * float(sizes[last]) * (self._priority[places] - self._priority[last])
        return reduced

    def _outwards(self, places: Whole) -> Whole:
        # A best set differs from the order in fewer than 2 × largest pilots, and in no more than the total's cores.
        several = np.minimum(2 * int(self._sizes.max()), self._total // self._sizes[places])
        return _outwards(places, self._steps[places], self._pays(places), several)

    def _extend(self, search: CoreSearch, places: Whole, unit: float) -> None:
        search.extend(places, self._steps[places], self._pays(places), unit)

    def set_of(self, search: CoreSearch) -> Whole:
        """Return the pilots of the best set that a search found. Raises ValueError when it found none."""
        if search.pays == UNREACHED:
            raise ValueError(f"no pilots of these sizes make {self._total} cores")
        taken = self._taken.copy()
        taken[search.differs()] ^= True
        return np.flatnonzero(taken)

    def pays_of(self, places: Whole) -> float:
        """Return what a set pays for all by which it differs from the order."""
        return float(self._pays(self._differing(places)).real.sum())

    def _differing(self, places: Whole) -> Whole:
        other = self._taken.copy()
        other[places] ^= True
        return np.flatnonzero(other)

    def proof(self) -> CoreSearch:
        """Return a search of all pilots that can be in a better set, as far as the work for it goes."""
        sizes, last = self._sizes, self._last
        within = self._goal + min(self._total, int(sizes.sum()) - self._total) + int(sizes.max())
        search = CoreSearch(self._goal, _PROOF, within, is_complete=True)
        self._extend(search, self._nearest, np.inf)
        left = np.abs(self._waste * sizes[last] - self._waste[last] * sizes) <= search.pays.real - sizes[last]
        left[self._nearest] = False
        if search.is_complete and left.any():
            self._extend(search, self._outwards(np.flatnonzero(left)), float(sizes[last]))
        return search

    def some(self) -> Whole:
        """Return pilots that make the total, like those of the order where that is found, of each size the cheapest.

        Raises ValueError when none are found.
        """
        order = np.lexsort((self._priority, self._waste))
        sizes, like = self._sizes[order], self._sizes[self._taken]
        return np.sort(order[some_that_make(sizes, self._total, like)])

    def near(self, found: Whole) -> CoreSearch:
        """Return a search that keeps near the total, of the set `found` (or none) and of the pilots that pay least."""
        sizes = self._sizes
        largest = int(sizes.max())
        within = max(self._goal, largest, min(4 * largest, _WITHIN))
        search = CoreSearch(self._goal, _NEAR, within, is_complete=False)
        first = self._in_balance(self._differing(found)) if len(found) else found
        first = np.concatenate((first, np.setdiff1d(self._remainders(), first)))
        self._extend(search, first, np.inf)
        left = np.ones(len(sizes), dtype=bool)
        left[first] = False
        others = np.flatnonzero(left)
        others = others[np.argsort(self._pays(others), kind="stable")]
        self._extend(search, others, float(sizes[self._last]))
        return search

    def _in_balance(self, places: Whole) -> Whole:
        """Sort `places` such that the set keeps near its goal while one after the other is treated otherwise."""
        up, down = places[self._steps[places] > 0].tolist(), places[self._steps[places] < 0].tolist()
        found, cores = [], 0
        while up or down:
            found.append((up if up and (cores <= self._goal or not down) else down).pop())
            cores += int(self._steps[found[-1]])
        return np.array(found, dtype=np.int64)

    def _remainders(self) -> Whole:
        """Return the cheapest pilots whose sizes are no multiples of what the sizes of those before have in common."""
        found, common = [self._nearest[:2]], int(np.gcd.reduce(self._sizes[self._nearest[:2]]))
        while len(others := np.flatnonzero(self._sizes % common)):
            some = others[np.argsort(self._pays(others).real, kind="stable")[:_SEVERAL]]
            found.append(some)
            common = int(np.gcd.reduce(self._sizes[some], initial=common))
        return np.concatenate(found)


def _by_waste_per_core(sizes: Whole, waste: Real, priority: Real, total: int) -> tuple[Mask, int, Whole]:
    """Return which pilots the order takes, the first that it leaves, and the places nearest to where it stops."""
    per_core = waste / sizes
    order = np.argsort(per_core)
    stop = int(np.searchsorted(np.cumsum(sizes[order]), total, side="right"))
    level = per_core[order[stop]]
    taken: Mask = per_core < level
    equal = np.flatnonzero(per_core == level)
    equal = equal[np.argsort(priority[equal], kind="stable")]
    room = total - int(sizes[taken].sum())
    inside = int(np.searchsorted(np.cumsum(sizes[equal]), room, side="right"))
    taken[equal[:inside]] = True
    low = per_core[order[stop - _NEAREST]] if stop >= _NEAREST else -np.inf
    high = per_core[order[stop + _NEAREST]] if stop + _NEAREST < len(sizes) else np.inf
    beside = np.flatnonzero((per_core > low) & (per_core < high) & (per_core != level))
    before, after = equal[max(0, inside - _NEAREST) : inside][::-1], equal[inside : inside + _NEAREST]
    return taken, int(equal[inside]), np.concatenate((before, after, beside))


def _outwards(places: Whole, steps: Whole, pays: Pair, several: Whole) -> Whole:
    """Sort `places` by pay per core, the nearest of each size and side, `several` at most; first one of each, then two.

    Of pilots that pay the same, the last that is taken (a step down) and the first that is not go first.
    """
    costs = pays / np.abs(steps)
    order = np.lexsort((np.where(steps < 0, -places, places), costs.imag, costs.real, steps))
    starts = np.flatnonzero(np.diff(steps[order], prepend=0))
    within = np.arange(len(places)) - np.repeat(starts, np.diff(starts, append=len(places)))
    enough = within < several[order]
    order, within = order[enough], within[enough]
    costs = costs[order]
    return places[order[np.lexsort((within, costs.imag, costs.real, np.floor(np.log2(within + 1))))]]

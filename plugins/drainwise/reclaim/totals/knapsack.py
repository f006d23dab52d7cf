"""Find the cheapest pilots that make an exact total of cores (a knapsack): exactly, in an array of any length.

Taking the pilots in the order of waste per core until the total is passed is the best that could be had if a pilot
could be divided. Any other set pays for each pilot by which it differs from that order (its reduced cost). So, as in
Pisinger's search of a knapsack's core: from the place where the order stops outwards, pilot after pilot is searched by
dynamic programming over the cores by which a set differs; what the best set found so far pays in all bounds what one
pilot may cost; when no pilot is left that costs less alone, the set is proven the best. That is mostly at once, and a
matter of the sizes, not of the number of pilots.

A cost is a pair, waste first and then cores × PRIORITY_FACTOR, held as a complex number: numpy adds such pairs part by
part and compares the first parts first. Reduced costs are scaled to whole numbers, so that equal is equal. Waste is in
whole core-seconds: a set that wastes less wastes less by one at least, and what cannot be that is not looked at.
"""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.totals.arrays import Bits, Mask, Pair, Real, Whole

_NEAREST = 24  # pilots on each side of the place where the order stops that are searched first
_UNREACHED = complex(np.inf, -np.inf)  # stays so whatever is added, and is never less than itself


def cheapest_of_total(sizes: Whole, waste: Real, priority: Real, total: int) -> Whole:
    """Return the places of the pilots that have `total` cores together at the least total waste, ascending.

    sizes: cores ≥ 1. waste: whole core-seconds ≥ 0. priority: whole numbers. Of pilots that waste the same per core
    those of the lowest priority go first, as far as the total allows (of the sets searched the one with the least
    Σ cores × priority); of pilots that are equal in all, the first. Raises ValueError when no pilots make `total` (see
    `subset_sums.total_to_give`).
    """
    if total <= 0:
        return np.empty(0, dtype=np.int64)
    if total >= int(sizes.sum()):
        if total > int(sizes.sum()):
            raise ValueError(f"no pilots of these sizes make {total} cores")
        return np.arange(len(sizes))
    taken, last, nearest = _by_waste_per_core(sizes, waste, priority, total)
    steps = np.where(taken, -sizes, sizes)

    def pays(places: Whole) -> Pair:
        """Return the reduced costs: what treating these pilots otherwise than the order does adds to a set."""
        sign = np.where(taken[places], -1.0, 1.0)
        reduced = np.empty(len(places), dtype=np.complex128)
        reduced.real = sign * (waste[places] * sizes[last] - waste[last] * sizes[places])
        reduced.imag = sign * sizes[places] * float(sizes[last]) * (priority[places] - priority[last])
        return reduced

    search = _Search(total - int(sizes[taken].sum()))
    nearest = _outwards(nearest, steps[nearest], pays(nearest), len(nearest))
    search.extend(nearest, steps[nearest], pays(nearest), np.inf)
    left = np.abs(waste * sizes[last] - waste[last] * sizes) <= search.pays.real - sizes[last]
    left[nearest] = False
    if left.any():
        # A best set differs from the order in fewer than 2 × largest pilots: more of a size need not be looked at.
        others = np.flatnonzero(left)
        others = _outwards(others, steps[others], pays(others), 2 * int(sizes.max()))
        search.extend(others, steps[others], pays(others), float(sizes[last]))
    if search.pays == _UNREACHED:
        raise ValueError(f"no pilots of these sizes make {total} cores")
    taken[search.differs()] ^= True
    return np.flatnonzero(taken)


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


def _outwards(places: Whole, steps: Whole, pays: Pair, several: int) -> Whole:
    """Sort `places` by pay per core, the nearest `several` of each size and side; first one of each, then two.

    Of pilots that pay the same, the last that is taken (a step down) and the first that is not go first.
    """
    costs = pays / np.abs(steps)
    order = np.lexsort((np.where(steps < 0, -places, places), costs.imag, costs.real, steps))
    starts = np.flatnonzero(np.diff(steps[order], prepend=0))
    within = np.arange(len(places)) - np.repeat(starts, np.diff(starts, append=len(places)))
    order, within = order[within < several], within[within < several]
    costs = costs[order]
    return places[order[np.lexsort((within, costs.imag, costs.real, np.floor(np.log2(within + 1))))]]


class _Search:
    """The least that a set pays for each number of cores by which it differs from the order."""

    def __init__(self, goal: int) -> None:
        """Start with the order itself; `goal`: the difference that is wanted, in cores."""
        self._goal = goal
        self._low, self._best = 0, np.zeros(1, dtype=np.complex128)
        self._steps: list[tuple[int, int, int, Bits]] = []
        self.pays = np.complex128(0 if goal == 0 else _UNREACHED)

    def extend(self, places: Whole, steps: Whole, pays: Pair, unit: float) -> None:
        """Let the pilots at `places` be treated otherwise than the order does, which adds `steps` cores and `pays`.

        Sets that do not waste less than the best one so far, by `unit` at least, may be left out; none when infinite.
        """
        later = np.minimum.accumulate((pays.real / np.abs(steps))[::-1])[::-1]  # a core's least cost from here on
        for place, step, cost, per_core in zip(places.tolist(), steps.tolist(), pays, later.tolist()):
            bound = np.inf if np.isinf(unit) else float(self.pays.real) - unit
            if cost.real <= bound:
                self._step(place, step, cost)
                self._leave_out(bound, per_core)

    def _step(self, place: int, step: int, cost: np.complex128) -> None:
        low, high = self._low, self._low + len(self._best) - 1
        new_low = min(low, low + step)
        best = np.full(max(high, high + step) - new_low + 1, _UNREACHED)
        best[low - new_low : high - new_low + 1] = self._best
        into = best[low + step - new_low : high + step - new_low + 1]
        offer = self._best + cost
        better = offer < into
        np.copyto(into, offer, where=better)
        self._low, self._best = new_low, best
        self._steps.append((place, step, low + step, np.packbits(better)))
        if 0 <= self._goal - new_low < len(best):
            self.pays = best[self._goal - new_low]

    def _leave_out(self, bound: float, per_core: float) -> None:
        """Forget the farthest sets that can no more come to the goal within `bound`."""
        if bound < np.inf:
            away = np.abs(np.arange(self._low - self._goal, self._low - self._goal + len(self._best)))
            alive = np.flatnonzero((self._best.real + away * per_core <= bound) | (away == 0))
            first, last = int(alive[0]), int(alive[-1])
            self._low, self._best = self._low + first, self._best[first : last + 1]

    def differs(self) -> list[int]:
        """Return the places of the pilots that the best set treats otherwise."""
        cores, found = self._goal, []
        for place, step, low, better in reversed(self._steps):
            at = cores - low
            if 0 <= at < 8 * len(better) and better[at >> 3] >> (7 - (at & 7)) & 1:
                found.append(place)
                cores -= step
        return found

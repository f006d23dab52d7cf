"""Search, pilot after pilot, the least that a set pays for each number of cores by which it differs from another set.

Work is counted, not timed: the same pilots give the same answer everywhere. A search that has used its work up, or that
keeps to a number of cores near its goal, may have overlooked a set that pays less.
"""

from __future__ import annotations

import math

import numpy as np

from drainwise.reclaim.totals.arrays import Bits, Pair, Whole

_STEP = 2000
"""Work of one step beside the cells that it passes over, in cells."""
UNREACHED = complex(math.inf, -math.inf)
"""Stays so whatever is added, and is never less than itself."""


class CoreSearch:
    """The least that a set pays for each difference in cores, from the first set onwards."""

    def __init__(self, goal: int, work: int, within: int, is_complete: bool) -> None:
        """Start with the first set itself. goal: the difference that is wanted, in cores.

        work: how many cells may be passed over. within: differences beyond as many cores from the goal are left out.
        is_complete: whether no set needs those.
        """
        self._goal, self._work, self._within = goal, work, within
        self._low, self._best = 0, np.zeros(1, dtype=np.complex128)
        self._steps: list[tuple[int, int, int, Bits]] = []
        self.pays = np.complex128(0 if goal == 0 else UNREACHED)
        self.is_complete = is_complete
        """Whether no set was left out that might pay less."""

    def extend(self, places: Whole, steps: Whole, pays: Pair, unit: float) -> None:
        """Let the pilots at `places` be treated otherwise than in the first set, which adds `steps` cores and `pays`.

        Sets that do not waste less than the best one so far, by `unit` at least, may be left out; none when infinite.
        """
        later = np.minimum.accumulate((pays.real / np.abs(steps))[::-1])[::-1]  # a core's least cost from here on
        for place, step, cost, per_core in zip(places.tolist(), steps.tolist(), pays, later.tolist()):
            bound = np.inf if np.isinf(unit) else float(self.pays.real) - unit
            if cost.real <= bound:
                self._work -= len(self._best) + abs(step) + _STEP
                if self._work < 0:
                    self.is_complete = False
                    return
                self._step(place, step, cost)
                self._leave_out(bound, per_core)

    def _step(self, place: int, step: int, cost: np.complex128) -> None:
        low, high = self._low, self._low + len(self._best) - 1
        new_low, new_high = min(low, low + step), max(high, high + step)
        best = np.full(new_high - new_low + 1, UNREACHED)
        best[low - new_low : high - new_low + 1] = self._best
        into = best[low + step - new_low : high + step - new_low + 1]
        offer = self._best + cost
        better = offer < into
        np.copyto(into, offer, where=better)
        self._steps.append((place, step, low + step, np.packbits(better)))
        first = max(0, self._goal - self._within - new_low)
        self._low, self._best = new_low + first, best[first : self._goal + self._within + 1 - new_low]
        if 0 <= self._goal - self._low < len(self._best):
            self.pays = self._best[self._goal - self._low]

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

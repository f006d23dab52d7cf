"""Find which totals near a number of cores whole pilots can make, and pilots that make one, with bounded work.

Near a large total most pilots need no search. Start from any pilots that make about as much, the smallest: if others
make a total exactly, then some that differ from those by fewer than 3 × the largest do. For, exchanged in an order that
keeps close to the total, more of them would come by the same number of cores twice: what lies between can be left out.

All that may take long where sizes are large and different. Then the search is narrowed, to fewer pilots of each size
and to fewer cores of difference: every total that it finds can be made, but it may overlook one. The work is counted,
not timed: the same sizes give the same answer everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from drainwise.reclaim.totals.arrays import Whole

_WORK = 12_000_000
"""Words of 64 bits that a search may pass over; some tens of milliseconds."""
_NARROW = 4
"""How far a narrowed search may come from the total, in times the largest pilot."""


class NearSums:
    """Totals that pilots of these sizes (cores ≥ 1) can make, fewer cores from `near` than the largest has."""

    def __init__(self, sizes: Whole, near: int, first: Whole | None = None) -> None:
        """Search near a total of `near` cores; first: pilots of these sizes are the first that it starts from."""
        self._unit = int(np.gcd.reduce(sizes)) if len(sizes) else 1
        near //= self._unit
        counts = np.bincount(sizes // self._unit, minlength=1)
        largest = len(counts) - 1
        several, ceiling, start = 3 * largest, (3 * largest * largest + 1) // 2 + 2 * largest, _smallest(counts, near)
        if first is not None:
            start = np.bincount(first // self._unit, minlength=len(counts))
        elif near <= ceiling:
            several, ceiling, start = near + largest, near + largest, np.zeros_like(counts)
        width, steps = _around(counts, start, several, ceiling)
        work = _chunks(steps) * (width >> 6)
        self.is_complete = work <= _WORK
        """Whether every total in reach is known, so that one that is not among them cannot be made."""
        if not self.is_complete:
            start = _smallest(counts, near) if first is None else start
            width, steps = _around(counts, start, several, ceiling)
            ceiling = min(ceiling, max(_NARROW * largest, (_WORK << 5) // _chunks(steps)))
            width = 2 * ceiling
            steps = _fewer(_around(counts, start, several, ceiling)[1], _WORK // max(1, width >> 6))
            work = _WORK
        self.work = work + len(sizes) + largest
        """What was passed over, in words and sizes."""
        self._start, self._base = start, int(start @ np.arange(len(counts)))
        self._steps = _doubling(steps)
        self._zero, self._mask = width - ceiling, (1 << (width + 1)) - 1
        self._every = math.isqrt(len(self._steps)) + 1
        self._kept: list[int] = []
        self._sums = 1 << self._zero
        for number, (size, several) in enumerate(self._steps):
            if number % self._every == 0:
                self._kept.append(self._sums)
            self._sums = self._with(self._sums, size * several)

    def _with(self, sums: int, step: int) -> int:
        return sums | (sums << step & self._mask if step >= 0 else sums >> -step)

    def __contains__(self, total: int) -> bool:
        place, rest = divmod(total, self._unit)
        place += self._zero - self._base
        return rest == 0 and place >= 0 and bool(self._sums >> place & 1)

    def smallest(self, low: int, high: int) -> int | None:
        """Return the smallest known total from `low` to `high`, None when there is none."""
        place = max(0, -(-low // self._unit) + self._zero - self._base)
        above = self._sums >> place
        if not above:
            return None
        total = (place + (above & -above).bit_length() - 1 + self._base - self._zero) * self._unit
        return total if total <= high else None

    def largest(self, high: int) -> int | None:
        """Return the largest known total that is not above `high`, None when there is none."""
        place = high // self._unit + self._zero - self._base
        below = self._sums & ((1 << (place + 1)) - 1) if place >= 0 else 0
        return (below.bit_length() - 1 + self._base - self._zero) * self._unit if below else None

    def counts_of(self, total: int) -> dict[int, int]:
        """Return how many pilots of each size make a `total` that is known."""
        found = {int(size): int(self._start[size]) for size in np.flatnonzero(self._start)}
        place = total // self._unit + self._zero - self._base
        for block in range(len(self._kept) - 1, -1, -1):
            steps = self._steps[block * self._every : (block + 1) * self._every]
            before = [self._kept[block]]
            for size, several in steps:
                before.append(self._with(before[-1], size * several))
            for (size, several), sums in zip(reversed(steps), reversed(before[:-1])):
                if not sums >> place & 1:
                    place -= size * several
                    found[size] = found.get(size, 0) + several
        return {size * self._unit: count for size, count in found.items() if count}


def _smallest(counts: Whole, near: int) -> Whole:
    """Return how many of each size make at most `near`, the smallest pilots first."""
    sizes, start = np.arange(len(counts)), np.zeros_like(counts)
    before = np.cumsum(counts * sizes) - counts * sizes
    start[1:] = np.clip((near - before[1:]) // sizes[1:], 0, counts[1:])
    return start


def _around(counts: Whole, start: Whole, several: int, ceiling: int) -> tuple[int, list[tuple[int, int]]]:
    """Return how many cores of difference there are, and by size how many pilots are left out (< 0) or added."""
    several_of = np.minimum(several, 2 * ceiling // np.maximum(np.arange(len(counts)), 1))
    less, more = np.minimum(start, several_of), np.minimum(counts - start, several_of)
    steps = [(int(size), -int(less[size])) for size in np.flatnonzero(less)]
    return ceiling * (2 if steps else 1), steps + [(int(size), int(more[size])) for size in np.flatnonzero(more)]


def _chunks(steps: Sequence[tuple[int, int]]) -> int:
    return sum(abs(count).bit_length() for _, count in steps)


def _doubling(steps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return steps of 1, 2, 4, … pilots of a size, which together can be any number of them."""
    found = []
    for size, count in steps:
        left, several = abs(count), 1
        while left:
            several = min(several, left)
            found.append((size, several if count > 0 else -several))
            left -= several
            several *= 2
    return found


def _fewer(steps: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return at most `most` pilots of the steps: first those without which fewer remainders could be had, then of
    sizes evenly chosen as many as fit, of those that are left out and of those that are added alike.
    """
    first, unit = [], 0
    for step in sorted(steps, key=lambda one: -abs(one[1])):
        if math.gcd(unit, step[0]) != unit:
            unit = math.gcd(unit, step[0])
            first.append(step)
    kept = set(first)
    room = max(0, most - _chunks(first)) // 2
    less = [step for step in steps if step[1] < 0 and step not in kept]
    more = [step for step in steps if step[1] > 0 and step not in kept]
    found = list(first)
    for others in (less, more):
        some = [others[number * len(others) // room] for number in range(room)] if len(others) > room else others
        several = (1 << min(room // max(1, len(some)), 40)) - 1
        found += [(size, max(-several, min(several, count))) for size, count in some]
    return found

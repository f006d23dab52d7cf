"""Find the totals of cores that whole pilots can make (subset sums), by their sizes alone, so no claim has a part.

A user gives back the smallest total of whole pilots that covers what it owes. Every policy is held to that total and
decides only *which* pilots make it; so neither a policy nor a claim changes how many cores anybody loses.
"""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.totals.arrays import Whole


def total_to_give(sizes: Whole, cores: int, most: int) -> int:
    """Return the smallest total of whole pilots of these sizes (cores ≥ 1) from `cores` to `most`.

    When there is none, the largest total below `cores` that does not exceed `most`; 0 when nothing is needed.
    """
    if cores <= 0 or most <= 0 or not len(sizes):
        return 0
    fitting, near = sizes[sizes <= most], min(cores, most)
    everything = int(fitting.sum())
    if everything <= near:
        return everything
    # A smallest set needs each of its pilots: it exceeds the need by less than the largest.
    largest = int(fitting.max())
    totals = _Totals(fitting, near)
    above = range(cores, min(most, cores + largest - 1) + 1)
    below = range(near, max(0, near - largest), -1)
    return next((total for total in (*above, *below) if total in totals), 0)


def first_that_make(sizes: Whole, total: int) -> Whole:
    """Return the places of the first pilots, in the order of their `sizes`, that make exactly `total`.

    One after the other is taken, and passed over only where with it the total could not be made any more. Raises
    ValueError when no pilots make `total`.
    """
    places, taken, left = np.flatnonzero(sizes <= total), [], total
    if not _can_make(sizes[places], left):
        raise ValueError(f"no pilots of these sizes make {total} cores")
    while left:
        cores = np.cumsum(sizes[places])
        # A shorter run from the front can be completed if a longer one can: search for the longest.
        fits, over = 0, int(np.searchsorted(cores, left, side="right")) + 1
        while over - fits > 1:
            middle = (fits + over) // 2
            if _can_make(sizes[places[middle:]], left - int(cores[middle - 1])):
                fits = middle
            else:
                over = middle
        if fits:
            taken.append(places[:fits])
            left -= int(cores[fits - 1])
        if left:
            # What does not fit now will not fit later either, and no other pilot of its size will.
            refused, places = sizes[places[fits]], places[fits + 1 :]
            places = places[(sizes[places] != refused) & (sizes[places] <= left)]
    return np.concatenate(taken) if taken else np.empty(0, dtype=np.int64)


def _can_make(sizes: Whole, total: int) -> bool:
    return total in _Totals(sizes[sizes <= total], total)


class _Totals:
    """Which totals, fewer cores from `near` than the largest pilot has, pilots of these sizes can make.

    Near a large total most pilots need no search. Start from any pilots that make about as much: if others
    make a total exactly, then some that differ from those by fewer than 4 × the largest do. For, exchanged in an order
    that keeps close to the total, more of them would come by the same number of cores twice: what lies between can be
    left out.
    """

    def __init__(self, sizes: Whole, near: int) -> None:
        counts = np.bincount(sizes, minlength=1)
        largest = len(counts) - 1
        several, ceiling = 4 * largest, 4 * largest * largest
        self._base, start = 0, np.zeros_like(counts)
        if near > ceiling:
            cores = counts * np.arange(len(counts))
            before = np.cumsum(cores) - cores
            start[1:] = np.clip((near - before[1:]) // np.arange(1, len(counts)), 0, counts[1:])
            self._base = int(start @ np.arange(len(counts)))
        else:
            several, ceiling = near + largest, near + largest
        self._more = _sums(np.minimum(counts - start, several), ceiling)
        self._less = _sums(np.minimum(start, several), ceiling)

    def __contains__(self, total: int) -> bool:
        beyond = total - self._base
        if beyond < 0:
            return bool(self._less & self._more << -beyond)
        return bool(self._more & self._less << beyond)


def _sums(counts: Whole, ceiling: int) -> int:
    """Return the subset sums up to `ceiling` of `counts` pilots of each size, as the bits of a number."""
    sums, mask = 1, (1 << (ceiling + 1)) - 1
    for size in np.flatnonzero(counts).tolist():
        left, several = min(int(counts[size]), ceiling // size), 1
        while left:
            several = min(several, left)
            sums |= sums << (size * several) & mask
            left -= several
            several *= 2
    return sums

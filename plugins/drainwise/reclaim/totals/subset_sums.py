"""Find the totals of cores that whole pilots can make (subset sums), by their sizes alone, so no claim has a part.

A user gives back the smallest total of whole pilots that covers what it owes. Every policy is held to that total and
decides only *which* pilots make it; so neither a policy nor a claim changes how many cores anybody loses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.totals.arrays import Whole
from drainwise.reclaim.totals.near_sums import NearSums

_WORK = 60_000_000
"""What the searches of `first_that_make` may pass over; then what is known to make the total is taken."""


@dataclass(frozen=True)
class FoundTotal:
    """A total of whole pilots. is_proven: no smaller one covers the need; else one may have been overlooked."""

    cores: int
    is_proven: bool


def total_to_give(sizes: Whole, cores: int, most: int) -> int:
    """Return the smallest total of whole pilots of these sizes (cores ≥ 1) from `cores` to `most`.

    When there is none, the largest total below `cores` that does not exceed `most`; 0 when nothing is needed. Where
    sizes are large and different, of the totals that are found with bounded work: see `found_total`.
    """
    return found_total(sizes, cores, most).cores


def found_total(sizes: Whole, cores: int, most: int) -> FoundTotal:
    """Return the total of `total_to_give`, and whether it is proven."""
    if cores <= 0 or most <= 0 or not len(sizes):
        return FoundTotal(0, True)
    # Of a set that covers the need with no pilot too many, each is smaller than the need, or it is one pilot alone.
    alone = sizes[(sizes >= cores) & (sizes <= most)]
    single = int(alone.min()) if len(alone) else most + 1
    if single == cores <= most:
        return FoundTotal(cores, True)
    fitting, near = sizes[(sizes < cores) & (sizes <= most)], min(cores, most)
    everything = int(fitting.sum())
    if everything <= near:
        return FoundTotal(single if everything < cores and single <= most else everything, True)
    sums = NearSums(fitting, near)
    total = sums.smallest(cores, min(most, single, cores + int(fitting.max()) - 1)) or (
        single if single <= most else None
    )
    if total is None:
        total = sums.largest(near)
    is_proven = sums.is_complete or total == near
    if total is not None and (total == single or sums.is_complete or total in NearSums(sizes[sizes <= total], total)):
        return FoundTotal(total, is_proven)
    return FoundTotal(_smallest_pilots(fitting, cores, most), False)


def _smallest_pilots(sizes: Whole, cores: int, most: int) -> int:
    """Return the total of the smallest pilots that cover `cores` within `most`, else of as many as fit."""
    totals = np.cumsum(np.sort(sizes))
    covering = int(np.searchsorted(totals, cores))
    if covering < len(totals) and totals[covering] <= most:
        return int(totals[covering])
    return int(totals[np.searchsorted(totals, most, side="right") - 1])


def some_that_make(sizes: Whole, total: int, like: Whole | None = None) -> Whole:
    """Return the places of pilots that make exactly `total`, of each size the first.

    like: sizes of pilots that make about as much; such as differ little from these where they are found.
    Raises ValueError when none are found.
    """
    alone = np.flatnonzero(sizes == total)[:1]
    if len(alone):
        return alone
    sums = NearSums(sizes[sizes <= total], total, like)
    if total not in sums and like is not None:
        sums = NearSums(sizes[sizes <= total], total)
    if total not in sums:
        raise ValueError(f"no pilots of these sizes make {total} cores")
    counts = np.zeros(int(sizes.max(initial=0)) + 1, dtype=np.int64)
    for size, count in sums.counts_of(total).items():
        counts[size] = count
    order = np.argsort(sizes, kind="stable")
    nth = np.arange(len(sizes)) - np.searchsorted(sizes[order], sizes[order])
    return np.sort(order[nth < counts[sizes[order]]])


def first_that_make(sizes: Whole, total: int) -> Whole:
    """Return the places of the first pilots, in the order of their `sizes`, that make exactly `total`.

    One after the other is taken, and passed over only where with it the total could not be made any more; after so much
    work that this may be overlooked, others may be taken. Raises ValueError when no pilots make `total`.
    """
    places, taken, left, work, is_complete = np.flatnonzero(sizes <= total), [], total, _WORK, True

    def can_make(rest: Whole, cores: int) -> bool:
        nonlocal work, is_complete
        sums = NearSums(rest[rest <= cores], cores)
        work -= sums.work
        is_complete &= sums.is_complete
        return cores in sums or bool((rest == cores).any())

    if not can_make(sizes[places], left):
        raise ValueError(f"no pilots of these sizes make {total} cores")
    while left:
        cores = np.cumsum(sizes[places])
        # A shorter run from the front can be completed if a longer one can: search for the longest.
        fits, over = 0, int(np.searchsorted(cores, left, side="right")) + 1
        while over - fits > 1 and work > 0:
            middle = (fits + over) // 2
            if can_make(sizes[places[middle:]], left - int(cores[middle - 1])):
                fits = middle
            else:
                over = middle
        if fits:
            taken.append(places[:fits])
            left -= int(cores[fits - 1])
        if left:
            # What does not fit now will not fit later either, and no other pilot of its size will.
            refused, known = sizes[places[fits]], places[fits:]
            places = places[fits + 1 :]
            places = places[(sizes[places] != refused) & (sizes[places] <= left)]
            if work <= 0 or not (is_complete or can_make(sizes[places], left)):
                taken.append(known[some_that_make(sizes[known], left)])
                left = 0
    return np.concatenate(taken) if taken else np.empty(0, dtype=np.int64)

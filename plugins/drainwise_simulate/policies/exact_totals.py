"""Find what whole pilots make exactly: totals of cores, and the cheapest pilots for one."""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.choose.problem import Real, Whole


def total_to_give(sizes: Whole, cores: int, most: int) -> int:
    """Return the smallest total of pilots of these sizes from `cores` to `most`, else the largest below."""
    most = min(most, int(sizes.sum()))
    if cores <= 0 or most <= 0:
        return 0
    unit = int(np.gcd.reduce(sizes))
    totals = _totals(sizes // unit, most // unit)[-1]
    enough = totals >> -(-cores // unit)
    if enough:
        return unit * (-(-cores // unit) + (enough & -enough).bit_length() - 1)
    return unit * (totals.bit_length() - 1)


def first_that_make(sizes: Whole, total: int) -> Whole:
    """Return the places of the first pilots, in the order of their `sizes`, that make exactly `total`.

    One is passed over only where with it the total could not be made any more. Raises ValueError where it cannot be.
    """
    unit = max(1, int(np.gcd.reduce(sizes)))
    left, found, totals = total // unit, [], _totals(sizes[::-1] // unit, total // unit)
    if total % unit or not totals[-1] >> left & 1:
        raise ValueError(f"no pilots of these sizes make {total} cores")
    for place, size in enumerate((sizes // unit).tolist()):
        if size <= left and totals[len(sizes) - 1 - place] >> (left - size) & 1:
            found.append(place)
            left -= size
    return np.array(found, dtype=np.int64)


def cheapest_of_total(sizes: Whole, cost: Real, total: int) -> Whole:
    """Return the places of the pilots that make `total` at the least cost; of equal ones the first.

    Raises ValueError where no pilots make it.
    """
    unit = max(1, int(np.gcd.reduce(sizes)))
    goal = total // unit
    least = np.full(goal + 1, np.inf)
    least[0] = 0.0
    taken = []
    for size, price in zip((sizes // unit).tolist()[::-1], cost.tolist()[::-1]):
        offer = np.full(goal + 1, np.inf)
        offer[size:] = least[: max(0, goal + 1 - size)] + price
        taken.append(np.packbits(offer <= least))
        least = np.minimum(offer, least)
    if total % unit or np.isinf(least[goal]):
        raise ValueError(f"no pilots of these sizes make {total} cores")
    found = []
    for place, (size, bits) in enumerate(zip((sizes // unit).tolist(), taken[::-1])):
        if bits[goal >> 3] >> (7 - (goal & 7)) & 1 and goal:
            found.append(place)
            goal -= size
    return np.array(found, dtype=np.int64)


def _totals(sizes: Whole, most: int) -> list[int]:
    """Return, as bits of a number, which totals up to `most` the first 0, 1, 2, … pilots make."""
    mask, found = (1 << most + 1) - 1, [1]
    for size in sizes.tolist():
        found.append((found[-1] | found[-1] << size) & mask if size <= most else found[-1])
    return found

"""The cheapest set of pilots that covers a number of cores, exactly, by dynamic programming over cores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One pilot as the search sees it: cores ≥ 1, waste ≥ 0 in core-seconds; of equals the lower rank goes first."""

    cores: int
    waste: int
    rank: int
    name: str


Cost = tuple[int, int]
"""Total waste, then total rank: what a choice of so many cores costs."""


def cheapest_cover(items: Sequence[Item], cores: int, most: int | None = None) -> list[Item]:
    """The items of least total waste that have at least `cores` cores together, and at most `most` when that is given.

    Ties: fewer cores beyond `cores`, then the lower total rank, then the names. When no set fits between the two
    bounds, the set that comes closest to `cores` from below, at least waste. In time and memory proportional to
    `cores` × Σ over the sizes s of min(items of that size, cores / s).
    """
    if cores <= 0 or not items:
        return []
    unit = math.gcd(*(item.cores for item in items))
    needed = -(-cores // unit)
    largest = max(item.cores for item in items) // unit
    ceiling = needed + largest - 1  # without any one of its items a cheapest cover would not cover
    if most is not None:
        ceiling = min(ceiling, most // unit)
    useful = _useful(items, needed * unit)
    ceiling = min(ceiling, sum(item.cores for item in useful) // unit)
    best, taken = _table(useful, ceiling, unit)
    reached = [(best[total], total) for total in range(needed, ceiling + 1) if best[total] is not None]
    if reached:
        # waste first, then the cores, then the ranks
        total = min(((cost[0], total, cost[1]) for cost, total in reached if cost is not None))[1]
    else:
        total = max(total for total in range(min(needed, ceiling + 1)) if best[total] is not None)
    return _trace(useful, taken, total, unit)


def _useful(items: Sequence[Item], cores: int) -> list[Item]:
    """Of each size the cheapest as far as they can be needed: another one of that size is never better."""
    by_size: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        by_size[item.cores].append(item)
    useful = []
    for size in sorted(by_size):
        same = sorted(by_size[size], key=lambda item: (item.waste, item.rank, item.name))
        useful += same[: -(-cores // size)]
    return useful


def _table(items: Sequence[Item], ceiling: int, unit: int) -> tuple[list[Cost | None], list[bytearray]]:
    """For each exact total of cores (in units) the least cost, and per item the totals in whose choice it is taken."""
    best: list[Cost | None] = [None] * (ceiling + 1)
    best[0] = (0, 0)
    taken = []
    for item in items:
        size, row = item.cores // unit, bytearray(ceiling + 1)
        for total in range(ceiling, size - 1, -1):
            before = best[total - size]
            if before is None:
                continue
            cost, now = (before[0] + item.waste, before[1] + item.rank), best[total]
            if now is None or cost < now:
                best[total], row[total] = cost, 1
        taken.append(row)
    return best, taken


def _trace(items: Sequence[Item], taken: Sequence[bytearray], total: int, unit: int) -> list[Item]:
    chosen = []
    for item, row in zip(reversed(items), reversed(taken)):
        if row[total]:
            chosen.append(item)
            total -= item.cores // unit
    return sorted(chosen, key=lambda item: (item.waste * 1.0 / item.cores, item.rank, item.name))

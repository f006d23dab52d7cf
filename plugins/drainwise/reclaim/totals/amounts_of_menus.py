"""Choose one amount from each of many menus so that all make an exact total at the least cost.

A menu says what each amount from 0 on costs, infinite where it cannot be had. By dynamic programming over the totals,
exactly; where that is more work than is allowed, the cheapest per unit first, without a proof. The amounts come from
sizes that users choose, so the work is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drainwise.reclaim.totals.arrays import Real

_CELLS = 24_000_000
"""Cells that an exact search may pass over; some tenths of a second."""
_ENTRIES = 40_000
"""Amounts in all menus that an exact search looks at, each with one pass over all totals."""


def cheapest_amounts(menus: Sequence[Real], least: int, most: int) -> tuple[list[int], bool]:
    """Return an amount for each menu, and whether nothing is cheaper.

    The amounts make the smallest total from `least` to `most` that can be made, else the largest below. menus: by
    amount, with 0 for nothing; costs are 0 or more.
    """
    entries = sum(min(len(menu), most + 1) for menu in menus)
    if entries > _ENTRIES or entries * (most + 1) > _CELLS:
        return _greedy(menus, least), False
    best = np.full(most + 1, np.inf)
    best[0] = 0.0
    taken = []
    for menu in menus:
        found, amounts = best.copy(), np.zeros(most + 1, dtype=np.int64)
        for amount in np.flatnonzero(menu[1 : most + 1] < np.inf).tolist():
            cost = best[: most - amount] + menu[amount + 1]
            is_better = cost < found[amount + 1 :]
            found[amount + 1 :][is_better] = cost[is_better]
            amounts[amount + 1 :][is_better] = amount + 1
        taken.append(amounts)
        best = found
    reached = np.flatnonzero(best < np.inf)
    enough = reached[reached >= least]
    total = int(enough[0] if len(enough) else reached[-1])
    chosen = []
    for amounts in reversed(taken):
        chosen.append(int(amounts[total]))
        total -= chosen[-1]
    return chosen[::-1], True


def _greedy(menus: Sequence[Real], total: int) -> list[int]:
    """Raise amounts while the total is not passed, always by what costs least for each unit more."""
    chosen, left = [0] * len(menus), total
    for _ in range(2):  # what is cheap comes first; then what is dear takes the place of a smaller amount
        steps = []
        for row, menu in enumerate(menus):
            have = chosen[row]
            more = np.flatnonzero(menu[have + 1 :] < np.inf) + 1
            steps += [((menu[have + by] - menu[have]) / by, -by, row) for by in more.tolist()]
        moved = set()
        for _, by, row in sorted(steps):
            if row not in moved and -by <= left:
                moved.add(row)
                chosen[row] -= by
                left += by
    return chosen

"""Plan by cores alone, where it is not known what waits in which place: one virtual place, one amount.

Facts: users in the order of their ranks give up to their limits until the need is met. Claims: each user, or group of
users whose reports compete, gives what was wanted of it by other rows, within its budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Rules, extra_cores, groups_of, price_by_claims, price_by_facts
from drainwise.reclaim.choose.problem import CORES, Limits, Mask, Real, Rows, Whole, sums
from drainwise.reclaim.choose.sets import ALL_OF, subsets

NEAR, MOST_TOTALS = 10, 256
"""Rows on either side of the last one by price alone among which is searched; totals that are kept then."""
_BLOCK = 500_000
"""Totals in memory at once."""


@dataclass(frozen=True, eq=False)
class CoresPlan:
    """Which rows go (n), which would by facts alone (n), and how many cores each user may lose (U)."""

    gone: Mask
    by_facts: Mask
    budget: Real


def plan_cores(rows: Rows, limits: Limits, cores: float, rules: Rules) -> CoresPlan:
    """Return rows that give so many cores, one way of a pilot at most; devices are bound by no limit here."""
    size, users = rows.spends[:, CORES], len(limits.rank)
    facts = price_by_facts(rows, limits, 0.0)
    able = _ways(rows, np.where(size > 0, facts, np.inf))
    by_user = _Segments(rows.pilot, able[np.argsort(rows.user[able], kind="stable")], rows.user, users)
    first, wanted, rest = _by_facts(by_user, size, facts, limits, cores)
    lost = sums(rows.user[first], size[first], users)
    budget = lost + extra_cores(rows, limits, lost, rest)
    price = price_by_claims(rows, rules.idle)
    able = _ways(rows, np.where((size > 0) & np.isfinite(facts) & (lost > 0)[rows.user], price, np.inf))
    group = groups_of(limits, rules.compete)
    count = int(group.max(initial=-1)) + 1
    if rules.compete != "user":  # as few rows as any choice of which is within the budgets
        able = able[np.lexsort((price[able] / size[able], rows.user[able]))]
        own = _Segments(rows.pilot, able, rows.user, users)
        able = able[own.running(size) <= budget[rows.user[able]]]
    able = able[np.argsort(group[rows.user[able]], kind="stable")]
    by_group = _Segments(rows.pilot, able, group[rows.user], count)
    want, most = sums(group, wanted, count), sums(group, budget, count)
    second = by_group.cover(size, price, want, most)
    kept = by_group.sums(size, second) < want
    kept |= by_group.sums(price, second) >= by_group.sums(price, first)
    gone = np.zeros(len(rows), dtype=bool)
    gone[second[~kept[group[rows.user[second]]]]] = True
    gone[first[kept[group[rows.user[first]]]]] = True
    by_facts = np.zeros(len(rows), dtype=bool)
    by_facts[first] = True
    return CoresPlan(gone, by_facts, budget)


def _ways(rows: Rows, price: Real) -> Whole:
    """Return the rows of a finite price, by pilot and cores; of one pilot's that give as much only the cheapest."""
    able = np.flatnonzero(np.isfinite(price))
    order = able[np.lexsort((price[able], rows.spends[able, CORES], rows.pilot[able]))]
    pilot, size = rows.pilot[order], rows.spends[order, CORES]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (pilot[1:] != pilot[:-1]) | (size[1:] != size[:-1])
    return order[first]


def _by_facts(by_user: _Segments, size: Real, price: Real, limits: Limits, cores: float) -> tuple[Whole, Real, Real]:
    """Return the rows that go by facts, the cores that each user is to give (U), and what is left of limits (L)."""
    rest = np.maximum(limits.most, 0.0)
    bounds = [
        [int(one) for one in binds if one >= 0 and limits.counts[one] == CORES] for binds in limits.binds.tolist()
    ]
    most = np.array([min((float(rest[one]) for one in bound), default=np.inf) for bound in bounds])
    most = np.minimum(most, by_user.sums(size))
    guess = by_user.cover(size, price, most, most)
    given = by_user.sums(size, guess)
    chosen, wanted = [guess], np.zeros(len(most))
    anew = np.zeros(len(most), dtype=bool)
    left: list[float] = rest.tolist()
    for user in np.lexsort((np.arange(len(most)), limits.rank)).tolist():
        allowed = min([float(most[user]), *(left[one] for one in bounds[user])])
        wanted[user] = max(0.0, min(cores, allowed))
        if wanted[user] < given[user]:  # less than was guessed
            anew[user] = True
            some = by_user.covered(user, size, price, float(wanted[user]), allowed)
            chosen.append(some)
            given[user] = size[some].sum()
        wanted[user] = min(wanted[user], given[user])
        cores -= given[user]
        for one in bounds[user]:
            left[one] -= given[user]
    chosen[0] = guess[~anew[by_user.whose[guess]]]
    return np.concatenate(chosen), wanted, np.array(left)


class _Segments:
    """Rows (ascending by whose they are) of each user or group. pilot, whose: n, of all rows."""

    def __init__(self, pilot: Whole, rows: Whole, whose: Whole, count: int) -> None:
        self.pilot, self.rows, self.whose = pilot, rows, whose
        self.begin = np.searchsorted(whose[rows], np.arange(count + 1))
        order = rows[np.argsort(pilot[rows], kind="stable")]
        self.has_ways = np.zeros(count, dtype=bool)
        self.has_ways[whose[order[1:][pilot[order[1:]] == pilot[order[:-1]]]]] = True

    def sums(self, amount: Real, rows: Whole | None = None) -> Real:
        """Return the sum of an amount over all rows, or these, of each."""
        some = self.rows if rows is None else rows
        return sums(self.whose[some], amount[some], len(self.begin) - 1)

    def running(self, amount: Real) -> Real:
        """Return the running sums of an amount over the rows of each, in the order of `rows`."""
        total = np.cumsum(amount[self.rows])
        before: Real = np.repeat(np.append(0.0, total)[self.begin[:-1]], np.diff(self.begin))
        return total - before

    def covered(self, number: int, size: Real, price: Real, want: float, most: float) -> Whole:
        """Return of one the cheapest rows found that give what is wanted, and no more than `most`; see `_cover`."""
        rows = self.rows[self.begin[number] : self.begin[number + 1]]
        return rows[_cover(self.pilot[rows], size[rows], price[rows], want, most)] if want > 0 else rows[:0]

    def cover(self, size: Real, price: Real, want: Real, most: Real) -> Whole:
        """Return the rows of all, each `covered` with what is wanted of it."""
        count = np.diff(self.begin)
        found = [self.rows[:0]]
        every = (self.sums(size) <= want) & (count > 0) & ~self.has_ways
        found.append(self.rows[every[self.whose[self.rows]]])
        open_ = ~every & (count > 0) & (want > 0)
        for number in range(1, ALL_OF + 1):
            alike = np.flatnonzero(open_ & (count == number) & ~self.has_ways)
            which = subsets((1,) * number)
            step = max(1, _BLOCK // len(which))
            for at in range(0, len(alike), step):
                some = alike[at : at + step]
                rows = self.rows[self.begin[some][:, None] + np.arange(number)]
                total, cost = size[rows] @ which.T, price[rows] @ which.T
                enough = np.minimum(want[some], np.where(total <= most[some][:, None], total, 0).max(axis=1))
                able = (total >= enough[:, None]) & (total <= most[some][:, None])
                best = np.where(able, cost, np.inf).argmin(axis=1)
                found.append(rows[which[best]])
        for one in np.flatnonzero(open_ & ((count > ALL_OF) | self.has_ways)).tolist():
            found.append(self.covered(one, size, price, float(want[one]), float(most[one])))
        return np.concatenate(found)


def _cover(pilot: Whole, size: Real, price: Real, want: float, most: float) -> Whole:
    """Return rows that give `want`, cheapest for a core first; of those near the last one the best set that is found.

    Where no set gives that much and no more than `most`: the largest rows first that are within it.
    """
    order, running = _steps(pilot, size, price)
    middle = int(np.searchsorted(running, want))
    low = max(0, middle - NEAR)
    near = np.unique(pilot[order[low : middle + NEAR]])
    sure = order[:low][::-1]  # the last step of a pilot is what it gives
    sure = sure[~np.isin(pilot[sure], near)]
    sure = sure[np.unique(pilot[sure], return_index=True)[1]]
    total, cost = size[sure].sum(keepdims=True), price[sure].sum(keepdims=True)
    steps: list[tuple[Whole, Whole, int]] = []
    loose = most - want >= size.max()
    for one in near.tolist():
        ways = np.flatnonzero(pilot == one)
        totals = np.concatenate((total, (total + size[ways, None]).reshape(-1)))
        costs = np.concatenate((cost, (cost + price[ways, None]).reshape(-1)))
        kept = np.lexsort((costs, -totals))
        kept = kept[totals[kept] <= most]
        least = np.minimum.accumulate(costs[kept])
        better = np.ones(len(kept), dtype=bool)
        better[1:] = costs[kept[1:]] < least[:-1] if loose else totals[kept[1:]] < totals[kept[:-1]]
        kept = kept[better]
        kept = kept[:: -(-len(kept) // MOST_TOTALS)]
        steps.append((ways, kept, len(total)))
        total, cost = totals[kept], costs[kept]
    enough = np.flatnonzero(total >= want)
    if len(enough):
        found, best = sure.tolist(), int(enough[cost[enough].argmin()])
        for ways, kept, before in reversed(steps):
            number, best = divmod(int(kept[best]), before)
            found += [ways[number - 1]] if number else []
        return np.array(found, dtype=np.int64)
    given, found, gone = 0.0, [], set[int]()
    for row in np.lexsort((price, -size)).tolist():
        if given < want and given + size[row] <= most and int(pilot[row]) not in gone:
            found.append(row)
            gone.add(int(pilot[row]))
            given += float(size[row])
    return np.array(found, dtype=np.int64)


def _steps(pilot: Whole, size: Real, price: Real) -> tuple[Whole, Real]:
    """Return rows, those first that give more at the lowest price for each core more, and what they give till then.

    The rows of a pilot come in the order of their sizes, each in place of the one before; those that are too dear for
    what they give are left out.
    """
    rows = np.lexsort((price, size, pilot))
    while True:
        again = np.append(False, pilot[rows[1:]] == pilot[rows[:-1]])
        more, dearer = size[rows].copy(), price[rows].copy()
        more[1:] -= np.where(again[1:], size[rows[:-1]], 0)
        dearer[1:] -= np.where(again[1:], price[rows[:-1]], 0)
        each = dearer / np.maximum(more, 1e-9)
        worse = np.append(again[1:] & (each[1:] <= each[:-1]), False)
        if not worse.any():
            break
        rows = rows[~worse]
    order = np.lexsort((-more, each))
    return rows[order], np.cumsum(more[order])

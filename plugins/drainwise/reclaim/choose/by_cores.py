"""Plan by cores alone, where it is not known what waits in which place: one virtual place, one amount.

Facts: users in the order of their ranks give up to their limits until the need is met. Claims: each user, or group of
users whose reports compete, gives what was wanted of it by other rows, within its budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Rules, extra_cores, groups_of, price_by_claims, price_by_facts
from drainwise.reclaim.choose.problem import CORES, Limits, Mask, Real, Rows, Whole
from drainwise.reclaim.choose.sets import ALL_OF, subsets

DEAREST, SWAPS = 12, 64
"""Rows that are tried to be replaced, one or two at once; how often that is done at most."""
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
    able = _cheapest_way(rows, np.where(size > 0, facts, np.inf))
    by_user = _Segments(able[np.argsort(rows.user[able], kind="stable")], rows.user, users)
    first, wanted, rest = _by_facts(by_user, size, facts, limits, cores)
    lost = np.bincount(rows.user[first], weights=size[first], minlength=users)
    budget = lost + extra_cores(rows, limits, lost, rest)
    price = price_by_claims(rows, rules.idle)
    able = _cheapest_way(rows, np.where((size > 0) & np.isfinite(facts) & (lost > 0)[rows.user], price, np.inf))
    group = groups_of(limits, rules.compete)
    count = int(group.max(initial=-1)) + 1
    if rules.compete != "user":  # as few rows as any choice of which is within the budgets
        able = able[np.lexsort((price[able] / size[able], rows.user[able]))]
        own = _Segments(able, rows.user, users)
        able = able[own.running(size) <= budget[rows.user[able]]]
    able = able[np.argsort(group[rows.user[able]], kind="stable")]
    by_group = _Segments(able, group[rows.user], count)
    want = np.bincount(group, weights=wanted, minlength=count)
    most = np.bincount(group, weights=budget, minlength=count)
    second = by_group.cover(size, price, want, most)
    given = np.bincount(group[rows.user[second]], weights=size[second], minlength=count)
    spent = np.bincount(group[rows.user[second]], weights=price[second], minlength=count)
    before = np.bincount(group[rows.user[first]], weights=price[first], minlength=count)
    kept = (given < want) | (spent >= before)
    gone = np.zeros(len(rows), dtype=bool)
    gone[second[~kept[group[rows.user[second]]]]] = True
    gone[first[kept[group[rows.user[first]]]]] = True
    by_facts = np.zeros(len(rows), dtype=bool)
    by_facts[first] = True
    return CoresPlan(gone, by_facts, budget)


def _cheapest_way(rows: Rows, price: Real) -> Whole:
    """Return the way of each pilot that gives most cores, of these the cheapest, where it has one of a finite price."""
    able = np.flatnonzero(np.isfinite(price))
    order = able[np.lexsort((price[able], -rows.spends[able, CORES], rows.pilot[able]))]
    first = np.ones(len(order), dtype=bool)
    first[1:] = rows.pilot[order[1:]] != rows.pilot[order[:-1]]
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
            own = by_user.of(user)
            some = own[_cover(size[own], price[own], float(wanted[user]), allowed)] if wanted[user] > 0 else own[:0]
            chosen.append(some)
            given[user] = size[some].sum()
        wanted[user] = min(wanted[user], given[user])
        cores -= given[user]
        for one in bounds[user]:
            left[one] -= given[user]
    chosen[0] = guess[~anew[by_user.whose[guess]]]
    return np.concatenate(chosen), wanted, np.array(left)


class _Segments:
    """Rows (ascending by whose they are) of each user or group. whose: n, of all rows."""

    def __init__(self, rows: Whole, whose: Whole, count: int) -> None:
        self.rows, self.whose = rows, whose
        self.begin = np.searchsorted(whose[rows], np.arange(count + 1))

    def of(self, number: int) -> Whole:
        """Return the rows of one."""
        return self.rows[self.begin[number] : self.begin[number + 1]]

    def sums(self, amount: Real, rows: Whole | None = None) -> Real:
        """Return the sum of an amount over all rows, or these, of each."""
        some = self.rows if rows is None else rows
        return np.bincount(self.whose[some], weights=amount[some], minlength=len(self.begin) - 1).astype(float)

    def running(self, amount: Real) -> Real:
        """Return the running sums of an amount over the rows of each, in the order of `rows`."""
        total = np.cumsum(amount[self.rows])
        before = np.concatenate(([0.0], total))[self.begin[:-1]]
        return total - np.repeat(before, np.diff(self.begin))

    def cover(self, size: Real, price: Real, want: Real, most: Real) -> Whole:
        """Return for each the cheapest rows found that give as much as wanted, but no more than `most`; see `_cover`."""
        count = np.diff(self.begin)
        found = [self.rows[:0]]
        every = (self.sums(size) <= want) & (count > 0)
        found.append(self.rows[every[self.whose[self.rows]]])
        for number in range(1, ALL_OF + 1):
            alike = np.flatnonzero(~every & (count == number) & (want > 0))
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
        for one in np.flatnonzero(~every & (count > ALL_OF) & (want > 0)).tolist():
            rows = self.of(one)
            found.append(rows[_cover(size[rows], price[rows], float(want[one]), float(most[one]))])
        return np.concatenate(found)


def _cover(size: Real, price: Real, want: float, most: float) -> Whole:
    """Return rows that give `want`, cheapest for a core first, without spare ones; as much as can be within `most`."""
    order = np.lexsort((-size, price / size))
    running = np.cumsum(size[order])
    last = int(np.searchsorted(running, want)) + 1
    taken = order[:last]
    total = float(size[taken].sum())
    kept = np.ones(len(taken), dtype=bool)
    for at in np.argsort(-price[taken], kind="stable").tolist():
        if total - size[taken[at]] >= want:
            kept[at] = False
            total -= float(size[taken[at]])
    taken = _swapped(size, price, taken[kept], want, most)
    if size[taken].sum() <= most:
        return taken
    total, found = 0.0, []
    for at in np.lexsort((price, -size)).tolist():
        if total < want and total + size[at] <= most:
            found.append(at)
            total += float(size[at])
    return np.array(found, dtype=np.int64)


def _swapped(size: Real, price: Real, taken: Whole, want: float, most: float) -> Whole:
    """Replace one or two of the dearest rows by one other, as long as that lowers the price, or the total to `most`."""
    for _ in range(SWAPS):
        total, spare = float(size[taken].sum()), float(size[taken].sum()) - want
        dear = taken[np.argsort(-price[taken], kind="stable")[:DEAREST]]
        others = np.setdiff1d(np.arange(len(size)), taken)
        if not len(dear) or not len(others):
            break
        first, second = np.triu_indices(len(dear))
        pair = first != second
        away = size[dear[first]] + np.where(pair, size[dear[second]], 0)
        saved = price[dear[first]] + np.where(pair, price[dear[second]], 0)
        order = others[np.argsort(size[others], kind="stable")]
        least = np.minimum.accumulate(price[order][::-1])[::-1]
        at = np.searchsorted(size[order], away - spare)
        gain = np.where(at < len(order), saved - least[np.minimum(at, len(order) - 1)], -np.inf)
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        come = order[at[best] + int(np.argmin(price[order[at[best] :]]))]
        if total - away[best] + size[come] > max(most, total):
            break
        gone = {int(dear[first[best]]), int(dear[second[best]])}
        taken = np.array([*(one for one in taken.tolist() if one not in gone), int(come)], dtype=np.int64)
    return taken

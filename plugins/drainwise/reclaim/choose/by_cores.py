"""Plan by cores alone, where it is not known what waits in which place: one virtual place, one amount.

Facts: users in the order of their ranks give up to their limits until the need is met. Claims: each user, or group of
users whose reports compete, gives what was wanted of it by other rows, within its budget. A total that rows of whole
pilots make may be above what is wanted, never above a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Rules, extra_cores, groups_of, price_by_claims, price_by_facts
from drainwise.reclaim.choose.problem import CORES, Limits, Mask, Real, Rows, Whole, sums
from drainwise.reclaim.choose.sets import ALL_OF, subsets

NEAR, MOST_BEHIND, MOST_TOTALS = 24, 200, 1024
"""Rows on either side of the last one by price alone among which is searched, behind it at most; totals kept then."""
MANY = 20
"""Users of more than ALL_OF rows that are looked at so, the first; all others by ALL_OF rows about that one alone."""
_BLOCK = 60_000
"""Totals in memory at once."""


@dataclass(frozen=True, eq=False)
class CoresNeed:
    """Cores that are wanted, of these `own` for those who use less than their own share: for them users may lose more.

    wider: L, what each limit lets go for these, no less than for others. delays: L, whether what a limit keeps back is
    left to a later decision; else it falls on the users behind.
    """

    cores: float
    own: float
    wider: Real
    delays: Mask


@dataclass(frozen=True, eq=False)
class CoresByFacts:
    """What facts say: the rows that go, numbers, and what is left of the limits (L).

    Of each user (U): what was asked of it in its turn; wanted, of whole pilots at most: what it has to give, whatever
    is delayed; given: what it gives; later: what a limit delays.
    """

    rows: Whole
    rest: Real
    asked: Real
    wanted: Real
    most: Real
    given: Real
    later: Real


@dataclass(frozen=True, eq=False)
class CoresPlan:
    """Which rows go (n), which would by facts alone (n), and how many cores each user may lose (U)."""

    gone: Mask
    by_facts: Mask
    budget: Real


def plan_cores(rows: Rows, limits: Limits, cores: float, rules: Rules) -> CoresPlan:
    """Return rows that give so many cores, one way of a pilot at most; devices are bound by no limit here."""
    need = CoresNeed(cores, 0.0, limits.most, np.zeros(len(limits.most), dtype=bool))
    return cores_by_claims(rows, limits, cores_by_facts(rows, limits, need), rules)


def cores_by_claims(rows: Rows, limits: Limits, facts: CoresByFacts, rules: Rules) -> CoresPlan:
    """Return rows that give as many cores as by facts were wanted, at the least price within the budgets."""
    size, users, first = rows.spends[:, CORES], len(limits.rank), facts.rows
    lost = facts.given
    budget = lost + extra_cores(rows, limits, lost, facts.rest)
    price = price_by_claims(rows, rules.idle)
    may = (size > 0) & np.isfinite(rows.loss) & (lost > 0)[rows.user]
    able = _ways(rows, np.where(may, price, np.inf))
    group = groups_of(limits, rules.compete)
    count = int(group.max(initial=-1)) + 1
    if rules.compete != "user":  # as few rows as any choice of which is within the budgets
        able = able[np.lexsort((price[able] / size[able], rows.user[able]))]
        own = _Segments(rows.pilot, able, rows.user, users)
        able = able[own.running(size) <= budget[rows.user[able]]]
    able = able[np.argsort(group[rows.user[able]], kind="stable")]
    by_group = _Segments(rows.pilot, able, group[rows.user], count)
    want, most = sums(group, np.minimum(facts.wanted, lost), count), sums(group, budget, count)
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


def cores_by_facts(rows: Rows, limits: Limits, need: CoresNeed) -> CoresByFacts:
    """Return who gives what by facts, the users in the order of their ranks.

    A user goes by the limits of others, but where it gives less by them than those below their own share need of it.
    """
    size, users = rows.spends[:, CORES], len(limits.rank)
    price = price_by_facts(rows, limits, 0.0)
    able = _ways(rows, np.where(size > 0, price, np.inf))
    by_user = _Segments(rows.pilot, able[np.argsort(rows.user[able], kind="stable")], rows.user, users)
    rest = np.maximum(limits.most, 0.0)
    wider = [need.wider] if (need.wider > rest).any() else []
    turns = [_Turns(by_user, size, price, limits, most) for most in (rest, *wider)]
    bounds = [[one for one in binds if one >= 0 and limits.counts[one] == CORES] for binds in limits.binds.tolist()]
    last = able[np.append(rows.pilot[able[1:]] != rows.pilot[able[:-1]], True)[: len(able)]]  # of each pilot the most
    held, delays = sums(rows.user[last], size[last], users).tolist(), need.delays.tolist()
    asked, wanted, most, given, later = np.zeros((5, users))
    chosen: list[Whole] = []
    cores, own = need.cores, need.own
    for user in np.lexsort((np.arange(users), limits.rank)).tolist():
        if cores <= 0:
            break
        usual, *more = (turn.left_of([one for one in bounds[user] if not delays[one]]) for turn in turns)
        allowed = turns[0].left_of([one for one in bounds[user] if delays[one]])
        ask = min(cores, usual)
        if ask <= 0:
            continue
        asked[user], wanted[user], most[user] = ask, ask, usual
        gives, some = turns[0].given(user, min(ask, allowed), min(usual, allowed))
        for_own = min(ask, own)
        if more and gives < min(for_own, allowed):
            wanted[user], most[user] = for_own, more[0]
            gives, some = turns[1].given(user, min(for_own, allowed), min(more[0], allowed))
        chosen.append(some)
        given[user] = gives
        later[user] = max(0.0, min(ask, held[user]) - gives) if ask > allowed else 0.0
        gone = gives + later[user]
        cores, own = cores - gone, own - gone
        for one in bounds[user]:
            for turn in turns:
                turn.left[one] -= gives if delays[one] else gone
    found = np.concatenate([by_user.rows[:0], *chosen])
    return CoresByFacts(found, np.array(turns[0].left), asked, wanted, most, given, later)


class _Turns:
    """What users can give in their turns within limits of so many cores. left: L, of the limits."""

    def __init__(self, by_user: _Segments, size: Real, price: Real, limits: Limits, most: Real) -> None:
        self._by_user, self._size, self._price = by_user, size, price
        self.left: list[float] = most.tolist()
        able = np.where((limits.binds >= 0) & (limits.counts[limits.binds] == CORES), most[limits.binds], np.inf)
        every = np.minimum(able.min(axis=1, initial=np.inf), by_user.sums(size))
        self._guess = by_user.cover(size, price, every, every)
        """The most that each can give when it has all of its limits for itself."""
        self._given: list[float] = by_user.sums(size, self._guess).tolist()
        self._begin = np.searchsorted(by_user.whose[self._guess], np.arange(len(limits.rank) + 1)).tolist()

    def left_of(self, limits: Sequence[int]) -> float:
        """Return what is left of the tightest of some limits."""
        return max(0.0, min((self.left[one] for one in limits), default=math.inf))

    def given(self, user: int, want: float, most: float) -> tuple[float, Whole]:
        """Return the cores that a user gives, the fewest from `want` to `most`, else the most below; and its rows."""
        if want <= 0:
            return 0.0, self._guess[:0]
        if self._given[user] <= min(want, most):
            return self._given[user], self._guess[self._begin[user] : self._begin[user + 1]]
        some = self._by_user.covered(user, self._size, self._price, want, most)
        return float(self._size[some].sum()), some


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
        if len(rows) > ALL_OF or self.has_ways[number]:
            return rows[_cover(self.pilot[rows], size[rows], price[rows], want, most)]
        begin = np.zeros(1, dtype=np.int64)
        return _best_sets(rows, begin, len(rows), size, price, np.array([want]), np.array([most]))

    def cover(self, size: Real, price: Real, want: Real, most: Real) -> Whole:
        """Return the rows of all, each `covered` with what is wanted of it; ascending by whose they are."""
        count, ways = np.diff(self.begin), self.has_ways
        every = (self.sums(size) <= want) & (count > 0) & ~ways
        found = [self.rows[every[self.whose[self.rows]]]]
        alone = ~every & (want > 0) & (count > 0)
        for number in range(1, ALL_OF + 1):
            alike = np.flatnonzero(alone & (count == number) & ~ways)
            found.append(_best_sets(self.rows, self.begin[alike], number, size, price, want[alike], most[alike]))
        large = np.flatnonzero(alone & (count > ALL_OF) & ~ways)
        for one in (*large[:MANY].tolist(), *np.flatnonzero(alone & ways).tolist()):
            found.append(self.covered(one, size, price, float(want[one]), float(most[one])))
        if len(large) > MANY:
            found.append(self._near(large[MANY:], size, price, want, most))
        chosen = np.concatenate(found)
        return chosen[np.argsort(self.whose[chosen], kind="stable")]

    def _near(self, which: Whole, size: Real, price: Real, want: Real, most: Real) -> Whole:
        """Return rows for several of many rows, all at once.

        All that are cheaper for a core than the ALL_OF about the last one by price alone, and the best set of these.
        """
        mine = self.rows[np.isin(self.whose[self.rows], which)]
        mine = mine[size[mine] <= most[self.whose[mine]]]
        rows = mine[np.lexsort((price[mine] / size[mine], self.whose[mine]))]
        some = _Segments(self.pilot, rows, self.whose, len(want))
        running, whose = some.running(size), self.whose[rows]
        before = np.bincount(whose[running < want[whose]], minlength=len(want))
        low = some.begin[:-1] + np.clip(before - ALL_OF // 2, 0, np.maximum(np.diff(some.begin) - ALL_OF, 0))
        cheaper = np.arange(len(rows)) < low[whose]
        near = rows[~cheaper & (np.arange(len(rows)) < low[whose] + ALL_OF)]
        base = sums(whose[cheaper], size[rows[cheaper]], len(want))
        best = _Segments(self.pilot, near, self.whose, len(want)).cover(size, price, want - base, most - base)
        return np.concatenate((rows[cheaper], best))


def _best_sets(rows: Whole, begin: Whole, number: int, size: Real, price: Real, want: Real, most: Real) -> Whole:
    """Return the cheapest set of each run of so many rows that gives what is wanted, else as much as can be.

    begin: of each run.
    """
    which = subsets((1,) * number)
    found = [rows[:0]]
    step = max(1, _BLOCK // len(which))
    for at in range(0, len(begin), step):
        of = slice(at, at + step)
        some = rows[begin[of, None] + np.arange(number)]
        total, cost = size[some] @ which.T, price[some] @ which.T
        able = (total >= want[of, None]) & (total <= most[of, None])
        for lacks in np.flatnonzero(~able.any(axis=1)).tolist():
            fits = np.where(total[lacks] <= most[at + lacks], total[lacks], 0)
            able[lacks] = fits == fits.max()
        found.append(some[which[np.where(able, cost, np.inf).argmin(axis=1)]])
    return np.concatenate(found)


def _cover(pilot: Whole, size: Real, price: Real, want: float, most: float) -> Whole:
    """Return rows that give `want`, cheapest for a core first; of the pilots near the last one the best set found.

    Where none gives that much and no more than `most`, the set of these that gives most.
    """
    fits = np.flatnonzero(size <= most)
    pilot, size, price = pilot[fits], size[fits], price[fits]
    first, near = _parted(pilot, size, price, want)
    given = float(size[first].sum())
    return fits[np.concatenate((first, _best_of(near, pilot, size, price, want - given, most - given)))]


def _parted(pilot: Whole, size: Real, price: Real, want: float) -> tuple[Whole, Whole]:
    """Return the rows that are cheapest for a core, and the pilots near the last one that gives what is wanted.

    Near are some on either side, behind it so many that they do without one that is larger than what lacks, and of each
    other size some, those about as large as what lacks first.
    """
    order, more = _steps(pilot, size, price)
    running = np.cumsum(more)
    middle = int(np.searchsorted(running, want))
    low = max(0, middle - NEAR)
    lack, behind = want - (float(running[low - 1]) if low else 0.0), more[middle : middle + MOST_BEHIND]
    some = int(np.searchsorted(np.cumsum(np.where(behind < lack, behind, 0)), lack)) + 1
    high = middle + (max(NEAR, some) if some <= len(behind) else NEAR)
    others = np.concatenate((order[high:], order[:low][::-1]))
    by_size = others[np.argsort(size[others], kind="stable")]
    nth = np.arange(len(others)) - np.searchsorted(size[by_size], size[by_size])
    alike = by_size[np.lexsort((np.abs(size[by_size] - lack), nth))[:NEAR]]
    near = pilot[np.concatenate((order[low:high], alike))]
    sure = order[:low][::-1]  # the last step of a pilot is what it gives
    sure = sure[~np.isin(pilot[sure], near)]
    return sure[np.unique(pilot[sure], return_index=True)[1]], near[np.sort(np.unique(near, return_index=True)[1])]


def _steps(pilot: Whole, size: Real, price: Real) -> tuple[Whole, Real]:
    """Return rows, those first that give more at the lowest price for each core more, and how much more each gives.

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
    order = np.argsort(each, kind="stable")
    return rows[order], more[order]


def _best_of(near: Whole, pilot: Whole, size: Real, price: Real, want: float, most: float) -> Whole:
    """Return the cheapest rows of these pilots that give what is wanted, at MOST_TOTALS totals each; else the most."""
    total, cost, steps = np.zeros(1), np.zeros(1), list[tuple[Whole, Whole, int]]()
    loose = most - want >= size.max(initial=0.0)
    order = np.argsort(pilot, kind="stable")
    begin, end = (np.searchsorted(pilot[order], near, side) for side in ("left", "right"))
    for first, last in zip(begin.tolist(), end.tolist()):
        ways = order[first:last]
        totals = np.concatenate((total, (total + size[ways, None]).reshape(-1)))
        costs = np.concatenate((cost, (cost + price[ways, None]).reshape(-1)))
        kept = np.lexsort((costs, -totals))
        kept = kept[totals[kept] <= most]
        least = np.minimum.accumulate(costs[kept])
        better = np.ones(len(kept), dtype=bool)
        better[1:] = costs[kept[1:]] < least[:-1] if loose else totals[kept[1:]] < totals[kept[:-1]]
        kept = kept[better]
        done = kept[totals[kept] >= want]
        done = done[costs[done].argmin() :][:1] if len(done) else done
        left = kept[(totals[kept] < want) & (costs[kept] < costs[done].min(initial=np.inf))]
        kept = np.concatenate((done, left[:: max(1, -(-len(left) // MOST_TOTALS))]))
        steps.append((ways, kept, len(total)))
        total, cost = totals[kept], costs[kept]
    found, best = list[int](), 0  # the one that is enough, else the largest
    for ways, kept, before in reversed(steps):
        number, best = divmod(int(kept[best]), before)
        found += [int(ways[number - 1])] if number else []
    return np.array(found, dtype=np.int64)

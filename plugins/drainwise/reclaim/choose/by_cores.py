"""Plan by cores alone, where it is not known what waits in which place: one virtual place, one amount.

Facts: users in the order of their ranks give up to their limits until the need is met. Claims: each user, or group of
users whose reports compete, gives what was wanted of it by other rows, within its budget. A total that rows of whole
pilots make may be above what is wanted, never above a limit. What each gives is covered for all at once: the rows that
are cheapest for a core, and of those near the last one the best set.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Rules, extra_cores, groups_of, price_by_claims, price_by_facts
from drainwise.reclaim.choose.problem import CORES, Limits, Mask, Real, Rows, Whole, sums

NEAR, MOST_BEHIND, MOST_LABELS = 24, 200, 1024
"""Rows on either side of the last one by price alone among which is searched, behind it at most; totals kept then."""
MANY, FEW, FEW_LABELS = 20, 5, 100
"""Where more users or groups are covered at once: the same."""


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
    size, lost, group = rows.spends[:, CORES], facts.given, groups_of(limits, rules.compete)
    budget = lost + extra_cores(rows, limits, lost, facts.rest)
    count, whose = int(group.max(initial=-1)) + 1, group[rows.user]
    price = price_by_claims(rows, rules.idle)
    may = np.where(np.isfinite(rows.loss) & (lost > 0)[rows.user], price, np.inf)
    if rules.compete != "user":  # as few rows as any choice of which is within the budgets
        order = np.lexsort((may / np.maximum(size, 1e-9), rows.user))
        order = order[np.isfinite(may[order])]
        may[order[_running(size[order], rows.user[order]) > budget[rows.user[order]]]] = np.inf
    want, most = (sums(group, some, count) for some in (np.minimum(facts.wanted, lost), budget))
    gone, by_facts = np.zeros((2, len(rows)), dtype=bool)
    gone[cover(rows, whose, may, want, most)] = by_facts[facts.rows] = True
    kept = sums(whose[gone], size[gone], count) < want
    kept |= sums(whose[gone], price[gone], count) >= sums(whose[by_facts], price[by_facts], count)
    return CoresPlan(np.where(kept[whose], by_facts, gone), by_facts, budget)


def cores_by_facts(rows: Rows, limits: Limits, need: CoresNeed) -> CoresByFacts:
    """Return who gives what by facts, the users in the order of their ranks.

    A user goes by the limits of others, but where it gives less by them than those below their own share need of it.
    What is not known yet is taken to be just what is wanted, and covered for all such users before they are gone
    through again: each time it is known of one more of them at least.
    """
    size, users = rows.spends[:, CORES], len(limits.rank)
    price = price_by_facts(rows, limits, 0.0)
    able = np.flatnonzero(np.isfinite(price))
    able = able[np.lexsort((-price[able], size[able], rows.pilot[able], rows.user[able]))]
    largest = able[np.append(rows.pilot[able[1:]] != rows.pilot[able[:-1]], True)[: len(able)]]  # row of each pilot
    begin = np.searchsorted(rows.user[largest], np.arange(users + 1))
    smallest = np.full(users, np.inf)
    np.minimum.at(smallest, rows.user[able], size[able])
    every, least = sums(rows.user[largest], size[largest], users).tolist(), smallest.tolist()
    delays = need.delays.tolist()
    bounds = [[one for one in binds if one >= 0 and limits.counts[one] == CORES] for binds in limits.binds.tolist()]
    order = np.lexsort((np.arange(users), limits.rank)).tolist()
    known: dict[tuple[int, float, float], tuple[float, Whole]] = {}
    unknown: dict[int, tuple[int, float, float]] = {}

    def given_by(user: int, want: float, most: float) -> tuple[float, Whole]:
        if want <= 0 or least[user] > most:
            return 0.0, able[:0]
        if every[user] <= min(want, most):
            return every[user], largest[begin[user] : begin[user + 1]]
        if (user, want, most) not in known:
            unknown.setdefault(user, (user, want, most))
        return known.get((user, want, most), (min(want, every[user]), able[:0]))

    while True:
        unknown.clear()
        asked, wanted, most, given, later = np.zeros((5, users))
        left, wide = (np.maximum(some, 0.0).tolist() for some in (limits.most, need.wider))
        chosen, cores, own = [able[:0]], need.cores, need.own
        for user in order:
            if cores <= 0:
                break
            usual, more = (
                max(0.0, min((some[one] for one in bounds[user] if not delays[one]), default=math.inf))
                for some in (left, wide)
            )
            allowed = max(0.0, min((left[one] for one in bounds[user] if delays[one]), default=math.inf))
            ask, for_own = min(cores, usual), min(cores, usual, own)
            asked[user], wanted[user], most[user] = ask, ask, usual
            gives, some = given_by(user, min(ask, allowed), min(usual, allowed))
            if more > usual and gives < min(for_own, allowed):
                wanted[user], most[user] = for_own, more
                gives, some = given_by(user, min(for_own, allowed), min(more, allowed))
            chosen.append(some)
            given[user] = gives
            later[user] = max(0.0, min(ask, every[user]) - gives) if ask > allowed else 0.0
            gone = gives + later[user]
            cores, own = cores - gone, own - gone
            for one, limit in itertools.product(bounds[user], (left, wide)):
                limit[one] -= gives if delays[one] else gone
        if not unknown:
            return CoresByFacts(np.concatenate(chosen), np.array(left), asked, wanted, most, given, later)
        asks = np.zeros((2, users))
        asks[:, list(unknown)] = np.array([ask[1:] for ask in unknown.values()]).T
        found = cover(rows, rows.user, price, *asks)
        ends = np.searchsorted(rows.user[found], np.arange(users + 1))
        for user, ask_of in unknown.items():
            some = found[ends[user] : ends[user + 1]]
            known[ask_of] = float(size[some].sum()), some


def cover(rows: Rows, whose: Whole, price: Real, want: Real, most: Real) -> Whole:
    """Return the cheapest rows found of which each of U users or groups gives what is wanted, and no more than `most`.

    Where none do, those that give most. One row of a pilot at most; ascending by whose they are (n). price: n, infinite
    for rows that may not go. Those that are cheapest for a core go; of the pilots near the last of them the best set,
    looked for among some on either side, behind it so many that they do without one that is larger than what lacks,
    and of each other size some, those about as large as what lacks first.
    """
    size, pilot = rows.spends[:, CORES], rows.pilot
    able = np.flatnonzero(np.isfinite(price) & (size <= most[whose]) & (want[whose] > 0))
    order, more = _steps(able, whose, pilot, size, price)
    at, count = whose[order], len(want)
    few, behind = (NEAR, MOST_BEHIND) if np.count_nonzero(want > 0) <= MANY else (FEW, FEW)
    middle = np.bincount(at[_running(more, at) < want[at]], minlength=count)
    low, turn = np.maximum(middle - few, 0)[at], np.arange(len(at)) - np.searchsorted(at, at)
    lack = (want - sums(at[turn < low], more[turn < low], count))[at]
    after = (turn >= middle[at]) & (turn < middle[at] + behind)
    less = np.where(after & (more < lack), more, 0)
    near = (turn >= low) & (turn < middle[at] + few)
    near |= after & (_running(less, at) - less < lack) & (sums(at, less, count)[at] >= lack)
    others = np.flatnonzero(~near)
    away = np.where(turn < low, len(turn) + low - turn, turn)[others]
    others = others[np.lexsort((away, size[order[others]], at[others]))]
    alike = np.stack((at[others], size[order[others]]))
    new = np.append(True, (alike[:, 1:] != alike[:, :-1]).any(axis=0))[: len(others)]
    nth = np.arange(len(others)) - np.maximum.accumulate(np.where(new, np.arange(len(others)), 0))
    others = others[np.lexsort((np.abs(size[order[others]] - lack[others]), nth, at[others]))]
    others = others[np.arange(len(others)) - np.searchsorted(at[others], at[others]) < few]
    looked = np.concatenate((np.flatnonzero(near), others))
    number = np.full(int(pilot.max(initial=-1)) + 1, len(looked))  # of pilots, as they are looked at
    np.minimum.at(number, pilot[order[looked]], np.arange(len(looked)))
    sure = order[(turn < low) & (number[pilot[order]] == len(looked))]
    sure = sure[np.lexsort((size[sure], pilot[sure]))]
    sure = sure[np.append(pilot[sure[1:]] != pilot[sure[:-1]], True)[: len(sure)]]  # the last step of each pilot
    given, some = sums(whose[sure], size[sure], count), able[number[pilot[able]] < len(looked)]
    some = some[np.lexsort((number[pilot[some]], whose[some]))]
    labels = MOST_LABELS if few == NEAR else FEW_LABELS
    found = np.concatenate((sure, _best_sets(some, whose, pilot, size, price, want - given, most - given, labels)))
    return found[np.argsort(whose[found], kind="stable")]


def _running(amount: Real, whose: Whole) -> Real:
    """Return the running sums of an amount (m) over what belongs to each; whose: m, ascending."""
    total: Real = np.cumsum(amount)
    before: Real = np.append(0.0, total)[np.searchsorted(whose, whose)]
    return total - before


def _steps(able: Whole, whose: Whole, pilot: Whole, size: Real, price: Real) -> tuple[Whole, Real]:
    """Return rows by whose they are, those first that give more at the lowest price for each core more, and how much.

    The rows of a pilot come in the order of their sizes, each in place of the one before; those that are too dear for
    what they give are left out.
    """
    rows = able[np.lexsort((price[able], size[able], pilot[able]))]
    while True:
        again = np.append(False, pilot[rows[1:]] == pilot[rows[:-1]])[: len(rows)]
        more, dearer = size[rows].copy(), price[rows].copy()
        more[1:] -= np.where(again[1:], size[rows[:-1]], 0)
        dearer[1:] -= np.where(again[1:], price[rows[:-1]], 0)
        each = dearer / np.maximum(more, 1e-9)
        worse = np.append(again[1:] & (each[1:] <= each[:-1]), False)[: len(rows)]
        if not worse.any():
            break
        rows = rows[~worse]
    order = np.lexsort((each, whose[rows]))
    return rows[order], more[order]


def _best_sets(
    able: Whole, whose: Whole, pilot: Whole, size: Real, price: Real, want: Real, most: Real, labels: int
) -> Whole:
    """Return of each the cheapest of these rows that give what is wanted, else the most; `labels` totals are kept.

    Pilot after pilot of each is joined to the totals that those before could give, as in `resolve`. able: by whose they
    are, the rows of a pilot together.
    """
    new = np.append(True, pilot[able[1:]] != pilot[able[:-1]])[: len(able)]
    first = able[new]
    turn = (np.arange(len(first)) - np.searchsorted(whose[first], whose[first]))[np.cumsum(new) - 1]
    # Beside its rows each pilot has none: a row that is not there.
    way, at, turn = np.append(able, -1 - first), np.append(whose[able], whose[first]), np.append(turn, turn[new])
    gives, costs = (np.append(some[able], 0.0 * first) for some in (size, price))
    order = np.lexsort((at, turn))
    way, at, turn, gives, costs = (some[order] for some in (way, at, turn, gives, costs))
    largest = np.zeros(len(want))
    np.maximum.at(largest, at, gives)
    loose = most - want >= largest
    seg = np.flatnonzero(np.bincount(at))
    total, cost, steps = np.zeros(len(seg)), np.zeros(len(seg)), list[tuple[Whole, Whole, Whole]]()
    for begin, end in zip(
        *(np.searchsorted(turn, np.arange(turn.max(initial=-1) + 1), side) for side in ("left", "right"))
    ):
        here = at[begin:end]
        low = np.searchsorted(here, seg)
        ways = np.searchsorted(here, seg, "right") - low
        parent = np.repeat(np.arange(len(seg)), ways)
        item = begin + low[parent] + np.arange(len(parent)) - (np.cumsum(ways) - ways)[parent]
        total, cost, seg = total[parent] + gives[item], cost[parent] + costs[item], seg[parent]
        kept = np.flatnonzero(total <= most[seg])
        kept = kept[np.lexsort((cost[kept], -total[kept], seg[kept]))]
        parent, item, seg, total, cost = parent[kept], item[kept], seg[kept], total[kept], cost[kept]
        rank = np.empty_like(seg)
        rank[np.argsort(cost, kind="stable")] = np.arange(len(seg))
        rank -= seg * len(seg)  # no lower in a later one
        good = np.append(True, (seg[1:] != seg[:-1]) | (total[1:] != total[:-1]))[: len(seg)]
        good &= ~loose[seg] | (rank <= np.minimum.accumulate(rank))
        best = np.full(len(want), np.inf)
        np.minimum.at(best, seg[total >= want[seg]], cost[total >= want[seg]])
        good &= np.where(total >= want[seg], cost <= best[seg], cost < best[seg])
        kept = np.flatnonzero(good)
        number = np.bincount(seg[kept], minlength=len(want))
        nth = np.arange(len(kept)) - np.searchsorted(seg[kept], seg[kept])
        kept = kept[nth % np.maximum(1, -(-number // labels))[seg[kept]] == 0]
        parent, item, seg, total, cost = parent[kept], item[kept], seg[kept], total[kept], cost[kept]
        steps.append((seg, parent, way[item]))
    label, found = np.full(len(want), -1), [able[:0]]
    for seg, parent, chosen in reversed(steps):
        here, first = np.unique(seg, return_index=True)  # the one that is enough, else the largest
        mine = np.where(label[here] < 0, first, label[here])
        label[here] = parent[mine]
        found.append(chosen[mine][chosen[mine] >= 0])
    return np.concatenate(found)

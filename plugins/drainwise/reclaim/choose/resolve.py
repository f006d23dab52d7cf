"""Solve a group of places anew: clear them, list what each could serve and at what price, and join these menus.

A label is what some of the places serve together, its price, and what it takes of each limit that could refuse. Of
labels that serve the same those that another beats are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.fill import FEW, MANY
from drainwise.reclaim.choose.problem import ROUNDING, Real, State, Whole
from drainwise.reclaim.choose.sets import ALL_OF, PlaceSets, sets_on

MOST_MIXES = 400
"""Mixes of jobs that are looked at on a place."""
MOST_LABELS = 1_000_000
"""Labels times entries of a menu that are looked at at once; groups that need more stay as they are."""
_BEATEN = 6
"""Labels of the same jobs that are compared with each."""


@dataclass(frozen=True, eq=False)
class _Menu:
    """What a place could serve, in I entries: jobs (I × kinds), price (I), uses of limits (I × D), sets of rows (I)."""

    jobs: Whole
    price: Real
    uses: Real
    chosen: Whole
    sets: PlaceSets


class _Group:
    """A group of places as it would be without what goes there now, and the kinds of jobs that are looked at.

    gone, added: rows that go on, and rows on several places that go, whatever is chosen. wide: all rows on several
    places. most: parts of each kind that the group could serve. rest: L. limits: those that the group could break.
    outside: parts of each kind that other places serve. spread: the kinds on several places; highest: most parts on
    another place.
    """

    def __init__(self, state: State, places: Whole, kinds: Whole, turned: Whole) -> None:
        self.state, self.places, self.kinds = state, places, kinds
        problem, needs = state.problem, state.problem.needs
        pieces, whose = problem.pieces(places)
        rows = problem.rows.row[pieces]
        wide = problem.wide[rows]
        self.wide = rows[wide]
        self.gone = np.union1d(rows[state.gone[rows] & ~wide], turned[state.gone[turned]])
        self.added = turned[~state.gone[turned]]
        held = np.isin(rows, self.added) | (state.gone[rows] & wide & ~np.isin(rows, turned))
        self.room = problem.places.free[places].copy()
        np.add.at(self.room, whose[held], problem.rows.gives[pieces[held]])
        self.rest = state.rest + state.spent(self.gone) - state.spent(self.added)
        self.limits = np.flatnonzero(state.spent(rows[np.isfinite(state.price[rows])]) > self.rest)
        here = state.jobs[np.ix_(places, kinds)]
        self.outside = state.parts[kinds] - here.sum(axis=0)
        self.several, self.account, self.cores = needs.several[kinds], needs.account[kinds], needs.cores[kinds]
        self.owed = state.owed.copy()
        np.add.at(self.owed, self.account, state.served[kinds] * self.cores)
        owed = (self.owed[self.account] + ROUNDING) // np.where(self.cores > 0, self.cores, 1)
        jobs = np.where(self.cores > 0, np.minimum(needs.jobs[kinds], owed), needs.jobs[kinds]).astype(np.int64)
        self.most = np.maximum(jobs * self.several - self.outside, 0)
        self.spread = np.flatnonzero(self.several > 1)
        elsewhere = state.jobs[:, kinds[self.spread]]
        elsewhere[places] = 0
        self.highest = elsewhere.max(axis=0, initial=0)

    def sets(self, known: dict[int, PlaceSets] | None) -> list[PlaceSets]:
        """Return the sets of rows of each place, without those on several places; add them to those that are known."""
        state, pilot = self.state, self.state.problem.rows.pilot
        kept, way = state.barred[self.wide], state.way.copy()
        state.way[pilot[self.gone]] = -1
        state.way[pilot[self.added]] = self.added
        state.barred[self.wide] = True
        lack = np.maximum((self.most[:, None] * state.problem.needs.needs[self.kinds]).sum(axis=0) - self.room, 0)
        found = {} if known is None or len(self.wide) else known
        new = np.array([place not in found for place in self.places.tolist()])
        all_of = FEW if state.problem.has_ways and len(state.gone) > MANY else ALL_OF
        for sets in sets_on(state, self.places[new], lack[new], all_of):
            for number, place in enumerate(self.places[new][sets.at].tolist()):
                found[place] = sets.of(number)
        state.way = way
        state.barred[self.wide] = kept
        return [found[place] for place in self.places.tolist()]

    def menu(self, number: int, sets: PlaceSets) -> _Menu:
        """Return what the place at `number` could serve, each mix of jobs with its cheapest sets."""
        place = self.places[number]
        kept = np.flatnonzero(np.isfinite(sets.price[0]))
        price, gives = sets.price[0, kept], np.maximum(self.room[number][:, None] + sets.gives[:, 0, kept], 0)
        mixes, takes = self._mixes(int(place), gives.max(axis=1), self.state.jobs[place, self.kinds])
        fits = np.ones((len(mixes), len(price)), dtype=bool)
        for resource in range(len(gives)):
            fits &= takes[:, resource, None] <= gives[resource]
        levels, level = np.zeros((1, 0)), np.zeros(len(kept), dtype=np.int64)
        if len(self.limits):
            levels, level = np.unique(self._uses(sets)[kept], axis=0, return_inverse=True)
            level = level.ravel()
        order = np.lexsort((price, level))
        begin = np.searchsorted(level[order], np.arange(len(levels)))
        first = np.minimum.reduceat(np.where(fits[:, order], np.arange(len(order)), len(order)), begin, axis=1)
        order, price = np.append(order, len(price)), np.append(price, np.inf)
        least = price[order[first]]
        alive = np.isfinite(least) & (levels <= self.rest[self.limits] + ROUNDING).all(axis=1)
        beats = (levels[:, None, :] <= levels[None, :, :]).all(axis=2) & ~np.eye(len(levels), dtype=bool)
        for one in np.flatnonzero(beats.any(axis=0)).tolist():
            alive[:, one] &= least[:, beats[:, one]].min(axis=1) > least[:, one]
        mix, at = np.nonzero(alive)
        return _Menu(mixes[mix], least[mix, at], levels[at], kept[order[first[mix, at]]], sets)

    def _uses(self, sets: PlaceSets) -> Real:
        """Return what each set of the place takes of each limit that the group could break; S × D."""
        problem, rows = self.state.problem, sets.rows[0]
        binds = problem.limits.binds[problem.rows.user[rows]]
        bound = (binds[:, :, None] == self.limits).any(axis=1)
        each = np.where(bound, problem.rows.spends[rows][:, problem.limits.counts[self.limits]], 0)
        return sets.members().astype(float) @ each

    def _mixes(self, place: int, most: Real, now: Whole) -> tuple[Whole, Real]:
        """Return mixes of jobs that fit into so much, those with few jobs first, and what each takes."""
        problem, needs = self.state.problem, self.state.problem.needs
        mixes, takes = np.zeros((1, len(self.kinds)), dtype=np.int64), np.zeros((1, len(most)))
        alone = needs.whole[self.kinds] | ~problem.places.shared[place]
        for column, kind in enumerate(self.kinds.tolist()):
            if not needs.may[kind, place]:
                continue
            need = problem.needed(kind, np.array([place]))[0]
            fit = np.where(need > 0, most // np.maximum(need, 1e-9), np.inf).min()
            counts = np.arange(1 + int(min(self.most[column], needs.most[kind], MOST_MIXES, fit)))
            grown = np.repeat(mixes, len(counts), axis=0)
            grown[:, column] = np.tile(counts, len(mixes))
            taken = (takes[:, None, :] + counts[:, None] * need).reshape(len(grown), len(most))
            able = (taken <= most).all(axis=1) & ~((grown.sum(axis=1) > 1) & grown[:, alone].any(axis=1))
            mixes, takes = grown[able], taken[able]
            if len(mixes) > MOST_MIXES:
                far = np.abs(mixes - np.minimum(now, self.most)).sum(axis=1) * (mixes.sum(axis=1) > 0)
                few = np.sort(np.argsort(far, kind="stable")[:MOST_MIXES])
                mixes, takes = mixes[few], takes[few]
        return mixes, takes


def resolve(
    state: State,
    places: Sequence[int] | Whole,
    kinds: Sequence[int] | Whole,
    labels: int = MOST_LABELS,
    turned: Sequence[int] | Whole = (),
    known: dict[int, PlaceSets] | None = None,
) -> tuple[bool, int]:
    """Serve more jobs in the needs' order on these places, or as many at a lower price.

    Return whether that is so, and how many labels were looked at. kinds: beside those that are served there. labels: a
    group for which more would have to be looked at stays as it is. turned: rows on several of these places, and no
    others, that go if they do not go now, and go on if they do; all others on several places stay as they are.
    known: of places, as another call with the same state has found them.
    """
    places = np.unique(np.asarray(places, dtype=np.int64))
    served = np.flatnonzero(state.jobs[places].any(axis=0))
    kinds = np.union1d(served, np.asarray(kinds, dtype=np.int64))
    group = _Group(state, places, kinds, np.asarray(turned, dtype=np.int64))
    radix = np.concatenate((group.most + 1, np.maximum(group.most[group.spread], group.highest) + 1))
    if np.prod(radix.astype(float)) > 2.0**60:
        return False, labels + 1
    factors = np.cumprod(np.concatenate(([1], radix)))[:-1]
    menus = [group.menu(number, sets) for number, sets in enumerate(group.sets(known))]
    count = len(group.kinds)
    jobs, highest = np.zeros((1, count), dtype=np.int64), group.highest[None, :]
    price, uses = np.zeros(1), np.zeros((1, len(group.limits)))
    steps: list[tuple[Whole, Whole]] = []
    work = 0
    for menu in menus:
        work += len(price) * len(menu.price)
        if work > labels:
            return False, work
        parent, entry = (one.ravel() for one in np.indices((len(price), len(menu.price))))
        total = jobs[parent] + menu.jobs[entry]
        used = uses[parent] + menu.uses[entry]
        able = (total <= group.most).all(axis=1) & (used <= group.rest[group.limits] + ROUNDING).all(axis=1)
        parent, entry, total, used = parent[able], entry[able], total[able], used[able]
        peak = np.maximum(highest[parent], menu.jobs[entry][:, group.spread])
        cost = price[parent] + menu.price[entry]
        key = total @ factors[:count] + peak @ factors[count:]
        kept = _unbeaten(key, cost, used)
        steps.append((parent[kept], entry[kept]))
        jobs, highest, price, uses = total[kept], peak[kept], cost[kept], used[kept]
    best = _best(group, jobs, highest, price)
    if best is not None:
        _apply(group, menus, steps, best)
    return best is not None, work


def _unbeaten(key: Whole, price: Real, uses: Real) -> Whole:
    """Return of the labels with the same jobs those that no cheaper one is seen to beat in every use."""
    order = np.lexsort((*uses.T, price, key))
    if not uses.shape[1]:
        first = np.ones(len(order), dtype=bool)
        first[1:] = key[order[1:]] != key[order[:-1]]
        return order[first]
    for _ in range(3):
        beaten, jobs, each = np.zeros(len(order), dtype=bool), key[order], uses.T[:, order]
        for lag in range(1, min(_BEATEN, len(order) - 1) + 1):
            worse = jobs[lag:] == jobs[:-lag]
            for use in each:
                worse &= use[:-lag] <= use[lag:]
            beaten[lag:] |= worse
        order = order[~beaten]
    return order


def _best(group: _Group, parts: Whole, highest: Whole, price: Real) -> int | None:
    """Return the label with the most jobs in the needs' order, then the least price, where it betters what is."""
    state = group.state
    total = parts + group.outside
    jobs = total // group.several
    able = (total % group.several == 0).all(axis=1) & (highest <= jobs[:, group.spread]).all(axis=1)
    for account in np.unique(group.account).tolist():
        mine = group.account == account
        able &= jobs[:, mine] @ group.cores[mine] <= group.owed[account] + ROUNDING
    some = np.flatnonzero(able)
    if not len(some):
        return None
    order = np.lexsort((price[some], *(-jobs[some, column] for column in reversed(range(jobs.shape[1])))))
    best = int(some[order[0]])
    mine, now = jobs[best].tolist(), state.served[group.kinds].tolist()
    cost = float(state.price[group.gone].sum() - state.price[group.added].sum())
    return best if mine > now or (mine == now and price[best] < cost - 1e-12 * max(1.0, abs(cost))) else None


def _apply(group: _Group, menus: Sequence[_Menu], steps: Sequence[tuple[Whole, Whole]], best: int) -> None:
    """Put a label in place of what was there."""
    state, rows = group.state, [group.added]
    parts = np.zeros((len(group.places), len(group.kinds)), dtype=np.int64)
    for number in reversed(range(len(menus))):
        parent, entry = steps[number]
        item, menu = int(entry[best]), menus[number]
        parts[number] = menu.jobs[item]
        rows.append(menu.sets.rows_of(0, int(menu.chosen[item])))
        best = int(parent[best])
    state.go(group.gone, back=True)
    parts -= state.jobs[np.ix_(group.places, group.kinds)]
    for column, kind in enumerate(group.kinds.tolist()):
        if parts[:, column].any():
            state.serve(kind, group.places, parts[:, column])
    state.go(np.concatenate(rows))

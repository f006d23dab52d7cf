"""Fill places with waiting jobs at the least price a job, then let go on whatever no job needs.

Bounds that cost one look at all places say where room for a job may be cheap; only there sets of rows are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from drainwise.reclaim.choose.problem import Real, State, Whole
from drainwise.reclaim.choose.sets import ALL_OF, PlaceSets, sets_on

MOST_ROUNDS = 2_000
"""Of a kind: the next cycle serves the others. A round serves jobs on as many places as it can."""
NEAR, MORE = 1, 24
"""Places that are looked at: so many for each part of a job, and so many more."""
ONE_BY_ONE = 8
"""So few jobs are served one after the other."""
MOST_ROWS = 32
"""Rows of a place that are looked at first."""
MANY, FEW = 1_000, 6
"""In a pool of more rows than that all subsets of fewer pilots are looked at."""


class Bounds:
    """The lowest price of a unit of each amount on each place (unit, P × R), and all that could come back (back)."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.unit = np.full(state.room.shape, np.inf)
        self.back = np.zeros(state.room.shape)
        self.renew(np.arange(len(state.room)))

    def renew(self, places: Whole) -> None:
        """Look at places anew."""
        table = self._state.problem.rows
        pieces, whose = self._state.problem.pieces(places)
        open_ = self._state.open(table.row[pieces])
        pieces, whose = pieces[open_], whose[open_]
        self.unit[places] = np.inf
        self.back[places] = 0
        if not len(pieces):
            return
        begin = np.flatnonzero(np.diff(whose, prepend=-1))
        gives, price = self._state.more(pieces)
        each = np.where(gives > 0, price[:, None] / np.maximum(gives, 1e-9), np.inf)
        there = places[whose[begin]]
        self.unit[there] = np.minimum.reduceat(each, begin, axis=0)
        self.back[there] = np.add.reduceat(gives, begin, axis=0)

    def of(self, kind: int, places: Whole | slice = slice(None)) -> Real:
        """Return for each of these places a price that no job of a kind can undercut, infinite where none fits."""
        state, needs, held = self._state, self._state.problem.needs, self._state.problem.places
        able = needs.may[kind, places] & ~state.closed[places] & (state.jobs[places, kind] < needs.most[kind])
        if needs.whole[kind] or not held.shared.all():
            able &= (held.shared[places] & ~needs.whole[kind]) | ~state.jobs[places].any(axis=1)
        price = np.zeros(len(able))
        for resource, need in enumerate(needs.needs[kind].tolist()):
            if resource == 0 and needs.whole[kind]:
                lack = np.maximum(held.cores[places], need) - state.room[places, 0]
            elif need > 0:
                lack = need - state.room[places, resource]
            else:
                continue
            able &= lack <= self.back[places, resource]
            price = np.where(lack > 0, np.maximum(price, np.maximum(lack, 1e-9) * self.unit[places, resource]), price)
        price[~able] = np.inf
        return price


def fill(state: State, kinds: Iterable[int]) -> None:
    """Serve kind after kind, as many whole jobs as its account is owed, each at the least price that is found."""
    bounds, barred = Bounds(state), state.barred.copy()
    for kind in kinds:
        if state.wanted(kind):
            _Kind(state, bounds, kind).serve()
    state.barred = barred


class _Kind:
    """Serving jobs of one kind: of each place its bound, and its cheapest offer once it is looked at.

    near: the places with the lowest bounds. beyond: a bound of all others. most: jobs that a place is looked at for.
    """

    def __init__(self, state: State, bounds: Bounds, kind: int) -> None:
        self.state, self.bounds, self.kind = state, bounds, kind
        self.several = int(state.problem.needs.several[kind])
        self.barred, self.is_refused = list[Whole](), False
        self.bound = bounds.of(kind)
        self.most = np.full(len(self.bound), state.problem.needs.most[kind])
        self.near, self.beyond = np.zeros(0, dtype=np.int64), np.inf
        self.known = np.zeros(len(self.bound), dtype=bool)
        self.each, self.number = np.full(len(self.bound), np.inf), np.zeros(len(self.bound), dtype=np.int64)
        self.source = np.zeros((len(self.bound), 3), dtype=np.int64)
        self.looked: list[PlaceSets] = []
        self.rounds = 0

    def serve(self) -> None:
        """Serve what is wanted. It ends: each round serves a job, bars a row, looks for fewer jobs on a place, or
        brings in more places; and no more than MOST_ROUNDS serve jobs, however many wait.
        """
        places = int(np.isfinite(self.bound).sum())
        while places and self.rounds < MOST_ROUNDS and (left := self.state.wanted(self.kind)):
            if not len(self.near):
                self._bring_in(min(places, NEAR * left * self.several + MORE))
            self._forget(self.near[self.known[self.near] & (self.number[self.near] > left)])
            self._look(left)
            good = self.near[np.isfinite(self.each[self.near])]
            good = good[np.argsort(self.each[good], kind="stable")]
            cheap = good[self.each[good] <= self.beyond]
            if len(cheap) >= self.several:
                self._take(cheap, left)
            elif np.isfinite(self.beyond):
                self._bring_in(min(len(self.bound), 3 * len(self.near)))
            else:
                break
        if self.barred:
            rows = np.concatenate(self.barred)
            self.state.barred[rows] = False
            self.bounds.renew(np.unique(self._places_of(rows)))

    def _bring_in(self, count: int) -> None:
        """Take so many places with the lowest bounds as near ones, beside those that are."""
        self.near = np.union1d(self.near, np.argsort(self.bound, kind="stable")[:count])
        others = np.ones(len(self.bound), dtype=bool)
        others[self.near] = False
        self.beyond = float(self.bound[others].min(initial=np.inf))

    def _look(self, left: int) -> None:
        """Look at the near places that are not known."""
        near = self.near[~self.known[self.near] & np.isfinite(self.bound[self.near])]
        if not len(near):
            return
        self.known[near] = True
        state, needs = self.state, self.state.problem.needs
        need = state.problem.needed(self.kind, near)
        most = np.minimum(np.minimum(left, self.most[near]), needs.most[self.kind] - state.jobs[near, self.kind])
        alone = needs.whole[self.kind] or self.several > 1
        most = np.where(state.problem.places.shared[near] & (not alone), most, np.minimum(most, 1))
        self._offer(near, need, most, MOST_ROWS)
        short = np.flatnonzero(~np.isfinite(self.each[near]) & (state.problem.piece_count[near] > MOST_ROWS))
        if len(short):
            self._offer(near[short], need[short], most[short], len(state.gone))

    def _offer(self, places: Whole, need: Real, most: Whole, most_rows: int) -> None:
        """Find the cheapest offer of each of these places: the set of rows of the least price a job."""
        state = self.state
        all_of, wanted = ALL_OF if len(state.gone) <= MANY else FEW, np.flatnonzero(need.any(axis=0)).tolist()
        for sets in sets_on(state, places, np.maximum(need - state.room[places], 0), all_of, most_rows):
            jobs: Real = np.repeat(most[sets.at].astype(float)[:, None], sets.price.shape[1], axis=1)
            for resource in wanted:
                room = state.room[places[sets.at], resource, None] + sets.gives[resource]
                room /= need[sets.at, resource, None]
                np.minimum(jobs, room, out=jobs)
            np.floor(jobs, out=jobs)
            price = sets.price / np.maximum(jobs, 1.0)
            price[jobs < 1] = np.inf
            best = price.argmin(axis=1)
            row, place = np.arange(len(best)), places[sets.at]
            self.each[place] = price[row, best]
            self.number[place] = np.where(np.isfinite(self.each[place]), jobs[row, best], 0)
            self.source[place] = np.column_stack((np.full(len(best), len(self.looked)), row, best))
            self.looked.append(sets)

    def _take(self, cheap: Whole, left: int) -> None:
        """Take offers, cheapest first, until half of what is left is served; one where few are left."""
        several = self.several
        jobs = np.cumsum(self.number[cheap]) // several
        many = len(self.state.gone) > MANY
        few = ONE_BY_ONE // 4 if many else ONE_BY_ONE
        half = 1 if left <= few or len(cheap) // several <= few else left - left // 4 if many else left // 2
        last = int(np.searchsorted(jobs, half)) + 1
        taken = cheap[: last // several * several if last < len(cheap) else len(cheap) // several * several]
        taken = taken[np.cumsum(self.number[taken]) <= left * several]
        taken = taken[: len(taken) // several * several]
        rows = [self.looked[one].rows_of(row, chosen) for one, row, chosen in self.source[taken].tolist()]
        low, high = 0, len(taken)  # as many as limits let go together
        middle = high
        while low < high:
            if len(self._over(np.concatenate(rows[:middle]))):
                high = middle - several
            else:
                low = middle
            middle = low + (high - low + several) // several // 2 * several
        if low:
            self._apply(taken[:low], np.concatenate(rows[:low]))
        if low < len(taken):
            going = np.concatenate(rows[low : low + several])
            if len(over := self._over(going)):
                self._refuse(taken[low : low + several], going, int(over[0]))

    def _once(self, rows: Whole) -> Whole:
        """Return each row once: one on several places may be offered on each."""
        return np.unique(rows) if self.state.problem.wide[rows].any() else rows

    def _over(self, rows: Whole) -> Whole:
        rows = self._once(rows)
        spent, instead = self.state.spent(rows), self.state.instead_of(rows)
        spent = spent - self.state.spent(instead) if len(instead) else spent
        return np.flatnonzero(spent > np.maximum(self.state.rest, 0))

    def _apply(self, places: Whole, rows: Whole) -> None:
        state = self.state
        touched = np.union1d(places, self._places_of(rows)) if state.problem.wide[rows].any() else places
        state.go(self._once(rows))
        state.serve(self.kind, places, self.number[places])
        self.rounds += 1
        all_of = state.problem.needs.most[self.kind]  # twice as many again: else jobs without number come one by one
        self.most[places] = np.where(self.most[places] > all_of // 2, all_of, 2 * self.most[places])
        self._renew(touched)

    def _renew(self, places: Whole) -> None:
        self.bounds.renew(places)
        self.bound[places] = self.bounds.of(self.kind, places)
        self._forget(places)

    def _forget(self, places: Whole) -> None:
        self.known[places] = False
        self.each[places] = np.inf

    def _places_of(self, rows: Whole) -> Whole:
        problem = self.state.problem
        return problem.rows.place[problem.pieces_by(rows)]

    def _refuse(self, places: Whole, rows: Whole, limit: int) -> None:
        """Bar all rows that a limit does not let go alone; else look for fewer jobs on places with several, or bar the
        dearest row that the limit counts of those it refuses together.

        All limits are looked at the first time, then the one that refuses.
        """
        state, table, limits = self.state, self.state.problem.rows, self.state.problem.limits
        bound = (limits.binds == limit).any(axis=1) | (not self.is_refused)
        self.is_refused = True
        allowed = state.allowed()
        low = bound & (allowed < state.problem.largest).any(axis=1)
        barred = np.flatnonzero(low[table.user] & ~state.barred)
        barred = barred[(allowed[table.user[barred]] < table.spends[barred]).any(axis=1)]
        barred = barred[state.open(barred)]
        way = state.way[table.pilot[barred]]
        spends = table.spends[barred] - np.where(way[:, None] >= 0, table.spends[way], 0)
        barred = barred[(spends > allowed[table.user[barred]]).any(axis=1)]
        is_for_good = len(barred) > 0 and not state.problem.has_ways  # limits only shrink here
        if not len(barred) and len(many := places[self.number[places] > 1]):
            self.most[many] = self.number[many] // 2
            self._forget(many)
            return
        if not len(barred):
            counted = rows[(limits.binds[table.user[rows]] == limit).any(axis=1)]
            counted = counted[table.spends[counted, limits.counts[limit]] > 0]
            barred = counted[[int(state.price[counted].argmax())]]
        state.barred[barred] = True
        self.barred += [] if is_for_good else [barred]
        self._renew(np.unique(self._places_of(barred)))


def reprieve(state: State) -> None:
    """Let go on what no job needs, dearest first; a round looks at the next of each place."""
    problem = state.problem
    gone = np.flatnonzero(state.gone & ~problem.wide)
    gone = gone[np.lexsort((gone, -state.price[gone], problem.home[gone]))]
    place = problem.home[gone]
    turn = np.arange(len(gone)) - np.searchsorted(place, place)
    wide = np.flatnonzero(state.gone & problem.wide)
    rounds = [gone[turn == number] for number in range(int(turn.max(initial=-1)) + 1)]
    for rows in (*rounds, *wide[np.argsort(-state.price[wide], kind="stable")][:, None]):
        pieces = problem.pieces_by(rows)
        lacking = (state.room[problem.rows.place[pieces]] < problem.rows.gives[pieces]).any(axis=1)
        state.go(rows[~np.isin(rows, problem.rows.row[pieces[lacking]])], back=True)

"""Hold what is chosen so far: rows that go, jobs that are served, and the room and limits that are left."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from drainwise.reclaim.choose.problem import Mask, Problem, Real, Whole

ROUNDING = 1e-6
"""Cores that accounts are owed are sums of floats."""


class State:
    """Which rows have `gone`, which `jobs` (P × K, parts of jobs on each place) are served, and what is left.

    price: n, of each row in this choice, infinite where it may not go. barred: n, rows left out for now. way: for each
    pilot its row that goes, −1 for none. room: P × R.
    parts, served: K, of jobs and whole ones. owed: A, cores left. rest: L, of each limit.
    """

    def __init__(self, problem: Problem, price: Real) -> None:
        self.problem, self.price = problem, price
        rows, needs = problem.rows, problem.needs
        self.gone = np.zeros(len(rows), dtype=bool)
        self.barred = ~np.isfinite(price)
        self.way = np.full(int(rows.pilot.max()) + 1 if len(rows) else 0, -1)
        self.jobs = np.zeros((len(problem.places.free), len(needs.jobs)), dtype=np.int64)
        self.room = problem.places.free.copy()
        self.parts = np.zeros(len(needs.jobs), dtype=np.int64)
        self.served = self.parts.copy()
        self.owed = needs.owed.copy()
        self.rest = np.maximum(problem.limits.most, 0.0)
        self.closed = np.zeros(len(self.room), dtype=bool)
        """Places that one job has for itself."""

    @cached_property
    def cheapest(self) -> Whole:
        """Pieces by place, within a place the cheapest for a core first; `price` must not change any more."""
        rows = self.problem.rows
        each = self.price / np.maximum(rows.spends[:, 0], 1e-9)
        return np.lexsort((rows.row, each[rows.row], rows.place))

    def open(self, rows: Whole) -> Mask:
        """Return which of these rows may go still: of a pilot that gives something already those that give more."""
        table, way = self.problem.rows, self.way[self.problem.rows.pilot[rows]]
        able: Mask = ~self.barred[rows] & (way < 0)
        if self.problem.has_ways:
            home, more = self.problem.home, table.spends[rows, 0] > table.spends[way, 0]
            able |= ~self.barred[rows] & more & (home[rows] == home[way]) & ~self.problem.wide[rows]
        return able

    def more(self, pieces: Whole) -> tuple[Real, Real]:
        """Return what open rows give by these pieces beyond what their pilots give already, m × R, and for how much."""
        table = self.problem.rows
        rows = table.row[pieces]
        gives, price = table.gives[pieces], self.price[rows]
        if self.problem.has_ways:
            way = self.way[table.pilot[rows]]
            before = np.where(way[..., None] >= 0, table.gives[self.problem.pieces_of[np.maximum(way, 0)]], 0)
            gives = np.maximum(gives - before, 0)
            price = np.maximum(price - np.where(way >= 0, self.price[way], 0), 0)
        return gives, price

    def wanted(self, kind: int) -> int:
        """Return how many jobs more of a kind may be served."""
        needs = self.problem.needs
        left = int(needs.jobs[kind] - self.served[kind])
        if needs.cores[kind] > 0:
            left = min(left, int((self.owed[needs.account[kind]] + ROUNDING) // needs.cores[kind]))
        return max(0, left)

    def spent(self, rows: Whole) -> Real:
        """Return what these rows take of each limit, L."""
        table, limits = self.problem.rows, self.problem.limits
        total = np.zeros(len(limits.most))
        binds = limits.binds[table.user[rows]]
        for column in range(binds.shape[1]):
            bound = binds[:, column] >= 0
            limit = binds[bound, column]
            amount = table.spends[rows[bound], limits.counts[limit]]
            total += np.bincount(limit, weights=amount, minlength=len(total))
        return total

    def instead_of(self, rows: Whole) -> Whole:
        """Return the rows that go now of the pilots of rows that may go."""
        way = self.way[self.problem.rows.pilot[rows]]
        return way[way >= 0]

    def go(self, rows: Whole, back: bool = False) -> None:
        """Let rows go, in place of others of their pilots, or go on where `back`."""
        if not back and len(instead := self.instead_of(rows)):
            self.go(instead, back=True)
        problem, sign = self.problem, -1 if back else 1
        self.gone[rows] = not back
        self.way[problem.rows.pilot[rows]] = -1 if back else rows
        pieces = problem.pieces_by(rows)
        np.add.at(self.room, problem.rows.place[pieces], sign * problem.rows.gives[pieces])
        self.rest -= sign * self.spent(rows)

    def serve(self, kind: int, places: Whole, parts: Whole) -> None:
        """Serve parts of jobs on places, or give up negative ones; as many whole jobs are served as parts make up."""
        problem, account = self.problem, self.problem.needs.account[kind]
        self.jobs[places, kind] += parts
        self.parts[kind] += parts.sum()
        self.room[places] -= parts[:, None] * problem.needed(kind, places)
        before, self.served[kind] = self.served[kind], self.parts[kind] // problem.needs.several[kind]
        self.owed[account] -= (self.served[kind] - before) * problem.needs.cores[kind]
        whole, shared = problem.needs.whole, problem.places.shared
        some = places[whole[kind] | ~shared[places]]
        self.closed[some] = (self.jobs[some] * (whole | ~shared[some, None])).any(axis=1)

    def cost(self) -> float:
        """Return the price of all that goes."""
        return float(self.price[self.gone].sum())

    def better(self, other: State) -> bool:
        """Return whether more jobs are served in the needs' order, or as many at a lower price."""
        mine, others = self.served.tolist(), other.served.tolist()
        return mine > others or (mine == others and self.cost() < other.cost() - 1e-9)

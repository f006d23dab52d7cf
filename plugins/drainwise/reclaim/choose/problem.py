"""Put a decision into arrays: ways in which pilots give something back, waiting jobs, places, and what users may lose.

What is chosen so far is a `State`: rows that go, jobs that are served, and the room and limits that are left.
Letters in shapes: n rows, m pieces, P places, R resources (cores first), K needs, A accounts that wait, U users, L
limits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Mask = NDArray[np.bool_]

STANDING, LEAVE, CUT, KILL, PART = range(5)
"""Ways of a row: an order that stands, leaving in time, cut at a deadline, killed at once, a part of the cores."""
CORES, DEVICES = range(2)
"""What a limit counts: the columns of `Rows.spends`."""


def sums(whose: Whole, amount: Real, count: int) -> Real:
    """Return the sum of an amount (n) for each of so many users, groups or the like, numbered in `whose` (n)."""
    total: Real = np.bincount(whose, weights=amount, minlength=count).astype(np.float64)
    return total


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows, each one way in which one pilot gives something back; the ways of one pilot exclude each other.

    pilot: n, numbers from 0. way: n, STANDING to PART. user: n, numbers of users. spends: n × 2, cores and devices
    that the user loses, ≥ 0. loss: n, core-seconds by facts; claim: n, core-seconds as its report states; both ≥ 0,
    infinite where a row may not be chosen. A row gives back in one place or more, a piece in each. row: m, the row of
    each piece, ascending. place: m. gives: m × R, ≥ 0.
    """

    pilot: Whole
    way: Whole
    user: Whole
    spends: Real
    loss: Real
    claim: Real
    row: Whole
    place: Whole
    gives: Real

    def __len__(self) -> int:
        return len(self.pilot)


def largest_of(rows: Rows, users: int) -> Real:
    """Return the most cores and devices that a row of each user spends, users × 2."""
    found = np.zeros((users, 2))
    np.maximum.at(found, rows.user, rows.spends)
    return found


def whole_pilots(cores: Real, user: Whole, loss: Real, claim: Real) -> Rows:
    """Return rows of n pilots that go as a whole, one each, on one place that has cores alone; as in `Rows`."""
    every = np.arange(len(cores))
    spends, ways = np.column_stack((cores, np.zeros_like(cores))), np.full(len(cores), KILL)
    return Rows(every, ways, user, spends, loss, claim, every, np.zeros_like(every), cores[:, None])


@dataclass(frozen=True, eq=False)
class Parts:
    """m parts of pilots on one place, of which at most one of each pilot comes back while that goes on.

    pilot: m, its number. cores: m, fewer than it has; memory comes back in proportion. cost: m, ≥ 0, from claims.
    stands: m, whether it was asked for: nothing is lost by it any more.
    """

    pilot: Whole
    cores: Whole
    cost: Real
    stands: Mask


def with_parts(rows: Rows, parts: Parts, memory: int | None = None) -> Rows:
    """Return the rows of whole pilots, one each, and then those of their parts; memory: the column of it in `gives`."""
    cores, piece = parts.cores.astype(float), np.searchsorted(rows.row, parts.pilot)
    gives = np.zeros((len(cores), rows.gives.shape[1]))
    gives[:, 0] = cores
    if memory is not None:
        gives[:, memory] = rows.gives[piece, memory] * cores // np.maximum(rows.spends[parts.pilot, 0], 1)
    own = Rows(
        parts.pilot,
        np.where(parts.stands, STANDING, PART),
        rows.user[parts.pilot],
        np.column_stack((cores, np.zeros_like(cores))),
        np.zeros_like(cores),
        parts.cost,
        len(rows) + np.arange(len(cores)),
        rows.place[piece],
        gives,
    )
    return Rows(*(np.concatenate((getattr(rows, one.name), getattr(own, one.name))) for one in fields(Rows)))


@dataclass(frozen=True, eq=False)
class Places:
    """P places.

    free: P × R, that no job uses; below 0 nothing starts that needs some of it. cores: P, of the whole place. shared:
    P, whether several jobs can run there at once.
    """

    free: Real
    cores: Real
    shared: Mask


@dataclass(frozen=True, eq=False)
class Needs:
    """K kinds of waiting jobs, in the order in which they should start.

    account: K, whose they are. jobs: K, how many wait. needs: K × R, of one job in one place. may: K × P, the places
    it may use. whole: K, whether a job takes all cores of its place and shares it with none. several: K, on how many
    places at once a job runs. cores: K, what a job counts for its account. most: K, parts of its jobs in one place at
    most: all, but where parts of jobs on several places are looked at one by one. owed: A, cores that may be served
    for each account.
    """

    account: Whole
    jobs: Whole
    needs: Real
    may: Mask
    whole: Mask
    several: Whole
    cores: Real
    most: Whole
    owed: Real


@dataclass(frozen=True, eq=False)
class Limits:
    """What U users may lose, by L limits that some of them share.

    account: U. rank: U, who gives back first has 0. binds: U × B, numbers of limits, −1 for none. most: L, in cores or
    devices. counts: L, CORES or DEVICES. extra: U, cores beyond what facts take that reports may cost the user itself,
    not a number for the larger of its largest pilot and a quarter of what facts take. taken: U, of these what they
    have cost it lately.
    """

    account: Whole
    rank: Real
    binds: Whole
    most: Real
    counts: Whole
    extra: Real
    taken: Real | float = 0.0


@dataclass(frozen=True, eq=False)
class Problem:
    """All that one decision rests on, with indices that are made once."""

    rows: Rows
    places: Places
    needs: Needs
    limits: Limits

    @cached_property
    def piece(self) -> Whole:
        """Pieces by place, within a place by pilot and row."""
        rows = self.rows
        return np.lexsort((rows.row, rows.pilot[rows.row], rows.place))

    @cached_property
    def piece_from(self) -> Whole:
        """Where the pieces of each place begin in `piece`; P + 1."""
        return np.searchsorted(self.rows.place[self.piece], np.arange(len(self.places.free) + 1))

    @cached_property
    def piece_count(self) -> Whole:
        """Pieces of each place, P."""
        return np.diff(self.piece_from)

    @cached_property
    def wide(self) -> Mask:
        """Rows with pieces on several places; n."""
        return np.bincount(self.rows.row, minlength=len(self.rows)) > 1

    @cached_property
    def pilot_count(self) -> Whole:
        """Pilots of each place, P."""
        pilot, place = self.rows.pilot[self.rows.row[self.piece]], self.rows.place[self.piece]
        new = np.append(True, (pilot[1:] != pilot[:-1]) | (place[1:] != place[:-1]))[: len(pilot)]
        return np.bincount(place[new], minlength=len(self.places.free))

    @cached_property
    def home(self) -> Whole:
        """The place of each row, n; of one on several places the first, of one on none any."""
        return np.append(self.rows.place, -1)[self.pieces_of[:-1]]

    @cached_property
    def largest(self) -> Real:
        """The most cores and devices of a row of each user, U × 2."""
        return largest_of(self.rows, len(self.limits.rank))

    @cached_property
    def has_ways(self) -> bool:
        """Whether a pilot has several rows."""
        return len(self.rows) > 0 and int(np.bincount(self.rows.pilot).max()) > 1

    @cached_property
    def pieces_of(self) -> Whole:
        """Where the pieces of each row begin; n + 1."""
        return np.searchsorted(self.rows.row, np.arange(len(self.rows) + 1))

    def pieces_by(self, rows: Whole) -> Whole:
        """Return the pieces of these rows, in their order."""
        begin = self.pieces_of[rows]
        count = self.pieces_of[rows + 1] - begin
        return np.repeat(begin - np.cumsum(count) + count, count) + np.arange(int(count.sum()))

    def pieces(self, places: Whole, order: Whole | None = None) -> tuple[Whole, Whole]:
        """Return the pieces on these places, and of each the position of its place in them.

        order: of all pieces, by place; that of `piece` where it is not given.
        """
        begin, count = self.piece_from[places], self.piece_count[places]
        whose = np.repeat(np.arange(len(places)), count)
        within = np.arange(len(whose)) - np.repeat(np.cumsum(count) - count, count)
        return (self.piece if order is None else order)[begin[whose] + within], whose

    def needed(self, kind: int, places: Whole) -> Real:
        """Return what a job of a kind takes of each of these places, places × R: of a whole place all cores."""
        need = np.repeat(self.needs.needs[kind][None, :], len(places), axis=0)
        if self.needs.whole[kind]:
            need[:, 0] = np.maximum(need[:, 0], self.places.cores[places])
        return need


ROUNDING = 1e-6
"""Cores that accounts are owed are sums of floats."""


class State:
    """Which rows have `gone`, which `jobs` (P × K, parts of jobs on each place) are served, and what is left.

    price: n, of each row in this choice, infinite where it may not go, or no limit ever lets it go. barred: n, rows
    left out for now. way: for each pilot its row that goes, −1 for none. room: P × R.
    parts, served: K, of jobs and whole ones. owed: A, cores left. rest: L, of each limit.
    """

    def __init__(self, problem: Problem, price: Real) -> None:
        self.problem = problem
        rows, needs = problem.rows, problem.needs
        self.rest = np.maximum(problem.limits.most, 0.0)
        self.price = np.where((rows.spends > self.allowed()[rows.user] + ROUNDING).any(axis=1), np.inf, price)
        self.gone = np.zeros(len(rows), dtype=bool)
        self.barred = ~np.isfinite(self.price)
        self.way = np.full(int(rows.pilot.max()) + 1 if len(rows) else 0, -1)
        self.jobs = np.zeros((len(problem.places.free), len(needs.jobs)), dtype=np.int64)
        self.room = problem.places.free.copy()
        self.parts = np.zeros(len(needs.jobs), dtype=np.int64)
        self.served = self.parts.copy()
        self.owed = needs.owed.copy()
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

    def allowed(self) -> Real:
        """Return the cores and devices that each user may still lose, U × 2."""
        limits = self.problem.limits
        rest, counts = np.where(limits.binds >= 0, self.rest[limits.binds], np.inf), limits.counts[limits.binds]
        each = [np.where(counts == what, rest, np.inf).min(axis=1, initial=np.inf) for what in (CORES, DEVICES)]
        return np.column_stack(each)

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

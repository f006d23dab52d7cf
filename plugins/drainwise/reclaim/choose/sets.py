"""List sets of rows that may go together on places: all subsets of a few rows, of many the likely ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drainwise.reclaim.choose.problem import Mask, Real, Whole
from drainwise.reclaim.choose.state import State

ALL_OF = 10
"""Pilots of a place of which all subsets are looked at."""
MOST_PRODUCTS = 2048
FIRST = 6
"""Rows of which all subsets are looked at where there are many."""
MOST_ROWS = 256
_DEAR = 1e300
_BLOCK = 2_000_000
"""Amounts in memory at once."""


@dataclass(frozen=True, eq=False)
class PlaceSets:
    """S sets of rows on each of q places that are alike: rows q × M, gives q × S × R, price q × S.

    at: q, positions in what was asked. which: S × M, rows of each set; None where sets differ from place to place.
    """

    at: Whole
    rows: Whole
    gives: Real
    price: Real
    which: Mask | None
    orders: tuple[Whole, ...] = ()

    def rows_of(self, number: int, chosen: int) -> Whole:
        """Return the rows of a set of the place at `number`."""
        rows = self.rows[number]
        if self.which is not None:
            return rows[self.which[chosen]]
        count = len(rows)
        if chosen <= count:
            return rows[chosen - 1 : chosen] if chosen else rows[:0]
        chosen -= count + 1
        for order in self.orders:
            if chosen < count:
                return rows[order[number][: chosen + 1]]
            chosen -= count
        return rows[self.orders[0][number][:FIRST][_subsets((1,) * FIRST)[chosen]]]

    def members(self) -> Mask:
        """Return S × M, the rows of each set of the first place."""
        if self.which is not None:
            return self.which
        count = self.rows.shape[1]
        eye, few = np.eye(count, dtype=bool), np.zeros((1 << FIRST, count), dtype=bool)
        few[:, self.orders[0][0][:FIRST]] = _subsets((1,) * FIRST)
        begin = np.tril(np.ones((count, count), dtype=bool))
        ordered = [begin[:, np.argsort(order[0])] for order in self.orders]
        return np.vstack((np.zeros((1, count), dtype=bool), eye, *ordered, few))


def sets_on(state: State, places: Whole, lack: Real) -> Iterator[PlaceSets]:
    """Yield the sets of open rows on these places, alike ones together, the empty set first.

    lack: places × R, what is to come back there at least. Of a place with more than MOST_ROWS rows the cheapest for a
    core are looked at.
    """
    problem = state.problem
    pieces, whose = problem.pieces(places)
    open_ = state.open(problem.rows.row[pieces])
    pieces, whose = pieces[open_], whose[open_]
    rows = problem.rows.row[pieces]
    count = np.bincount(whose, minlength=len(places))
    if len(count) and count.max() > MOST_ROWS:
        keep = _cheapest(state, rows, whose)
        pieces, whose, rows = pieces[keep], whose[keep], rows[keep]
        count = np.bincount(whose, minlength=len(places))
    begin = np.cumsum(count) - count
    pilot = problem.rows.pilot[rows]
    again = np.zeros(len(rows), dtype=bool)
    again[1:] = (pilot[1:] == pilot[:-1]) & (whose[1:] == whose[:-1])
    within = np.arange(len(rows)) - begin[whose]
    few = count <= 62
    bits = np.bincount(whose[again], weights=2.0 ** np.minimum(within[again], 62), minlength=len(places))
    pilots = count - np.bincount(whose[again], minlength=len(places))
    pattern = np.where(few & (pilots <= ALL_OF), bits * 64 + count, -1)
    for value in np.unique(pattern).tolist():
        at = np.flatnonzero(pattern == value)
        ways = _ways(again[begin[at[0]] : begin[at[0]] + count[at[0]]]) if value >= 0 else ()
        if value >= 0 and np.prod([one + 1.0 for one in ways]) <= MOST_PRODUCTS:
            yield from _products(state, at, pieces, begin, _subsets(ways))
        else:
            yield from _likely(state, at, pieces, begin, count, lack)


def _cheapest(state: State, rows: Whole, whose: Whole) -> Mask:
    """Return the MOST_ROWS rows of each place that are cheapest for a core."""
    each = state.price[rows] / np.maximum(state.problem.rows.spends[rows, 0], 1e-9)
    order = np.lexsort((each, whose))
    place = whose[order]
    first = np.searchsorted(place, place)
    keep = np.zeros(len(rows), dtype=bool)
    keep[order] = np.arange(len(rows)) - first < MOST_ROWS
    return keep


def _ways(again: Mask) -> tuple[int, ...]:
    """Return how many rows each pilot has, in the order of the rows."""
    return tuple(np.diff(np.append(np.flatnonzero(~again), len(again))).tolist())


@lru_cache(maxsize=4096)
def _subsets(ways: tuple[int, ...]) -> Mask:
    """Return all choices of one row or none of each pilot, the empty one first."""
    found = np.zeros((1, 0), dtype=bool)
    for rows in ways:
        options = np.vstack((np.zeros((1, rows), dtype=bool), np.eye(rows, dtype=bool)))
        found = np.hstack((np.repeat(found, rows + 1, axis=0), np.tile(options, (len(found), 1))))
    return found


def _products(state: State, at: Whole, pieces: Whole, begin: Whole, which: Mask) -> Iterator[PlaceSets]:
    table = state.problem.rows
    step = max(1, _BLOCK // (which.shape[0] * table.gives.shape[1]))
    factors = which.astype(float)
    for number in range(0, len(at), step):
        some = at[number : number + step]
        here = pieces[begin[some][:, None] + np.arange(which.shape[1])]
        rows = table.row[here]
        yield PlaceSets(some, rows, factors @ table.gives[here], state.price[rows] @ factors.T, which)


def _likely(
    state: State, at: Whole, pieces: Whole, begin: Whole, count: Whole, lack: Real
) -> Iterator[PlaceSets]:
    """Yield each row alone, the beginnings of two orders, and the subsets of the first rows of the first order."""
    table = state.problem.rows
    most = max(FIRST, int(count[at].max()))
    few = _subsets((1,) * FIRST)
    step = max(1, _BLOCK // ((3 * most + len(few)) * table.gives.shape[1]))
    for number in range(0, len(at), step):
        some = at[number : number + step]
        there = np.arange(most) < count[some][:, None]
        here = pieces[np.minimum(begin[some][:, None] + np.arange(most), len(pieces) - 1)]
        rows = table.row[here]
        gives = np.where(there[:, :, None], table.gives[here], 0)
        price = np.where(there, state.price[rows], np.inf)
        shares = np.minimum(gives, lack[some][:, None, :]) / np.maximum(lack[some][:, None, :], 1e-9)
        orders = []
        sums, prices = [np.zeros((len(some), 1, gives.shape[2])), gives], [np.zeros((len(some), 1)), price]
        for value in (table.spends[rows, 0], shares.sum(axis=2)):
            ratio = _once(table.pilot[rows], np.where(there, price / np.maximum(value, 1e-9), np.inf))
            orders.append(np.argsort(ratio, axis=1, kind="stable"))
            each = np.where(np.isfinite(ratio), price, np.inf)
            prices.append(np.cumsum(np.take_along_axis(each, orders[-1], axis=1), axis=1))
            sums.append(np.cumsum(np.take_along_axis(gives, orders[-1][:, :, None], axis=1), axis=1))
        first = orders[0][:, :FIRST]
        alone = np.where(np.isfinite(_once(table.pilot[rows], price)), price, _DEAR)
        total = np.minimum(np.take_along_axis(alone, first, axis=1), _DEAR) @ few.T.astype(float)
        prices.append(np.where(total >= _DEAR, np.inf, total))
        sums.append(few.astype(float) @ np.take_along_axis(gives, first[:, :, None], axis=1))
        yield PlaceSets(some, rows, np.concatenate(sums, axis=1), np.concatenate(prices, axis=1), None, tuple(orders))


def _once(pilot: Whole, value: Real) -> Real:
    """Return the values (q × M), infinite for all rows of a pilot of a place but the least."""
    order = np.lexsort((value, pilot), axis=1)
    ordered = np.take_along_axis(pilot, order, axis=1)
    again = np.zeros(pilot.shape, dtype=bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    if not again.any():
        return value
    found = np.take_along_axis(value, order, axis=1)
    found[again] = np.inf
    back = np.empty_like(value)
    np.put_along_axis(back, order, found, axis=1)
    return back

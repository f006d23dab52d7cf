"""List sets of rows that may go together on places: all subsets of a few rows, of many the likely ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drainwise.reclaim.choose.problem import Mask, Real, State, Whole

ALL_OF = 10
"""Pilots of a place of which all subsets are looked at, and of pilots with several ways twice as many choices."""
MOST_PRODUCTS = 2 << ALL_OF
FIRST = 6
"""Rows of which all subsets are looked at where there are many."""
_DEAR = 1e200
_BLOCK = 60_000
"""Amounts in memory at once."""


@dataclass(frozen=True, eq=False)
class PlaceSets:
    """S sets of rows on each of q places: rows q × M, gives R × q × S, price q × S, infinite for what is no set.

    at: q, positions in what was asked. which: S × M, rows of each set; None where they differ. Then the sets are none,
    each row alone, the beginnings of each of `orders` (q × M), and the subsets of the first rows of the first order.
    """

    at: Whole
    rows: Whole
    gives: Real
    price: Real
    which: Mask | None
    orders: tuple[Whole, ...] = ()

    def of(self, number: int) -> PlaceSets:
        """Return the sets of the place at `number` alone."""
        one = slice(number, number + 1)
        orders = tuple(order[one] for order in self.orders)
        return PlaceSets(self.at[one], self.rows[one], self.gives[:, one], self.price[one], self.which, orders)

    def rows_of(self, number: int, chosen: int) -> Whole:
        """Return the rows of a set of the place at `number`."""
        rows, count, few = self.rows[number], self.rows.shape[1], len(subsets((1,) * FIRST))
        which: Mask | slice | Whole
        if self.which is not None:
            which = self.which[chosen]
        elif chosen <= count:
            which = slice(max(0, chosen - 1), chosen)
        elif chosen < len(self.price[number]) - few:
            order, length = divmod(chosen - count - 1, count)
            which = self.orders[order][number][: length + 1]
        else:
            which = self.orders[0][number][:FIRST][subsets((1,) * FIRST)[chosen - len(self.price[number])]]
        found: Whole = rows[which]
        return found

    def members(self) -> Mask:
        """Return which rows are in each set of the first place; S × M."""
        if self.which is not None:
            return self.which
        count = self.rows.shape[1]
        few = np.zeros((1 << FIRST, count), dtype=bool)
        few[:, self.orders[0][0][:FIRST]] = subsets((1,) * FIRST)
        begin = np.tril(np.ones((count, count), dtype=bool))
        ordered = [begin[:, np.argsort(order[0])] for order in self.orders]
        return np.vstack((np.zeros((1, count), dtype=bool), np.eye(count, dtype=bool), *ordered, few))


def sets_on(state: State, places: Whole, lack: Real, all_of: int = ALL_OF, most: float = np.inf) -> Iterator[PlaceSets]:
    """Yield the sets of open rows on these places, alike ones together, the empty set first.

    lack: places × R, what is to come back there at least. all_of: pilots of a place of which all subsets are looked at.
    most: rows of a place that are looked at, the cheapest for a core.
    """
    table = state.problem.rows
    many = state.problem.piece_count[places].max(initial=0) > most
    pieces, whose = state.problem.pieces(places, state.cheapest if many else None)
    open_ = state.open(table.row[pieces])
    pieces, whose = pieces[open_], whose[open_]
    count = np.bincount(whose, minlength=len(places))
    if many:
        keep = np.arange(len(whose)) - (np.cumsum(count) - count)[whose] < most
        pieces, whose, count = pieces[keep], whose[keep], np.minimum(count, most)
        if state.problem.has_ways:
            pieces = pieces[np.lexsort((pieces, table.pilot[table.row[pieces]], whose))]
    begin = np.cumsum(count) - count
    again = np.zeros(len(pieces), dtype=bool)
    pattern = np.where(count <= all_of, np.clip((count + 2) // 3 * 3, 1, all_of), -1)
    if state.problem.has_ways:
        pilot = table.pilot[table.row[pieces]]
        again[1:] = (pilot[1:] == pilot[:-1]) & (whose[1:] == whose[:-1])
        within = np.arange(len(pieces)) - begin[whose]
        bits = np.bincount(whose[again], weights=2.0 ** np.minimum(within[again], 44), minlength=len(places))
        first = np.flatnonzero(~again)
        choices = np.log2(np.diff(np.append(first, len(again))) + 1.0)
        few = (np.bincount(whose[first], choices, len(places)) <= all_of + 1 + 1e-9) & (count <= 44)
        pattern = np.where(bits > 0, np.where(few, bits * 64 + count, -1), pattern).astype(np.int64)
    for value in np.unique(pattern).tolist():
        at = np.flatnonzero(pattern == value)
        ways = (1,) * value if value < 64 else ()
        if value >= 64:
            new = np.flatnonzero(~again[begin[at[0]] : begin[at[0]] + count[at[0]]])
            ways = tuple(np.diff(np.append(new, count[at[0]])).tolist())
        if value < 0:
            yield from _likely(state, at, pieces, begin, count, lack)
        else:
            yield from _products(state, at, pieces, begin, count, subsets(ways))


@lru_cache(maxsize=4096)
def subsets(ways: tuple[int, ...]) -> Mask:
    """Return all choices of one row or none of each pilot, the empty one first; ways: rows of each pilot."""
    found = np.zeros((1, 0), dtype=bool)
    for rows in ways:
        options = np.vstack((np.zeros((1, rows), dtype=bool), np.eye(rows, dtype=bool)))
        found = np.hstack((np.tile(found, (rows + 1, 1)), np.repeat(options, len(found), axis=0)))
    return found


def _blocks(
    state: State, at: Whole, pieces: Whole, begin: Whole, count: Whole, width: int, sets: int
) -> Iterator[tuple[Whole, Whole, Real, Real]]:
    """Yield positions of q places, their rows (q × width), what these give (R × q × width) and their prices."""
    table, within = state.problem.rows, np.arange(width)
    pieces = pieces if len(pieces) else np.zeros(1, dtype=np.int64)
    step = max(1, _BLOCK // (sets * table.gives.shape[1]))
    for number in range(0, len(at), step):
        some = at[number : number + step]
        there = within < count[some][:, None]
        here = pieces[np.where(there, begin[some][:, None] + within, 0)]
        gives, price = state.more(here)
        yield some, table.row[here], np.moveaxis(gives * there[..., None], 2, 0), np.where(there, price, _DEAR)


def _products(state: State, at: Whole, pieces: Whole, begin: Whole, count: Whole, which: Mask) -> Iterator[PlaceSets]:
    factors = which.T.astype(float)
    for some, rows, gives, price in _blocks(state, at, pieces, begin, count, which.shape[1], len(which)):
        total = price @ factors
        yield PlaceSets(some, rows, gives @ factors, np.where(total >= _DEAR, np.inf, total), which)


def _likely(state: State, at: Whole, pieces: Whole, begin: Whole, count: Whole, lack: Real) -> Iterator[PlaceSets]:
    """Yield each row alone, the beginnings of two orders, and the subsets of the first rows of the first order."""
    table = state.problem.rows
    width, factors = max(FIRST, int(count[at].max())), subsets((1,) * FIRST).T.astype(float)
    for some, rows, gives, price in _blocks(state, at, pieces, begin, count, width, 3 * width + 64):
        lacking = lack[some].T[:, :, None]
        shares = (np.minimum(gives, lacking) / np.maximum(lacking, 1e-9)).sum(axis=0)
        orders, sums, prices = [], [np.zeros((*gives.shape[:2], 1)), gives], [np.zeros((len(some), 1)), price]
        for value in (table.spends[rows, 0], shares):
            each = _once(state, rows, np.minimum(price / np.maximum(value, 1e-9), _DEAR), price)
            order = np.argsort(each / np.maximum(value, 1e-9), axis=1, kind="stable")
            orders.append(order)
            prices.append(np.cumsum(np.take_along_axis(each, order, axis=1), axis=1))
            sums.append(np.cumsum(np.take_along_axis(gives, order[None], axis=2), axis=2))
        first = orders[0][:, :FIRST]
        alone = _once(state, rows, price, price)
        prices.append(np.take_along_axis(alone, first, axis=1) @ factors)
        sums.append(np.take_along_axis(gives, first[None], axis=2) @ factors)
        total = np.concatenate(prices, axis=1)
        total[total >= _DEAR] = np.inf
        yield PlaceSets(some, rows, np.concatenate(sums, axis=2), total, None, tuple(orders))


def _once(state: State, rows: Whole, value: Real, price: Real) -> Real:
    """Return the prices (q × M), out of reach for all rows of a pilot of a place but that of the least value."""
    if not state.problem.has_ways:
        return price
    pilot = state.problem.rows.pilot[rows]
    order = np.lexsort((value, pilot), axis=1)
    ordered = np.take_along_axis(pilot, order, axis=1)
    again = np.zeros(pilot.shape, dtype=bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    found = np.where(again, _DEAR, np.take_along_axis(price, order, axis=1))
    back = np.empty_like(price)
    np.put_along_axis(back, order, found, axis=1)
    return back

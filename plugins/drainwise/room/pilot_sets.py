"""All sets of one user's pilots on each place, with what each would give back and cost: the cheapest come first.

Of pilots of equal size on one place the cheapest go first, so a set is a number of each size. Where these are too many
(`MOST_SETS`), there is for each total of cores the cheapest set and the one with the most of everything else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from drainwise.room.facts import Mask, Real, Whole
from drainwise.room.user_pilots import UserPilots

MOST_SETS = 1024
_MOST_CODES = 2.0**60


@dataclass(frozen=True, eq=False)
class PilotSets:
    """Q sets on L places, sorted by place, cores, cost.

    places: L, ascending. first: L, where the sets of a place begin. of: Q, which of the L places. cores, cost: Q, sums
    over the pilots. holds: R × Q.
    """

    places: Whole
    first: Whole
    of: Whole
    cores: Real
    cost: Real
    holds: Real
    _chains: _Chains
    _code: Whole
    _listed: tuple[Whole, ...]

    def __len__(self) -> int:
        return len(self.of)

    def rows(self, at: int) -> list[int]:
        """Return the rows of the pilots in a set, ascending."""
        code = int(self._code[at])
        found = self._listed[-1 - code] if code < 0 else self._chains.rows_of(int(self.of[at]), code)
        return sorted(found.tolist())


def pilot_sets(
    pilots: UserPilots, cost: Real, places: Mask, most: Whole | None = None, totals: Collection[int] | None = None
) -> PilotSets:
    """Return the sets on those of the P `places` that are marked, of pilots that cost so much (n, whatever unit).

    A marked place without a pilot has the empty set. most: P, of so many pilots at most; without it of any number.
    totals: with one of these numbers of cores; without it with any.
    """
    marked = np.flatnonzero(places)
    rows, at, chains = _chains(pilots, cost, places)
    few = np.full(len(marked), len(pilots)) if most is None else most[marked]
    heavy = chains.sets > np.where(few < len(pilots), _MOST_CODES, MOST_SETS)
    listed: list[Whole] = []
    each = np.vstack((pilots.cores, cost, pilots.holds))
    of, code, amounts = chains.all_sets(each, heavy, few)
    found = [(of, code, amounts)]
    for place in np.flatnonzero(heavy).tolist():
        begin, end = np.searchsorted(at, (place, place + 1)).tolist()
        members = _listed_sets(pilots, cost, rows[begin:end])
        codes = -1 - len(listed) - np.arange(len(members))
        found.append((np.full(len(members), place), codes, each[:, rows[begin:end]] @ members.T))
        listed += [rows[begin:end][one] for one in members]
    if listed:
        of, code = (np.concatenate([one[row] for one in found]) for row in (0, 1))
        amounts = np.concatenate([one[2] for one in found], axis=1)
    if totals is not None:
        kept = np.flatnonzero(np.isin(amounts[0], list(totals)))
        of, code, amounts = of[kept], code[kept], amounts[:, kept]
    order = np.lexsort((amounts[1], of * (pilots.cores.sum() + 1) + amounts[0]))
    of, amounts = of[order], amounts[:, order]
    first = np.searchsorted(of, np.arange(len(marked)))
    return PilotSets(marked, first, of, amounts[0], amounts[1], amounts[2:], chains, code[order], tuple(listed))


def number_of_sets(pilots: UserPilots, places: Mask) -> int:
    """Return about how many sets there are on the marked places."""
    return int(np.minimum(_chains(pilots, np.zeros(len(pilots)), places)[2].sets, MOST_SETS).sum())


@dataclass(frozen=True, eq=False)
class _Chains:
    """Pilots in chains, one for each size on a place: of a chain the first few go. A set's code has a digit for each.

    rows: of the pilots, chain after chain. start, radix: where a chain begins, and one more than its length. chain:
    L, the first of a place; chains: L, their number; sets: L, the product of their radices.
    """

    rows: Whole
    start: Whole
    radix: Whole
    chain: Whole
    chains: Whole
    sets: Real

    def all_sets(self, amounts: Real, without: Mask, most: Whole) -> tuple[Whole, Whole, Real]:
        """Return place and code of each set of at most so many pilots (L), and its sums of `amounts` (any × n).

        Of the places `without` (L) none.
        """
        running = np.zeros((len(amounts), len(self.rows) + 1))
        np.cumsum(amounts[:, self.rows], axis=1, out=running[:, 1:])
        of = np.flatnonzero(~without)
        code, sums = np.zeros(len(of), dtype=np.int64), np.zeros((len(amounts), len(of)))
        left = most[of]
        done: list[tuple[Whole, Whole, Real]] = []
        number, scale = 0, np.ones(len(self.chain), dtype=np.int64)
        while len(of):
            more = self.chains[of] > number
            if not more.all():
                done.append((of[~more], code[~more], sums[:, ~more]))
                of, code, sums, left = of[more], code[more], sums[:, more], left[more]
            chain = self.chain[of] + number
            radix = np.minimum(self.radix[chain], left + 1)
            digit = np.arange(int(radix.sum())) - np.repeat(np.cumsum(radix) - radix, radix)
            start = np.repeat(self.start[chain], radix)
            code = np.repeat(code, radix) + digit * np.repeat(scale[of], radix)
            sums = np.repeat(sums, radix, axis=1) + (running[:, start + digit] - running[:, start])
            of, left = np.repeat(of, radix), np.repeat(left, radix) - digit
            here = np.flatnonzero(self.chains > number)
            scale[here] *= self.radix[self.chain[here] + number]
            number += 1
        if not done:
            return of, code, sums
        return (
            np.concatenate([one[0] for one in done]),
            np.concatenate([one[1] for one in done]),
            np.concatenate([one[2] for one in done], axis=1),
        )

    def rows_of(self, place: int, code: int) -> Whole:
        """Return the rows of the pilots in one set."""
        found = []
        for chain in range(int(self.chain[place]), int(self.chain[place] + self.chains[place])):
            code, digit = divmod(code, int(self.radix[chain]))
            found.append(self.rows[self.start[chain] : self.start[chain] + digit])
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _chains(pilots: UserPilots, cost: Real, places: Mask) -> tuple[Whole, Whole, _Chains]:
    """Return the pilots on the marked places, sorted by place, size and cost, which of these places, and the chains."""
    rows = np.flatnonzero(places[pilots.at])
    number = np.cumsum(places) - 1
    key = number[pilots.at[rows]] * (int(pilots.size.max(initial=0)) + 1) + pilots.size[rows]
    order = np.lexsort((cost[rows], key))
    rows, key = rows[order], key[order]
    at = number[pilots.at[rows]]
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    radix = np.diff(start, append=len(rows)) + 1
    of = at[start]
    chains = np.bincount(of, minlength=int(places.sum()))
    digits = np.bincount(of, weights=np.log2(radix), minlength=len(chains))
    sets: Real = np.rint(np.exp2(np.minimum(digits, 60)))
    return rows, at, _Chains(rows, start, radix, np.cumsum(chains) - chains, chains, sets)


def _listed_sets(pilots: UserPilots, cost: Real, rows: Whole) -> Mask:
    """Return for each total of cores the cheapest set of these m pilots, and the one with the most of all else.

    A row for each set (sets × m), which tells who is in it.
    """
    cores = pilots.cores[rows].astype(np.int64)
    held = pilots.holds[1:, rows]
    share = (held / np.maximum(held.sum(axis=1, keepdims=True), 1)).sum(axis=0)
    found = []
    for keys in (cost[rows] + 0j, -share + 1j * cost[rows]):
        best = np.full(int(cores.sum()) + 1, complex(np.inf, -np.inf))
        best[0] = 0
        goes = np.zeros((len(rows), len(best)), dtype=bool)
        for number, (size, key) in enumerate(zip(cores.tolist(), keys)):
            offer = best[:-size] + key
            better = offer < best[size:]
            goes[number, size:] = better
            np.copyto(best[size:], offer, where=better)
        totals = np.flatnonzero(np.isfinite(best.real))
        member = np.zeros((len(totals), len(rows)), dtype=bool)
        for number in reversed(range(len(rows))):
            member[:, number] = goes[number, totals]
            totals = totals - np.where(member[:, number], cores[number], 0)
        found.append(member)
    return np.unique(np.concatenate(found), axis=0)

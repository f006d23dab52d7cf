"""Choose the places where jobs of one kind find room at the least value: exactly, in arrays of any length.

Each place offers numbers of jobs at a value each (a multiple-choice knapsack, as a cover). Taking what costs least per
job until there is room for all would be best if the last place could be divided: the linear relaxation, which the lower
convex hull of each place's offers solves. Treating a place otherwise costs its reduced value, which is never negative;
only places whose reduced value is less than what the best choice so far pays for its surplus can better it, and these
are searched by dynamic programming over the surplus of jobs, the least reduced value first.

A value is a pair, cores first and then cost, held as a complex number: numpy compares the first parts first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drainwise.room.facts import Mask, Whole

Pair = NDArray[np.complex128]

UNREACHED = complex(math.inf, -math.inf)  # stays so whatever is added, and is never less than itself
_MOST_PLACES = 400  # that are searched
_WIDEST = 512  # surplus or lack of jobs while the search goes on
_BESIDE = 32  # places beyond the best ones that are looked at first


@dataclass(frozen=True, eq=False)
class Offers:
    """What places offer, sorted by place and jobs: `jobs` more can start there at the value. Both rise at a place."""

    place: Whole
    jobs: Whole
    value: Pair

    def __len__(self) -> int:
        return len(self.place)

    def part(self, which: Mask | Whole) -> Offers:
        """Return some of them."""
        return Offers(self.place[which], self.jobs[which], self.value[which])


def cheapest_places(offers: Offers, wanted: int) -> Whole | None:
    """Return which offers to take, at most one of a place, for `wanted` jobs or more at the least total value.

    None where there is no room for so many. Of equal ones the first places are taken.
    """
    if wanted <= 0:
        return np.empty(0, dtype=np.int64)
    last = np.append(offers.place[1:] != offers.place[:-1], True)
    if not len(offers) or int(offers.jobs[last].sum()) < wanted:
        return None
    corners = _corners(offers, _promising(offers, wanted))
    before_jobs, before_value = _before(offers, corners)
    steps = offers.jobs[corners] - before_jobs
    adds = offers.value[corners] - before_value
    order = np.argsort(adds / steps, kind="stable")
    stop = int(np.searchsorted(np.cumsum(steps[order]), wanted))
    taken, last_step = corners[order[:stop]], int(order[stop])
    missing = wanted - int(steps[order[:stop]].sum())
    base = _last_of_each_place(offers, taken)
    if int(steps[last_step]) == missing:
        return _last_of_each_place(offers, np.append(taken, corners[last_step]))
    search = _SurplusSearch(offers, base, int(steps[last_step]), complex(adds[last_step]), missing)
    better = search.run()
    return _last_of_each_place(offers, np.append(taken, corners[last_step])) if better is None else better


def _promising(offers: Offers, wanted: int) -> Whole:
    """Return the offers of the places that the relaxation can take: those with the least value of a job."""
    each = offers.value / offers.jobs
    start = np.flatnonzero(np.append(True, offers.place[1:] != offers.place[:-1]))
    if len(start) <= wanted + _BESIDE:
        return np.arange(len(offers))
    number = np.diff(start, append=len(offers))
    least = np.minimum.reduceat(each, start)
    jobs = np.maximum.reduceat(np.where(each == np.repeat(least, number), offers.jobs, 0), start)
    order = np.argsort(least, kind="stable")
    stop = int(np.searchsorted(np.cumsum(jobs[order]), wanted)) + 1 + _BESIDE
    kept = np.zeros(len(start), dtype=bool)
    kept[order[:stop]] = True
    return np.flatnonzero(np.repeat(kept, number))


def _before(offers: Offers, kept: Whole) -> tuple[Whole, Pair]:
    """Return jobs and value of the offer of the same place before each; 0 for a place's first."""
    same = np.append(False, offers.place[kept[1:]] == offers.place[kept[:-1]])
    return np.where(same, np.roll(offers.jobs[kept], 1), 0), np.where(same, np.roll(offers.value[kept], 1), 0)


def _corners(offers: Offers, kept: Whole) -> Whole:
    """Return the corners of each place's lower convex hull."""
    while True:
        before_jobs, before_value = _before(offers, kept)
        slope = (offers.value[kept] - before_value) / (offers.jobs[kept] - before_jobs)
        after = np.append(slope[1:], UNREACHED)
        after[np.append(offers.place[kept[1:]] != offers.place[kept[:-1]], True)] = np.inf
        corner = slope < after
        if corner.all():
            return kept
        kept = kept[corner]


def _last_of_each_place(offers: Offers, taken: Whole) -> Whole:
    taken = np.sort(taken)
    return taken[np.append(offers.place[taken[1:]] != offers.place[taken[:-1]], True)] if len(taken) else taken


class _SurplusSearch:
    """The least reduced value for each surplus of jobs, starting from the relaxation without its last step."""

    def __init__(self, offers: Offers, base: Whole, step: int, adds: complex, missing: int) -> None:
        self._offers, self._base = offers, base
        self._adds, self._low = adds, -missing
        self._best = np.zeros(1, dtype=np.complex128)
        self._pays = adds * (step - missing)  # times step, as all here, so that cores stay whole numbers
        taken = np.full(int(offers.place[-1]) + 1, -1)
        taken[offers.place[base]] = base
        self._of_place = taken
        jobs = np.append(offers.jobs, 0)[taken]
        value = np.append(offers.value, 0)[taken]
        more = offers.jobs - jobs[offers.place]
        self._pay = (offers.value - value[offers.place]) * step - adds * more
        self._more = more
        self._none_pay = adds * offers.jobs[base] - offers.value[base] * step  # not to take what the relaxation takes
        self._path: list[tuple[int, Whole]] = []

    def run(self) -> Whole | None:
        """Return the best choice of offers; None where the last step taken whole is the best."""
        offers, pay = self._offers, self._pay
        use = (pay < self._pays) & (self._more != 0)
        none = self._none_pay < self._pays
        place = np.concatenate((offers.place[use], offers.place[self._base[none]]))
        which = np.concatenate((np.flatnonzero(use), np.full(int(none.sum()), -1)))
        more = np.concatenate((self._more[use], -offers.jobs[self._base[none]]))
        pays = np.concatenate((pay[use], self._none_pay[none]))
        order = np.lexsort((which, pays.imag, pays.real, place))
        place, which, more, pays = place[order], which[order], more[order], pays[order]
        start = np.flatnonzero(np.append(True, place[1:] != place[:-1]))[: len(place)]
        ends = np.append(start[1:], len(place))
        least = pays[start]
        found: tuple[int, int] | None = None
        by_least = np.argsort(least, kind="stable")[:_MOST_PLACES].tolist()
        for number, one in enumerate(by_least):
            if not least[one] < self._pays:
                break
            self._extend(more, pays, range(int(start[one]), int(ends[one])))
            at = max(0, -self._low)
            if at < len(self._best):
                surplus = np.arange(at, len(self._best)) + self._low
                total = self._best[at:] + self._adds * surplus
                winner = int(np.lexsort((total.imag, total.real))[0])
                if total[winner] < self._pays:
                    self._pays, found = complex(total[winner]), (number, int(surplus[winner]))
            if self._pays == 0:
                break
        return None if found is None else self._chosen(which, more, place, *found)

    def _extend(self, more: Whole, pays: Pair, among: range) -> None:
        moves = more[among.start : among.stop]
        low = max(self._low + min(0, int(moves.min())), -_WIDEST)
        high = min(self._low + len(self._best) - 1 + max(0, int(moves.max())), _WIDEST)
        best = np.full(high - low + 1, UNREACHED)
        choice = np.full(len(best), -1)
        for one, move, pay in zip((-1, *among), (0, *moves.tolist()), (0, *pays[among.start : among.stop])):
            begin, end = self._low + move, self._low + move + len(self._best)
            cut, over = max(0, low - begin), max(0, end - 1 - high)
            offer = self._best[cut : len(self._best) - over] + pay
            into = best[begin + cut - low : end - over - low]
            better = offer < into
            np.copyto(into, offer, where=better)
            choice[begin + cut - low : end - over - low][better] = one
        self._path.append((low, choice))
        self._low, self._best = low, best

    def _chosen(self, which: Whole, more: Whole, place: Whole, number: int, surplus: int) -> Whole:
        taken = self._of_place.copy()
        for low, choice in reversed(self._path[: number + 1]):
            one = int(choice[surplus - low])
            if one >= 0:
                taken[place[one]] = which[one]
                surplus -= int(more[one])
        return np.sort(taken[taken >= 0])

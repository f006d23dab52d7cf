"""Pick the places of a large pool that are worth a closer look, by quick estimates of what room costs there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from drainwise.room.facts import Mask, Real, RoomFacts, Whole
from drainwise.room.pilot_sets import number_of_sets
from drainwise.room.user_pilots import UserPilots

_MOST_SETS = 150_000
_SPREAD = 7919  # equal places are taken from all over the pool, elsewhere for each kind


class QuickEstimate:
    """What one pilot alone, or the first few of a place, give back there beside the room that is there."""

    def __init__(self, user: UserPilots, room: Real, order: Real) -> None:
        """Look at each place's pilots in the order of `order` (n), the least first; room: P × R."""
        rows = np.lexsort((order, user.at))
        at = user.at[rows]
        self._start = np.flatnonzero(np.append(True, at[1:] != at[:-1])[: len(at)])
        self.places = at[self._start]
        number = np.diff(self._start, append=len(at))
        self._at, self._rows, there = at, rows, room.T[:, at]
        self._single = there + user.holds[:, rows]
        self._first = there + _within(user.holds[:, rows], self._start, number)

    def least(self, facts: RoomFacts, kind: int, amounts: Real) -> Real:
        """Return for each of the places an upper bound of the `amounts` (n) lost for a job; infinite where it fits not.

        amounts: ≥ 0, as cores or cost.
        """
        given = amounts[self._rows]
        found = np.full(len(self.places), np.inf)
        if not len(given):
            return found
        number = np.diff(self._start, append=len(given))
        for room, lost in (
            (self._single, given),
            (self._first, _within(given[None, :], self._start, number)[0]),
        ):
            enough = facts.may[kind][self._at]
            for row in np.flatnonzero(facts.needs[kind]):
                enough &= room[row] >= facts.needs[kind, row]
            if facts.whole[kind]:
                enough &= room[0] >= facts.totals[self._at, 0]
            np.minimum(found, np.minimum.reduceat(np.where(enough, lost, np.inf), self._start), out=found)
        return found


def _within(amounts: Real, start: Whole, number: Whole) -> Real:
    """Return the running sums of amounts (any × n) within each place."""
    running = np.cumsum(amounts, axis=1)
    before: Real = running - np.repeat(running[:, start] - amounts[:, start], number, axis=1)
    return before


def useful_places(facts: RoomFacts, user: UserPilots, room: Real, kinds: Collection[int]) -> Mask:
    """Return which of the P places some of these kinds could use if all of the user's pilots there went.

    room: P × R. Also those where a job that needs several places finds room as it is.
    """
    useful = np.zeros(len(facts.places), dtype=bool)
    places, at = np.unique(user.at, return_inverse=True)
    held = room.T[:, places]
    for row, amounts in enumerate(user.holds):
        held[row] += np.bincount(at.reshape(-1), weights=amounts, minlength=len(places))
    every = np.arange(len(useful))
    for kind in kinds:
        useful[places] |= facts.fitting(kind, held, places) > 0
        if facts.several[kind] > 1:
            useful |= facts.fitting(kind, room.T, every) > 0
    return useful


def worth_a_look(
    facts: RoomFacts,
    user: UserPilots,
    room: Real,
    wanted: Mapping[int, int],
    order: Real,
    amounts: Real | None = None,
) -> Mask:
    """Return the P places to look at: all that are useful, or where these are too many those that look best.

    wanted: jobs of each kind. order: n, which of a place's pilots the quick look takes first.
    amounts: n, of which little should be lost; cores without it.
    """
    marked = useful_places(facts, user, room, wanted)
    if number_of_sets(user, marked) <= _MOST_SETS:
        return marked
    estimate = QuickEstimate(user, room, order)
    near = np.zeros(len(marked), dtype=bool)
    for kind, jobs in wanted.items():
        least = estimate.least(facts, kind, user.cores if amounts is None else amounts)
        count = 2 * jobs * int(facts.several[kind]) + 64
        elsewhere = (estimate.places * _SPREAD + kind * _SPREAD * 31) % len(near) / len(near)
        near[estimate.places[_lowest(least + elsewhere, count)]] = True
        if facts.several[kind] > 1:
            near[np.flatnonzero(facts.fitting(kind, room.T, np.arange(len(near))) > 0)[:count]] = True
    return marked & near


def _lowest(figures: Real, count: int) -> Whole:
    """Return the places of the `count` lowest finite figures, in no order."""
    found = np.flatnonzero(np.isfinite(figures))
    if len(found) <= count:
        return found
    return found[np.argpartition(figures[found], count)[:count]]

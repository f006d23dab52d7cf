"""Make room for several kinds at once, exactly: the most jobs in the order of the kinds, then the least value.

Dynamic programming over how many jobs of each kind have room, place after place. A place offers mixes of jobs, each at
the cheapest of its sets that makes room for them. Of the places that offer a mix only the cheapest can matter, as many
as there are jobs: were a dearer one in a best choice, then one of the cheaper ones would be unused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.pool.free_cores import whole_cores
from drainwise.room.facts import Mask, Real, RoomFacts, Whole
from drainwise.room.one_kind import UNREACHED, Pair
from drainwise.room.part import PlacePart, RoomPart, nothing
from drainwise.room.pilot_sets import PilotSets

MOST_MIXES = 300
_MOST_CHECKS = 3e7  # sets × mixes
_MOST_STEPS = 6e6  # states × offers
_MOST_ROUNDS = 32  # of different caps, where jobs need several places


@dataclass(frozen=True, eq=False)
class _Mixes:
    """M mixes of jobs (M × kinds), and for each place the set that makes room for it (L × M), -1 for none."""

    jobs: Whole
    sets: Whole


def all_kinds_at_once(
    facts: RoomFacts, sets: PilotSets, room: Real, wanted: Mapping[int, int], owed: Mapping[str, float], most: int
) -> RoomPart | None:
    """Return the best part of a user, None where that takes too long to find.

    room: P × R, that this user may use beside its pilots'. wanted: jobs of each kind at most, all ≥ 1. owed: cores that
    each account may get. most: cores that may be lost.
    """
    kinds = sorted(wanted)
    if not kinds or not len(sets.places):
        return nothing(len(facts.kinds))
    at_place = sets.places[sets.of]
    held = room.T[:, at_place] + sets.holds
    fit = {kind: facts.fitting(kind, held, at_place) for kind in kinds}
    possible = {kind: np.maximum.reduceat(fit[kind], sets.first) for kind in kinds}
    jobs = {kind: min(wanted[kind], int(possible[kind].sum()) // int(facts.several[kind])) for kind in kinds}
    kinds = [kind for kind in kinds if jobs[kind]]
    states = [jobs[kind] * int(facts.several[kind]) + 1 for kind in kinds]
    if not kinds:
        return nothing(len(facts.kinds))
    if float(np.prod(np.array(states, dtype=float))) > _MOST_STEPS:
        return None
    caps = [kind for kind in kinds if facts.several[kind] > 1]
    rounds = list(itertools.product(*(range(jobs[kind], -1, -1) for kind in caps)))
    if len(rounds) > _MOST_ROUNDS:
        return None
    mixes = _mixes(facts, sets, held, at_place, {kind: fit[kind] for kind in kinds}, jobs)
    if mixes is None:
        return None
    best: tuple[tuple[int, ...], complex, list[tuple[int, int]]] | None = None
    value = sets.cores + 1j * sets.cost
    for capped in rounds:
        limits = dict(jobs) | dict(zip(caps, capped))
        found = _best(facts, kinds, limits, caps, mixes, value, owed, most)
        if found is None:
            return None
        if best is None or (tuple(-one for one in found[0]), found[1].real, found[1].imag) < (
            tuple(-one for one in best[0]),
            best[1].real,
            best[1].imag,
        ):
            best = found
    return None if best is None else _part(facts, sets, kinds, mixes, best[0], best[2])


def _mixes(
    facts: RoomFacts, sets: PilotSets, held: Real, at_place: Whole, fit: Mapping[int, Real], jobs: Mapping[int, int]
) -> _Mixes | None:
    """Return the mixes that some place can have; None where they are too many."""
    kinds = list(fit)
    number = np.arange(len(sets))
    found: list[tuple[tuple[int, ...], Whole]] = []
    shared = facts.divisible[at_place]
    front = [(0,) * len(kinds)]
    while front:
        grown = sorted({(*mix[:row], mix[row] + 1, *mix[row + 1 :]) for mix in front for row in range(len(kinds))})
        front = []
        for mix in grown:
            if (len(found) + 1) * len(sets) > _MOST_CHECKS or len(found) >= MOST_MIXES:
                return None
            if any(count > jobs[kind] for count, kind in zip(mix, kinds)):
                continue
            mine = [(kind, count) for kind, count in zip(kinds, mix) if count]
            if len(mine) == 1:
                enough = fit[mine[0][0]] >= mine[0][1]
            elif any(facts.whole[kind] for kind, _ in mine):
                continue
            else:
                need = sum((count * facts.needs[kind] for kind, count in mine), np.zeros(len(facts.resources)))
                enough = shared & (held >= need[:, None]).all(axis=0)
                for kind, _ in mine:
                    enough &= fit[kind] >= 1
            first = np.minimum.reduceat(np.where(enough, number, len(sets)), sets.first)
            if (first < len(sets)).any():
                front.append(mix)
                found.append((mix, np.where(first < len(sets), first, -1)))
    return _Mixes(
        np.array([mix for mix, _ in found], dtype=np.int64).reshape(-1, len(kinds)),
        np.array([first for _, first in found], dtype=np.int64).reshape(-1, len(sets.places)).T,
    )


def _offers(mixes: _Mixes, value: Pair, fits: Mask, places_used: int) -> Iterator[tuple[int, list[int]]]:
    """Yield each place that can matter, with the mixes that it may have."""
    offered = np.zeros(mixes.sets.shape, dtype=bool)
    for mix in np.flatnonzero(fits).tolist():
        places = np.flatnonzero(mixes.sets[:, mix] >= 0)
        order = np.argsort(value[mixes.sets[places, mix]], kind="stable")
        offered[places[order[:places_used]], mix] = True
    for place in np.flatnonzero(offered.any(axis=1)).tolist():
        yield place, np.flatnonzero(offered[place]).tolist()


def _best(
    facts: RoomFacts,
    kinds: Sequence[int],
    limits: Mapping[int, int],
    caps: Sequence[int],
    mixes: _Mixes,
    value: Pair,
    owed: Mapping[str, float],
    most: int,
) -> tuple[tuple[int, ...], complex, list[tuple[int, int]]] | None:
    """Return the jobs of each kind, the value, and the mix of each place; None where it takes too long.

    Of kinds that need several places exactly so many jobs have room as their limit, or the answer has none of them.
    """
    several = [int(facts.several[kind]) for kind in kinds]
    shape = tuple(limits[kind] * number + 1 for kind, number in zip(kinds, several))
    most_of = np.array([limits[kind] for kind in kinds])
    fits: Mask = np.all(mixes.jobs <= most_of, axis=1)
    offers = list(_offers(mixes, value, fits, sum(shape) - len(shape)))
    if float(np.prod(np.array(shape, dtype=float))) * sum(len(some) for _, some in offers) > _MOST_STEPS:
        return None
    best = np.full(shape, UNREACHED)
    best[(0,) * len(shape)] = 0
    path = []
    for place, some in offers:
        after, choice = best.copy(), np.full(shape, -1, dtype=np.int16)
        for mix in some:
            count = mixes.jobs[mix].tolist()
            into = tuple(slice(number, None) for number in count)
            out = tuple(slice(0, size - number) for size, number in zip(shape, count))
            offer = best[out] + value[mixes.sets[place, mix]]
            better = offer < after[into]
            np.copyto(after[into], offer, where=better)
            choice[into][better] = mix
        best = after
        path.append((place, choice))
    state = _first_state(facts, kinds, limits, caps, best, owed, most)
    total, chosen = complex(best[state]), []
    jobs = tuple(number // places for number, places in zip(state, several))
    for place, choice in reversed(path):
        mix = int(choice[state])
        if mix >= 0:
            chosen.append((place, mix))
            state = tuple(number - count for number, count in zip(state, mixes.jobs[mix].tolist()))
    return jobs, total, chosen[::-1]


def _first_state(
    facts: RoomFacts,
    kinds: Sequence[int],
    limits: Mapping[int, int],
    caps: Sequence[int],
    best: Pair,
    owed: Mapping[str, float],
    most: int,
) -> tuple[int, ...]:
    """Return the most jobs, kind by kind, that the limits allow; nothing where jobs on several places fall short."""
    allowed = best.real <= most
    spent: dict[str, Real] = {}
    for row, kind in enumerate(kinds):
        account = facts.kinds[kind].account
        along = [1] * len(kinds)
        along[row] = -1
        jobs = (np.arange(best.shape[row]) // int(facts.several[kind])).reshape(along)
        spent[account] = spent.get(account, np.zeros(1)) + jobs * float(facts.cores[kind])
        if kind in caps:
            allowed &= np.arange(best.shape[row]).reshape(along) == limits[kind] * int(facts.several[kind])
    for account, cores in spent.items():
        allowed &= cores <= whole_cores(owed.get(account, 0.0))
    states = np.flatnonzero(allowed)
    last = int(states[-1]) if len(states) else 0
    return tuple(int(number) for number in np.unravel_index(last, best.shape))


def _part(
    facts: RoomFacts,
    sets: PilotSets,
    kinds: Sequence[int],
    mixes: _Mixes,
    jobs: Sequence[int],
    chosen: Sequence[tuple[int, int]],
) -> RoomPart:
    total = np.zeros(len(facts.kinds), dtype=np.int64)
    total[list(kinds)] = jobs
    places, taken = [], [int(mixes.sets[place, mix]) for place, mix in chosen]
    for (place, mix), one in zip(chosen, taken):
        here = tuple((kind, count) for kind, count in zip(kinds, mixes.jobs[mix].tolist()) if count)
        places.append(PlacePart(int(sets.places[place]), here, tuple(sets.rows(one))))
    cores, cost = int(sets.cores[taken].sum()), float(sets.cost[taken].sum())
    return RoomPart(total, cores, cost, tuple(places))

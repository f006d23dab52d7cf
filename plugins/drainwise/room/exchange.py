"""Exchange places: the same mixes of jobs with the same cores each, on places where ending the pilots costs less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.room.facts import Mask, Real, RoomFacts, Whole
from drainwise.room.part import PlacePart, RoomPart
from drainwise.room.pilot_sets import PilotSets, pilot_sets
from drainwise.room.user_pilots import UserPilots

_ROUNDS = 6
_MOST_SETS = 600_000

Jobs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class _Mix:
    """`jobs` of some kinds on each of the places `now`; all places where they could be, the set there, and its cost."""

    now: Whole
    jobs: Jobs
    places: Whole
    sets: Whole
    cost: Real


def exchanged(facts: RoomFacts, user: UserPilots, part: RoomPart, room: Real) -> RoomPart:
    """Return a part with the same jobs and the same cores that costs as little as exchanging places can make it.

    room: P × R, that this user may use beside its pilots'. Mix after mix is put on the cheapest places that no other
    mix has, until nothing changes any more.
    """
    same: dict[tuple[Jobs, int], list[int]] = defaultdict(list)
    for one in part.places:
        same[one.jobs, int(user.cores[list(one.rows)].sum())].append(one.place)
    marked = _useful(facts, user, room, [jobs for jobs, _ in same])
    most = _few_pilots(user, marked)
    now = [one.place for one in part.places]
    marked[now], most[now] = True, len(user)
    sets = pilot_sets(user, user.cost, marked, most, [cores for _, cores in same])
    held = room.T[:, sets.places[sets.of]] + sets.holds
    by_cores = np.argsort(sets.cores, kind="stable")
    bounds = np.searchsorted(sets.cores[by_cores], np.array([(cores, cores + 1) for _, cores in same]))
    mixes = [
        _mix(facts, sets, held, jobs, np.array(places), by_cores[begin:end])
        for ((jobs, _), places), (begin, end) in zip(same.items(), bounds.tolist())
    ]
    taken = np.zeros(len(facts.places), dtype=bool)
    taken[[one.place for one in part.places]] = True
    movable = set[int]().union(*(mix.now.tolist() for mix in mixes))
    chosen = [np.searchsorted(mix.places, mix.now) for mix in mixes]
    for _ in range(_ROUNDS):
        changed = False
        for number, mix in enumerate(mixes):
            taken[mix.places[chosen[number]]] = False
            open_to = np.flatnonzero(~taken[mix.places])
            best = open_to[np.argsort(mix.cost[open_to], kind="stable")[: len(mix.now)]]
            if mix.cost[best].sum() < mix.cost[chosen[number]].sum():
                chosen[number], changed = best, True
            taken[mix.places[chosen[number]]] = True
        if not changed:
            break
    found = [
        PlacePart(int(mix.places[one]), mix.jobs, tuple(sets.rows(int(mix.sets[one]))))
        for mix, some in zip(mixes, chosen)
        for one in some.tolist()
    ]
    found += [one for one in part.places if one.place not in movable]
    cost = float(user.cost[sorted(row for one in found for row in one.rows)].sum())
    return RoomPart(part.jobs, part.cores, cost, tuple(sorted(found, key=lambda one: one.place)))


def _useful(facts: RoomFacts, user: UserPilots, room: Real, mixes: Sequence[Jobs]) -> Mask:
    """Return the P places where some of the kinds may run and the user has pilots."""
    marked = np.zeros(len(facts.places), dtype=bool)
    kinds = sorted({kind for jobs in mixes for kind, _ in jobs})
    marked[user.at] = facts.may[kinds][:, user.at].any(axis=0) & (room[user.at, 0] >= 0)
    return marked


def _few_pilots(user: UserPilots, marked: Mask) -> Whole:
    """Return how many pilots a set may have on each place (P): so many that there are not too many sets."""
    number = np.bincount(user.at, minlength=len(marked))[marked].astype(np.float64)
    sets, some, most = np.ones(len(number)), np.ones(len(number)), 0
    while most < number.max(initial=0):
        some = some * np.maximum(number - most, 0) / (most + 1)
        if most and (sets + some).sum() > _MOST_SETS:
            break
        sets, most = sets + some, most + 1
    return np.full(len(marked), max(1, most))


def _mix(facts: RoomFacts, sets: PilotSets, held: Real, jobs: Jobs, now: Whole, which: Whole) -> _Mix:
    """Return where a mix can be, with one of `which` sets: on each place the cheapest."""
    at = sets.places[sets.of[which]]
    needs = sum((count * facts.needs[kind] for kind, count in jobs), np.zeros(len(facts.resources)))
    fits: Mask = np.all(held[:, which] >= needs[:, None], axis=0)
    for kind, count in jobs:
        fits &= facts.fitting(kind, held[:, which], at) >= count
    if len(jobs) > 1:
        fits &= facts.divisible[at]
    which, at = which[fits], at[fits]
    # Of a place's sets with the same cores the cheapest comes first.
    first = np.append(True, at[1:] != at[:-1])[: len(at)]
    return _Mix(np.intersect1d(now, at), jobs, at[first], which[first], sets.cost[which[first]])

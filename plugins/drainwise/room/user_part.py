"""Find one user's part: first by facts alone, then, for the same jobs and the same cores, at the least cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from drainwise.room.all_kinds import all_kinds_at_once
from drainwise.room.demand import OpenDemand
from drainwise.room.exchange import exchanged
from drainwise.room.facts import Real, RoomFacts
from drainwise.room.kind_by_kind import KindByKind
from drainwise.room.near_places import useful_places, worth_a_look
from drainwise.room.part import RoomPart, nothing
from drainwise.room.pilot_sets import number_of_sets, pilot_sets
from drainwise.room.user_pilots import UserPilots

_MOST_SETS_AT_ONCE = 100_000  # for all kinds at once


def part_by_facts(
    facts: RoomFacts, user: UserPilots, room: Real, demand: OpenDemand, most: int, looks: float
) -> RoomPart:
    """Return the part with the most jobs in the order of the kinds, then the fewest cores, by facts alone.

    room: P × R, that this user may use beside its pilots'. most: cores that it may lose. looks: at so many sets at
    most, about, to better what was found kind by kind. Of equal ones that with the shortest run times.
    """
    wanted = {kind: jobs for kind in range(len(facts.kinds)) if (jobs := demand.jobs_of(kind)) > 0}
    marked = worth_a_look(facts, user, room, wanted, user.run_time)
    if not wanted or not marked.any():
        return nothing(len(facts.kinds))
    sets = pilot_sets(user, user.cores * user.run_time, marked)
    if len(sets) <= _MOST_SETS_AT_ONCE:
        found = all_kinds_at_once(facts, sets, room, wanted, demand.owed, most)
        if found is not None:
            return found
    state, lost = KindByKind(facts, sets, room), 0
    for later in (facts.later, np.zeros_like(facts.later)):  # what was bettered may leave room for more
        for kind in wanted:
            if jobs := demand.jobs_of(kind):
                made, cores = state.serve(kind, jobs, most - lost, later[kind])
                lost += cores
                demand = demand.without(np.where(np.arange(len(facts.kinds)) == kind, made, 0))
        state.improve(looks, same_cores=False)
        lost = state.cores
    return state.part()


def part_by_claims(
    facts: RoomFacts, user: UserPilots, part: RoomPart, room: Real, fixed: Collection[int], looks: float
) -> RoomPart:
    """Return the part that makes room for the same jobs with the same cores as `part`, at the least cost found.

    room: P × R, that this user may use beside its pilots'; fixed: places where others build on what the part gives
    back: there no more is exchanged than pilots of equal size. looks: as in `part_by_facts`.
    """
    kept = alike_at_least_cost(user, part)
    here = [one for one in kept.places if one.place in fixed]
    jobs, apart = part.jobs.copy(), False
    for one in here:
        for kind, number in one.jobs:
            apart |= bool(facts.several[kind] > 1)
            jobs[kind] -= number
    rows = [row for one in here for row in one.rows]
    cores = part.cores - int(user.cores[rows].sum())
    away = room.copy()
    away[list(fixed)] = 0
    open_to = ~np.isin(user.at, list(fixed))
    able, row_of = user.part(open_to), np.flatnonzero(open_to)
    local = np.cumsum(open_to) - 1
    moving = [replace(one, rows=tuple(local[list(one.rows)].tolist())) for one in kept.places if one.place not in fixed]
    start = RoomPart(jobs, cores, kept.cost - float(user.cost[rows].sum()), tuple(moving))
    found = exchanged(facts, able, start, away) if apart else _cheapest(facts, able, start, away, looks)
    moved = [replace(one, rows=tuple(row_of[list(one.rows)].tolist())) for one in found.places]
    cost = found.cost + float(user.cost[rows].sum())
    if cost >= kept.cost:
        return kept
    return RoomPart(part.jobs, part.cores, cost, tuple(sorted([*here, *moved], key=lambda one: one.place)))


def _cheapest(facts: RoomFacts, user: UserPilots, part: RoomPart, room: Real, looks: float) -> RoomPart:
    """Return the cheapest part found with the same jobs and cores: exactly where that is possible in time."""
    wanted = {kind: int(part.jobs[kind]) for kind in np.flatnonzero(part.jobs).tolist()}
    marked = useful_places(facts, user, room, wanted)
    if not wanted:
        return part
    if number_of_sets(user, marked) <= _MOST_SETS_AT_ONCE:
        sets, endless = pilot_sets(user, user.cost, marked), {one.account: 1e15 for one in facts.kinds}
        found = all_kinds_at_once(facts, sets, room, wanted, endless, part.cores)
        if found is not None and found.cores == part.cores and (found.jobs == part.jobs).all():
            return found
    part = exchanged(facts, user, part, room)
    if len(user) * len(wanted) > looks:
        return part
    marked = worth_a_look(facts, user, room, wanted, user.cost / user.cores, user.cost)
    marked[[one.place for one in part.places]] = True
    if number_of_sets(user, marked) * len(wanted) > looks:
        return part
    state = KindByKind(facts, pilot_sets(user, user.cost, marked), room)
    if state.start(part) != part.cores:
        return part
    state.improve(looks, same_cores=True)
    return min(part, state.part(), key=lambda one: one.cost)


def alike_at_least_cost(user: UserPilots, part: RoomPart) -> RoomPart:
    """Return the part with the cheapest of the pilots of equal size on each place."""
    order = np.lexsort((user.cost, user.size, user.at))
    at, size = user.at[order], user.size[order]
    places = []
    for one in part.places:
        begin, end = np.searchsorted(at, (one.place, one.place + 1)).tolist()
        sizes, numbers = np.unique(user.size[list(one.rows)], return_counts=True)
        first = begin + np.searchsorted(size[begin:end], sizes)
        rows = [row for start, number in zip(first, numbers) for row in order[start : start + number].tolist()]
        places.append(replace(one, rows=tuple(sorted(rows))))
    cost = float(user.cost[[row for one in places for row in one.rows]].sum())
    return RoomPart(part.jobs, part.cores, cost, tuple(places))

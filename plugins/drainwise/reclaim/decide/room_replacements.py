"""Replace orders where jobs wait by kind: other pilots of the same user make room for the same jobs, far cheaper.

As many cores go as before. What other users' pilots give back, and what is used by other jobs, is not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from drainwise.pool.facts import Snapshot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.decide.replacements import Replacement, replacement
from drainwise.reclaim.decide.room_plans import why_closed_for_room, with_kept_rooms, with_rooms
from drainwise.reclaim.decide.standing import Standing, standing_orders
from drainwise.reclaim.history import History, cores_allowed, left_of_cycle
from drainwise.reclaim.open_need.threshold import worth_replacing
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.room.choice import CLOSED, PlaceRoom
from drainwise.room.facts import Real, RoomFacts
from drainwise.room.part import PlacePart, RoomPart
from drainwise.room.user_part import part_by_claims
from drainwise.room.user_pilots import UserPilots, user_pilots

_MOST_LOOKS = 1e6  # at sets of pilots, of one user


def room_replacements(
    kinds: KindsLeft, snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History
) -> list[Replacement]:
    """Return the replacements at `now` (UNIX s), at most one of each user: what all its orders are for, by others."""
    jobs = _jobs_by_place(kinds, snapshot)
    found, cycle = [], left_of_cycle(history, now, settings)
    for user in standing_orders(snapshot, now, settings, history, why_closed_for_room):
        allowed = min(cycle, cores_allowed(user.user, history, now, settings))
        one = _of_user(user, kinds, jobs, snapshot, allowed, settings.time_to_start)
        if one is not None:
            cycle -= one.part.cores_given
            found.append(one)
    return found


def _jobs_by_place(kinds: KindsLeft, snapshot: Snapshot) -> dict[str, dict[int, int]]:
    """Return by place the jobs of each kind, by its row, that pilots on their way out make room for, several at a time.

    Not the places that one job has for itself, nor what is for jobs that need several places at once, nor those of
    pilots on several places.
    """
    facts, found = kinds.facts, defaultdict[str, dict[int, int]](dict)
    rows = {kind.name: row for row, kind in enumerate(facts.kinds)}
    others = {
        one.place for one in snapshot.pilots if (one.leaving and one.deadline is None) or one.unanswered is not None
    }
    others |= {place for one in snapshot.pilots if one.pieces for place, _ in one.returns()}
    for one in kinds.left.served:
        if any(one.returning.named()):
            row = rows[one.kind]
            found[one.place][row] = found[one.place].get(row, 0) + one.jobs
            if facts.several[row] > 1 or facts.whole[row]:
                others.add(one.place)
    closed = {facts.places[row].name for row in np.flatnonzero(kinds.left.closed | ~facts.divisible).tolist()}
    return {place: jobs for place, jobs in found.items() if place not in others | closed}


def _of_user(
    user: Standing,
    kinds: KindsLeft,
    jobs: Mapping[str, Mapping[int, int]],
    snapshot: Snapshot,
    allowed: int,
    time_to_start: int,
) -> Replacement | None:
    facts, whose = kinds.facts, (user.account, user.user)
    shared = {one.place for one in snapshot.pilots if one.deadline is not None and (one.account, one.user) != whose}
    own = {place: made for place, made in jobs.items() if place not in shared}
    row_of = {one.run: row for row, one in enumerate(user.ordered.pilots) if one.place in own}
    able = {one.run: row for row, one in enumerate(user.able.pilots)}
    pilots = [*(user.ordered.pilots[row] for row in row_of.values()), *user.able.pilots]
    # An order counts only what another pilot may cost to be worth it.
    less = np.maximum(worth_replacing(user.cost / user.ordered.sizes), 0) * user.ordered.sizes
    cost = np.rint(np.concatenate([less[list(row_of.values())], user.able_cost]))
    rows = user_pilots(facts, whose, pilots, cost, user.able.figures.now)
    stands = _part(facts, rows, row_of, own)
    if not stands.places:
        return None
    found = part_by_claims(facts, rows, stands, _room(kinds, rows, stands), (), _MOST_LOOKS)
    before, after = ({rows.runs[row] for one in part.places for row in one.rows} for part in (stands, found))
    gone, new = sorted(before - after), sorted(after - before)
    cores = sum(int(user.able.sizes[able[run]]) for run in new)
    if not new or cores > allowed or found.cost >= stands.cost:
        return None
    one = replacement(user, [([row_of[run] for run in gone], [able[run] for run in new])])
    places = [_place_room(facts, rows, place) for place in found.places]
    asked = {kind.name: kind for kind in facts.kinds}
    rooms = {
        run: RoomFor(place.place, tuple((asked[name], number) for name, number in place.jobs))
        for place in places
        for run in place.runs
    }
    others = replace(
        kinds, left=replace(kinds.left, served=tuple(it for it in kinds.left.served if it.place not in own))
    )
    going = [pilot for pilot in snapshot.pilots if pilot.run not in gone]
    [part] = with_kept_rooms([with_rooms(one.part, rooms)], others, places, going, time_to_start)
    return Replacement(part, one.withdrawals)


def _part(
    facts: RoomFacts, rows: UserPilots, ordered: Mapping[str, int], jobs: Mapping[str, Mapping[int, int]]
) -> RoomPart:
    """Return what the user's orders are for, as a part."""
    there = defaultdict[int, list[int]](list)
    for row, run in enumerate(rows.runs):
        if run in ordered:
            there[int(rows.at[row])].append(row)
    places = [
        PlacePart(place, tuple(sorted(jobs[facts.places[place].name].items())), tuple(some))
        for place, some in sorted(there.items())
    ]
    total = np.zeros(len(facts.kinds), dtype=np.int64)
    for one in places:
        for kind, number in one.jobs:
            total[kind] += number
    every = [row for one in places for row in one.rows]
    return RoomPart(total, int(rows.cores[every].sum()), float(rows.cost[every].sum()), tuple(places))


def _room(kinds: KindsLeft, rows: UserPilots, stands: RoomPart) -> Real:
    """Return P × R, what the user may use beside its pilots': what no other job uses."""
    facts = kinds.facts
    room = np.where((kinds.left.closed | ~facts.divisible)[:, None], CLOSED, kinds.left.room)
    for one in stands.places:
        needs = sum((number * facts.needs[kind] for kind, number in one.jobs), np.zeros(len(facts.resources)))
        room[one.place] = np.maximum(room[one.place] + needs - rows.holds[:, list(one.rows)].sum(axis=1), 0)
    return room


def _place_room(facts: RoomFacts, rows: UserPilots, one: PlacePart) -> PlaceRoom:
    jobs = tuple((facts.kinds[kind].name, number) for kind, number in one.jobs)
    return PlaceRoom(facts.places[one.place].name, jobs, tuple(rows.runs[row] for row in one.rows), ())

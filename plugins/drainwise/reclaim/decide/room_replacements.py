"""Replace orders where jobs wait by kind: other pilots of the same user make room for the same jobs, far cheaper.

As many cores go as before. What other users' pilots give back, and what is used by other jobs, is not touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from drainwise.pool.facts import Snapshot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.choose.choose import choose
from drainwise.reclaim.choose.problem import Problem
from drainwise.reclaim.choose.state import State
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.decide.replacements import Replacement, replacement
from drainwise.reclaim.decide.room_plans import why_closed_for_room, with_kept_rooms, with_rooms
from drainwise.reclaim.decide.standing import Standing, standing_orders
from drainwise.reclaim.history import History, cores_allowed, left_of_cycle
from drainwise.reclaim.open_need.threshold import worth_replacing
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.room.choice import RoomMade, RowTable, limits_of, needs_of, places_of
from drainwise.room.user_pilots import UserPilots, user_pilots

_LOOKS = 100  # at groups of places, of one user


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
    rows = user_pilots(facts, whose, pilots, cost, user.able.figures.now, ("user",))
    found = _found(kinds, rows, row_of, own)
    if found is None:
        return None
    before, after = set(row_of), {run for place in found.places for run in place.runs}
    gone, new = sorted(before - after), sorted(after - before)
    cores = sum(int(user.able.sizes[able[run]]) for run in new)
    if not new or cores > allowed:
        return None
    one = replacement(user, [([row_of[run] for run in gone], [able[run] for run in new])])
    asked = {kind.name: kind for kind in facts.kinds}
    rooms = {
        run: RoomFor(place.place, tuple((asked[name], number) for name, number in place.jobs))
        for place in found.places
        for run in place.runs
    }
    others = replace(
        kinds, left=replace(kinds.left, served=tuple(it for it in kinds.left.served if it.place not in own))
    )
    going = [pilot for pilot in snapshot.pilots if pilot.run not in gone]
    [part] = with_kept_rooms([with_rooms(one.part, rooms)], others, found.places, going, time_to_start)
    return Replacement(part, one.withdrawals)


def _found(
    kinds: KindsLeft, rows: UserPilots, ordered: Collection[str], jobs: Mapping[str, Mapping[int, int]]
) -> RoomMade | None:
    """Return what makes room for the same jobs with no more cores than the user's orders, cheaper; None for nothing.

    It may use beside its pilots' what no other job uses.
    """
    facts, table = kinds.facts, RowTable(kinds.facts, [rows])
    stands = np.flatnonzero([run in ordered for run in rows.runs])
    if not len(stands):
        return None
    room, closed = kinds.left.room.copy(), kinds.left.closed | ~facts.divisible
    served = np.zeros((len(facts.places), len(facts.kinds)), dtype=np.int64)
    mine, claim = np.isin(table.rows.row, stands), table.rows.claim
    for place in np.unique(table.rows.place[mine]).tolist():
        for kind, number in jobs[facts.places[place].name].items():
            served[place, kind] = number
        needs = served[place] @ facts.needs
        back = table.rows.gives[mine & (table.rows.place == place)].sum(axis=0)
        room[place] = np.maximum(room[place] + needs - back, 0)
    cores = int(table.rows.spends[stands, 0].sum())
    owed = dict.fromkeys(kinds.left.owed, 1e12)
    left = replace(kinds.left, jobs=served.sum(axis=0), owed=owed, room=room, closed=closed)
    limits = limits_of([rows], dict.fromkeys(rows.limits, cores))
    problem = Problem(table.rows, places_of(facts, left), needs_of(facts, left), limits)
    state = State(problem, claim)
    state.go(stands)
    for kind in np.flatnonzero(served.any(axis=0)).tolist():
        at = np.flatnonzero(served[:, kind])
        state.serve(kind, at, served[at, kind])
    before = state.cost()
    found = choose(problem, claim, _LOOKS, state)
    if found.cost() >= before or (found.served < served.sum(axis=0)).any():
        return None
    return RoomMade((), tuple(table.rooms(found.gone, found.jobs)), {}, {})

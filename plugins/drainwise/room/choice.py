"""Choose the pilots that make room for the waiting jobs: who gives back how much by facts, which pilots by claims.

Users are taken in the order in which they give back. Each makes room alone for as many jobs as its pilots can, for the
fewest cores. What none can make alone is made with pilots of several users. All that is decided by facts. Then each
user's part is looked for once more: the same jobs, the same cores, at the least cost. What a user's pilots claim has no
part in what others give back, nor in how much it gives back itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.room.demand import DemandLeft, OpenDemand
from drainwise.room.facts import Real, RoomFacts, Whole
from drainwise.room.part import PlacePart, RoomPart, nothing
from drainwise.room.several_users import SharedRoom, shared_room
from drainwise.room.user_part import part_by_claims, part_by_facts
from drainwise.room.user_pilots import UserPilots


@dataclass(frozen=True)
class PlaceRoom:
    """Room that is made on a place by ending `runs` of `users` (account, user): for `jobs` of each kind, by its name.

    Of a kind that needs several places at once these are the jobs that have one of their places here. runs: empty where
    such a job needs no more than what is free.
    """

    place: str
    jobs: tuple[tuple[str, int], ...]
    runs: tuple[str, ...]
    users: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UserLoss:
    """What one user gives back: its `runs`, by name, `cores` in all, at so much cost.

    jobs: of each kind, by its name, those for which it makes room alone.
    """

    account: str
    user: str
    runs: tuple[str, ...]
    cores: int
    cost: float
    jobs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RoomMade:
    """Who gives back what, the places where room is made, and of each kind the jobs with room and without.

    users: one for each that was given, in that order. jobs: that can start when all these pilots have left, beside
    those that need none to go. missing: jobs that their accounts are owed cores for, and that find no room.
    """

    users: tuple[UserLoss, ...]
    places: tuple[PlaceRoom, ...]
    jobs: Mapping[str, int]
    missing: Mapping[str, int]


_MOST_LOOKS = 3e6  # at sets of pilots, of all users, to better what was found kind by kind
CLOSED = -1e15
"""Room on a place that one job has for itself: nothing more can start there, whoever leaves."""


def make_room(facts: RoomFacts, left: DemandLeft, users: Sequence[UserPilots], most: Mapping[str, int]) -> RoomMade:
    """Return the pilots that go, for whom, and what of the demand stays unserved.

    users: those that may lose cores, who gives back first at the front. most: cores that may be lost by the name of the
    limit: each user is bound by all limits that it names, and not at all without one.
    """
    room = np.where(left.closed[:, None], CLOSED, left.room)
    looks = _MOST_LOOKS / max(1, len(users))
    demand, limits, parts, uses = OpenDemand(facts, left.jobs, left.owed), dict(most), [], []
    for user in users:
        cores = min((limits.get(name, 0) for name in user.limits), default=1 << 53)
        part = part_by_facts(facts, user, room, demand, cores, looks) if cores > 0 else nothing(len(facts.kinds))
        demand = demand.without(part.jobs)
        parts.append(part)
        where, used = _use(facts, user, part, room)
        uses.append((where, used))
        room[where] -= used
        room[[one.place for one in part.places if _alone(facts, one)]] = CLOSED
        limits.update({name: limits.get(name, 0) - part.cores for name in user.limits})
    shared = _shared(facts, users, parts, room, demand, limits)
    made = _jobs_of(facts, shared)
    demand = demand.without(made)
    fixed = {one.place for one in shared}
    final, owner = [], _owners(facts, users, parts)
    for number, (user, part) in enumerate(zip(users, parts)):
        mine = np.where((owner == number)[:, None], np.maximum(room, 0), 0)
        mine[uses[number][0]] += uses[number][1]
        barred = (room[:, 0] < 0) | ((owner != number) & ~facts.divisible)
        barred[[one.place for one in part.places]] = False
        mine[barred] = CLOSED
        final.append(part_by_claims(facts, user, _with_shared(user, number, part, shared), mine, fixed, looks))
    return RoomMade(
        tuple(_loss(facts, user, part) for user, part in zip(users, final)),
        tuple(_places(facts, users, final, shared)),
        _named(facts, sum((part.jobs for part in parts), made)),
        _named(facts, np.array([demand.jobs_of(kind) for kind in range(len(facts.kinds))], dtype=np.int64)),
    )


def _use(facts: RoomFacts, user: UserPilots, part: RoomPart, room: Real) -> tuple[list[int], Real]:
    """Return the places where a part is, and what it uses there of the room (P × R) beside what its pilots hold."""
    places = [one.place for one in part.places]
    used = np.zeros((len(places), len(facts.resources)))
    for row, one in enumerate(part.places):
        needs, held = _needs(facts, one), user.holds[:, list(one.rows)].sum(axis=1)
        used[row] = room[one.place] if _alone(facts, one) else np.maximum(needs - held, 0)
    return places, used


def _needs(facts: RoomFacts, one: PlacePart) -> Real:
    return sum((number * facts.needs[kind] for kind, number in one.jobs), np.zeros(len(facts.resources)))


def _alone(facts: RoomFacts, one: PlacePart) -> bool:
    return not facts.divisible[one.place] or any(facts.whole[kind] for kind, _ in one.jobs)


def _shared(
    facts: RoomFacts,
    users: Sequence[UserPilots],
    parts: Sequence[RoomPart],
    room: Real,
    demand: OpenDemand,
    limits: Mapping[str, int],
) -> tuple[SharedRoom, ...]:
    """Return the room that several users make together, of what their own parts leave."""
    room, untaken = room.copy(), [np.ones(len(user), dtype=bool) for user in users]
    for user, part, free in zip(users, parts, untaken):
        for one in part.places:
            free[list(one.rows)] = False
            room[one.place] += np.maximum(user.holds[:, list(one.rows)].sum(axis=1) - _needs(facts, one), 0)
    return shared_room(facts, users, untaken, room, demand, limits)


def _jobs_of(facts: RoomFacts, shared: Sequence[SharedRoom]) -> Whole:
    made = np.zeros(len(facts.kinds), dtype=np.int64)
    for one in shared:
        for kind, number in one.jobs:
            made[kind] += number
    return made // facts.several


def _owners(facts: RoomFacts, users: Sequence[UserPilots], parts: Sequence[RoomPart]) -> Whole:
    """Return for each place the user whose part may use what no part needs there: the first with a pilot there."""
    owner = np.full(len(facts.places), -1)
    for number, (user, part) in reversed(list(enumerate(zip(users, parts)))):
        if part.places:
            owner[user.at] = number
    first = next((number for number, part in enumerate(parts) if part.places), -1)
    return np.where(owner < 0, first, owner)


def _with_shared(user: UserPilots, number: int, part: RoomPart, shared: Sequence[SharedRoom]) -> RoomPart:
    """Return the part with what the user gives back for room that several make."""
    places = {one.place: one for one in part.places}
    cores, cost = part.cores, part.cost
    for one in shared:
        rows = dict(one.rows).get(number, ())
        if rows:
            mine = places.get(one.place, PlacePart(one.place, (), ()))
            places[one.place] = PlacePart(one.place, mine.jobs, (*mine.rows, *rows))
            cores, cost = cores + int(user.cores[list(rows)].sum()), cost + float(user.cost[list(rows)].sum())
    return RoomPart(part.jobs, cores, cost, tuple(places[place] for place in sorted(places)))


def _loss(facts: RoomFacts, user: UserPilots, part: RoomPart) -> UserLoss:
    runs = tuple(user.runs[row] for row in sorted(row for one in part.places for row in one.rows))
    return UserLoss(user.account, user.user, runs, part.cores, part.cost, tuple(_named(facts, part.jobs).items()))


def _places(
    facts: RoomFacts, users: Sequence[UserPilots], parts: Sequence[RoomPart], shared: Sequence[SharedRoom]
) -> Iterator[PlaceRoom]:
    """Yield the room on each place, by its name: of one user, or of all that make it together."""
    together = {one.place: one.jobs for one in shared}
    found: dict[tuple[int, int], list[tuple[UserPilots, PlacePart]]] = defaultdict(list)
    for number, (user, part) in enumerate(zip(users, parts)):
        for one in part.places:
            found[one.place, -1 if one.place in together else number].append((user, one))
    for place in together:
        found[place, -1]
    for (place, number), some in sorted(found.items(), key=lambda it: it[0]):
        jobs: dict[int, int] = defaultdict(int)
        for kind, count in (*(it for _, one in some for it in one.jobs), *(together[place] if number < 0 else ())):
            jobs[kind] += count
        names = tuple((facts.kinds[kind].name, jobs[kind]) for kind in sorted(jobs))
        runs = tuple(user.runs[row] for user, one in some for row in one.rows)
        whose = tuple((user.account, user.user) for user, one in some if one.rows)
        yield PlaceRoom(facts.places[place].name, names, runs, whose)


def _named(facts: RoomFacts, jobs: Whole) -> dict[str, int]:
    return {facts.kinds[kind].name: int(jobs[kind]) for kind in np.flatnonzero(jobs).tolist()}

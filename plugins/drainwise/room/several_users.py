"""Make room that no user's pilots make alone: with pilots of several users, chosen by facts, no claims."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.room.demand import OpenDemand
from drainwise.room.facts import Mask, Real, RoomFacts, Whole
from drainwise.room.kind_by_kind import KindByKind
from drainwise.room.near_places import worth_a_look
from drainwise.room.pilot_sets import pilot_sets
from drainwise.room.user_pilots import UserPilots

_LONGEST = 1e8  # s: the users' order comes before the run time


@dataclass(frozen=True)
class SharedRoom:
    """Room on a place that pilots of several users make: `jobs` of each kind; rows of the pilots of each user."""

    place: int
    jobs: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, tuple[int, ...]], ...]


def shared_room(
    facts: RoomFacts,
    users: Sequence[UserPilots],
    untaken: Sequence[Mask],
    room: Real,
    demand: OpenDemand,
    most: Mapping[str, int],
) -> tuple[SharedRoom, ...]:
    """Return room for as many jobs as can be, the kinds in their order: fewest cores first, then by the users' order.

    users: in the order in which they give back. untaken: of each, which of its pilots no part has yet. room: P × R,
    that nothing uses. most: cores that may be lost still, by the name of the limit. Of equal ones those with the
    shortest run time, then by name.
    """
    if not users:
        return ()
    kinds = [kind for kind in range(len(facts.kinds)) if demand.jobs_of(kind) > 0]
    left = dict(most)
    able = [
        np.flatnonzero(rows & (one.cores <= min((left.get(name, 0) for name in one.limits), default=np.inf)))
        for one, rows in zip(users, untaken)
    ]
    together = _together(users, able)
    wanted = {kind: demand.jobs_of(kind) for kind in kinds}
    marked = worth_a_look(facts, together.pilots, room, wanted, together.pilots.run_time)
    if not marked.any():
        return ()
    limited = _Limited([users[user].limits for user in together.user.tolist()], together.pilots.cores, left)
    order = together.pilots.run_time.clip(0, _LONGEST / 2) + together.user * _LONGEST
    state = KindByKind(facts, pilot_sets(together.pilots, together.pilots.cores * order, marked), room)
    for kind in kinds:
        made = _most_jobs(facts, state, kind, demand.jobs_of(kind), limited)
        demand = demand.without(np.where(np.arange(len(facts.kinds)) == kind, made, 0))
    found = []
    for part in state.part().places:
        rows: dict[int, list[int]] = defaultdict(list)
        for row in part.rows:
            rows[int(together.user[row])].append(int(together.row[row]))
        whose = tuple((user, tuple(some)) for user, some in sorted(rows.items()))
        found.append(SharedRoom(part.place, part.jobs, whose))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Together:
    """The pilots of several users as of one; which user each is of, and its row there."""

    pilots: UserPilots
    user: Whole
    row: Whole


@dataclass(frozen=True, eq=False)
class _Limited:
    """The limits of each pilot, its cores, and the cores that are `left` of each limit."""

    limits: Sequence[tuple[str, ...]]
    cores: Real
    left: dict[str, int]

    def pay(self, rows: Iterable[int]) -> bool:
        """Pay for these pilots; return False, and pay nothing, where that is more than is left."""
        pays: Counter[str] = Counter()
        for row in rows:
            for name in self.limits[row]:
                pays[name] += int(self.cores[row])
        if any(cores > self.left.get(name, 0) for name, cores in pays.items()):
            return False
        self.left.update({name: self.left[name] - cores for name, cores in pays.items()})
        return True


def _most_jobs(facts: RoomFacts, state: KindByKind, kind: int, wanted: int, limited: _Limited) -> int:
    """Make room for one job after the other where it costs the least; return for how many."""
    several, made = int(facts.several[kind]), 0
    offers, sets = state.offers(kind, 1)
    queue = list(zip(offers.value.real.tolist(), offers.value.imag.tolist(), offers.place.tolist(), sets.tolist()))
    heapq.heapify(queue)
    while made < wanted:
        chosen: list[tuple[int, int]] = []
        paid = dict(limited.left)
        while queue and len(chosen) < several:
            _, _, place, one = heapq.heappop(queue)
            if limited.pay(state.added(place, one)):
                chosen.append((place, one))
        if len(chosen) < several:
            limited.left.update(paid)
            break
        for place, one in chosen:
            state.take_one(kind, place, one)
        for place, _ in chosen:
            offer = state.offer_of(kind, place)
            if offer is not None:
                heapq.heappush(queue, offer)
        made += 1
    return made


def _together(users: Sequence[UserPilots], able: Sequence[Whole]) -> _Together:
    parts = [one.part(rows) for one, rows in zip(users, able)]
    number = np.concatenate([np.full(len(one), row) for row, one in enumerate(parts)])

    pilots = UserPilots(
        "",
        "",
        (),
        tuple(run for one in parts for run in one.runs),
        np.concatenate([one.at for one in parts]),
        np.concatenate([one.holds for one in parts], axis=1),
        np.concatenate([one.cores for one in parts]),
        np.concatenate([one.run_time for one in parts]),
        np.concatenate([one.cost for one in parts]),
        np.concatenate([one.size * len(users) + row for row, one in enumerate(parts)]),
    )
    return _Together(pilots, number, np.concatenate(able))

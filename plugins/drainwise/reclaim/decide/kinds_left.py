"""Serve what waits by kind from what is free and what comes back anyway, place by place: what is left needs orders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import Place
from drainwise.reclaim.counted_demand import intended_room, nodes_with_cores_back
from drainwise.reclaim.quota import on_its_way
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand
from drainwise.room.demand import DemandLeft, RoomFacts, demand_left, room_facts


@dataclass(frozen=True)
class KindsLeft:
    """What waits by kind and finds no room yet: `jobs` of each kind, by its name.

    free: cores of the jobs that what is free will serve.
    """

    facts: RoomFacts
    left: DemandLeft
    jobs: Mapping[str, int]
    free: int

    @property
    def cores(self) -> int:
        """Cores of the jobs without room."""
        return self.cores_of(self.jobs)

    def cores_of(self, jobs: Mapping[str, int]) -> int:
        """Return the cores of so many jobs of each kind, by its name."""
        each = {kind.name: kind.cores for kind in self.facts.kinds}
        return sum(number * each[name] for name, number in jobs.items())


def kinds_left(
    snapshot: Snapshot, now: int, settings: ReclaimSettings, unmet: Mapping[str, UnmetDemand] = MappingProxyType({})
) -> KindsLeft:
    """Serve the kinds of a snapshot, with the demand that counts, from what is free and what returns.

    unmet: what is remembered of the kinds, by name: for which of them room was made, and where.
    """
    facts = room_facts(snapshot.kinds or (), snapshot.places)
    owed = {one.name: max(0.0, min(one.cores_wanted, one.cores_owed - one.cores_in_use)) for one in snapshot.accounts}
    back = nodes_with_cores_back(unmet, now, settings)
    returning = _returning(snapshot.pilots, (one for one in snapshot.places if one.node in back), now, settings)
    left = demand_left(facts, owed, returning, intended_room(snapshot, unmet, now, settings))
    return KindsLeft(facts, left, _without_room(facts, left), sum(one.free.cores for one in left.served))


def _without_room(facts: RoomFacts, left: DemandLeft) -> dict[str, int]:
    jobs = zip(facts.kinds, left.without_room().tolist())
    return {kind.name: count for kind, count in jobs if kind.classes and count}


def _returning(
    pilots: Iterable[Pilot], places: Iterable[Place], now: int, settings: ReclaimSettings
) -> dict[str, Amounts]:
    """Return by place what comes back; places: those where what was not seen has come back from runs with orders."""
    found: dict[str, list[Amounts]] = defaultdict(list)
    for place in places:
        if place.unseen.cores:
            found[place.name].append(place.unseen)
    for one in pilots:
        if not one.reserved and on_its_way(one, now, settings.horizon):
            for name, holds in one.returns():
                found[name].append(holds)
    return {place: sum_of(held) for place, held in found.items()}

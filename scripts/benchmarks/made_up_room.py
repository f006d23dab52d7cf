"""A large pool of mixed nodes, full of pilots, and what waits there: many kinds, some of them hard to place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.room.choice import RoomMade, make_room
from drainwise.room.demand import demand_left, room_facts
from drainwise.room.user_pilots import UserPilots

NOW = 1795249000
GIB = 1024
CLASSES = ("thin", "fat", "new", "gpu")


@dataclass(frozen=True)
class MixedPool:
    """What waits, where, and the pilots of each user with what ending each would waste."""

    kinds: tuple[JobKind, ...]
    places: tuple[Place, ...]
    pilots: dict[str, list[Pilot]]
    wastes: dict[str, list[float]]

    def made(self, extra: float = math.nan, extra_taken: int = 0) -> RoomMade:
        """Make room, from the batch system's facts to the pilots that go; everybody is owed what it waits for.

        extra, extra_taken: of each user, see `UserPilots`.
        """
        facts = room_facts(self.kinds, self.places)
        left = demand_left(facts, {one.account: 1e9 for one in self.kinds}, {})
        users = [
            UserPilots("group", name, ("cycle",), mine, np.array(self.wastes[name]), extra, extra_taken)
            for name, mine in self.pilots.items()
        ]
        return make_room(facts, left, users, {"cycle": 10**9}, NOW)


def mixed_pool(places: int, pilots: int, kinds: int, users: int) -> MixedPool:
    """Nodes with 2 to 8 GiB a core, one in twenty with GPUs; pilots of 1 to 16 cores; kinds of 1 to 32 cores.

    Of the kinds one can run nowhere, one wants whole nodes, three want several nodes at once.
    """
    dice = np.random.default_rng(20261122)
    class_of = dice.choice(4, places, p=(0.5, 0.25, 0.2, 0.05))
    held: list[list[Amounts]] = [[] for _ in range(places)]
    found: dict[str, list[Pilot]] = {f"user{number}": [] for number in range(users)}
    wastes: dict[str, list[float]] = {name: [] for name in found}
    owners = dice.integers(0, users, pilots)
    where = dice.integers(0, places, pilots)
    sizes = dice.choice((1, 2, 4, 8, 16), pilots, p=(0.15, 0.15, 0.2, 0.4, 0.1))
    memory = dice.choice((1, 2, 3, 4), pilots)
    ages = dice.integers(100, 200_000, pilots)
    for number in range(pilots):
        at, cores = int(where[number]), int(sizes[number])
        holds = amounts(cores, cores * int(memory[number]) * GIB, int(class_of[at] == 3 and number % 3 == 0))
        name = f"user{owners[number]}"
        held[at].append(holds)
        run = f"{number}.{NOW - int(ages[number])}"
        found[name].append(
            Pilot(run, run, f"n{at}", "group", name, cores, NOW - int(ages[number]), place=f"n{at}", holds=holds)
        )
        wastes[name].append(float(int(cores * ages[number] * dice.random())))
    made = []
    for at in range(places):
        free = amounts(int(dice.integers(0, 4)), int(dice.integers(0, 9)) * GIB)
        total = free
        for one in held[at]:
            total = total + one
        made.append(Place(f"n{at}", f"n{at}", CLASSES[class_of[at]], free, total))
    return MixedPool(tuple(_kinds(kinds, dice)), tuple(made), found, wastes)


def _kinds(count: int, dice: np.random.Generator) -> list[JobKind]:
    found = []
    for number in range(count):
        cores = int(dice.choice((1, 2, 4, 8, 16, 32), p=(0.2, 0.1, 0.2, 0.3, 0.1, 0.1)))
        memory, gpus = cores * int(dice.choice((1, 2, 4, 8))) * GIB, int(number % 10 == 9)
        classes = {"gpu"} if gpus else set(dice.choice(CLASSES[:3], int(dice.integers(1, 4)), replace=False).tolist())
        if number == 17:
            classes = set()
        several = 4 if number % 15 == 14 else 1
        jobs = int(dice.integers(1, 200))
        needs = amounts(cores, memory, gpus)
        found.append(
            JobKind(f"k{number}", f"a{number % 5}", jobs, needs, frozenset(classes), several, whole=number == 33)
        )
    return found

"""A large pool of mixed nodes, full of pilots, and what waits there: many kinds, some of them hard to place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.choose.problem import CORES, Limits
from drainwise.reclaim.room import DemandLeft, PlaceRoom, demand_left, make_room, room_facts, rows_of

NOW = 1795249000
GIB = 1024
CLASSES = ("thin", "fat", "new", "gpu")


@dataclass(frozen=True)
class UserLoss:
    """What one user gives back: its `runs` that go, their cores and cost; extra: of the cores those beyond facts'."""

    user: str
    runs: tuple[str, ...]
    cores: int
    cost: float
    extra: int


@dataclass(frozen=True)
class Made:
    """The room on each place, the jobs with room and without by kind, and what each user gives back."""

    users: tuple[UserLoss, ...]
    places: tuple[PlaceRoom, ...]
    jobs: Mapping[str, int]
    missing: Mapping[str, int]


def made_by(
    left: DemandLeft,
    pilots: Mapping[str, Sequence[Pilot]],
    wastes: Mapping[str, Sequence[float]],
    most: Sequence[int],
    extra: float = math.nan,
    extra_taken: int = 0,
) -> Made:
    """Make room by the pilots of each user, who gives back first at the front.

    wastes: of each pilot, by user. most: cores that each user may lose. extra, extra_taken: of each, as in `Limits`.
    """
    every, count, names = [one for some in pilots.values() for one in some], len(pilots), np.arange(len(pilots))
    user = np.repeat(names, [len(some) for some in pilots.values()])
    rows = rows_of(left.facts, every, user, np.concatenate([np.zeros(0), *(wastes[name] for name in pilots)]), NOW)
    limits = Limits(
        names,
        names.astype(float),
        names[:, None],
        np.array(most, dtype=float),
        np.full(count, CORES),
        np.full(count, extra),
        float(extra_taken),
    )
    made = make_room(left, rows, limits, [one.run for one in every])
    users = []
    for number, name in enumerate(pilots):
        gone, first = (np.flatnonzero(one & (user == number)) for one in (made.plan.gone, made.plan.by_facts))
        cores = rows.spends[:, CORES]
        more = max(0, int(cores[gone].sum() - cores[first].sum()))
        runs, lost = tuple(sorted(every[row].run for row in gone.tolist())), int(cores[gone].sum())
        users.append(UserLoss(name, runs, lost, float(rows.claim[gone].sum()), more))
    return Made(tuple(users), made.places, made.jobs, made.missing)


@dataclass(frozen=True)
class MixedPool:
    """What waits, where, and the pilots of each user with what ending each would waste."""

    kinds: tuple[JobKind, ...]
    places: tuple[Place, ...]
    pilots: dict[str, list[Pilot]]
    wastes: dict[str, list[float]]

    def made(self, extra: float = math.nan, extra_taken: int = 0) -> Made:
        """Make room, from the batch system's facts to the pilots that go; everybody is owed what it waits for.

        extra, extra_taken: of each user, as in `Limits`.
        """
        facts = room_facts(self.kinds, self.places)
        left = demand_left(facts, {one.account: 1e9 for one in self.kinds}, {})
        return made_by(left, self.pilots, self.wastes, [10**9] * len(self.pilots), extra, extra_taken)


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

"""Small pools: places, kinds of waiting jobs, and pilots of alice and others on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from hypothesis import strategies as st

from benchmarks.made_up_room import Made, made_by
from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.choose import choose
from drainwise.reclaim.room import demand_left, room_facts

NOW = 1795249000
ENDLESS = 1 << 40


def kind(
    name: str,
    jobs: int,
    cores: int,
    memory: int = 0,
    gpus: int = 0,
    *,
    classes: Sequence[str] = ("cpu",),
    places: int = 1,
    whole: bool = False,
    account: str = "bob",
) -> JobKind:
    """Waiting jobs; memory in MiB."""
    return JobKind(name, account, jobs, Amounts(cores, memory, gpus), frozenset(classes), places, whole)


def place(
    name: str, total: Amounts, free: Amounts | None = None, *, node_class: str = "cpu", divisible: bool = True
) -> Place:
    """A node; nothing is free unless it is said."""
    return Place(name, name, node_class, free or Amounts(), total, divisible)


def pilot(
    run: str, where: str, cores: int, memory: int = 0, gpus: int = 0, *, user: str = "alice", age: int = 1000
) -> Pilot:
    """A pilot that started `age` seconds ago."""
    holds = Amounts(cores, memory, gpus)
    return Pilot(run, run, where, f"group_{user}", user, cores, NOW - age, place=where, holds=holds)


@contextmanager
def as_if_large() -> Iterator[None]:
    """Choose as in a pool that is too large to look at everything at once."""
    small = choose.SMALL_PLACES
    try:
        choose.SMALL_PLACES = -1
        yield
    finally:
        choose.SMALL_PLACES = small


SIZES: dict[str, Callable[[], AbstractContextManager[None]]] = {"small": nullcontext, "large": as_if_large}
"""How a pool is looked at, by its size."""


@dataclass(frozen=True)
class Pool:
    """What waits, the places, and the pilots of users, who gives back first at the front."""

    kinds: tuple[JobKind, ...]
    places: tuple[Place, ...]
    pilots: tuple[Pilot, ...]
    costs: Mapping[str, float] = field(default_factory=dict)
    users: tuple[str, ...] = ("alice",)
    owed: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    returning: Mapping[str, Amounts] = field(default_factory=dict)
    extra: float = math.nan

    def made(self) -> Made:
        """Make room; every account is owed without end and every user may lose all, unless it is said."""
        facts = room_facts(self.kinds, self.places)
        owed = {one.account: float(ENDLESS) for one in self.kinds} | dict(self.owed)
        left = demand_left(facts, owed, self.returning)
        each = {
            user: sorted((one for one in self.pilots if one.user == user), key=lambda one: one.run)
            for user in self.users
        }
        costs = {user: [self.costs.get(one.run, 0.0) for one in mine] for user, mine in each.items()}
        return made_by(left, each, costs, [self.most.get(user, ENDLESS) for user in self.users], self.extra)


amounts_held = st.tuples(st.sampled_from((1, 2, 3, 4, 8)), st.sampled_from((0, 2, 4, 8)), st.sampled_from((0, 0, 0, 1)))


@st.composite
def pools(draw: st.DrawFn, users: tuple[str, ...] = ("alice",), most_kinds: int = 3) -> Pool:
    """Some places, some full and some partly free, with pilots that fill what is not free."""
    places, pilots, costs = [], [], {}
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        here = []
        for one in range(draw(st.integers(0, 4))):
            cores, memory, gpus = draw(amounts_held)
            user = draw(st.sampled_from(users))
            made = pilot(f"{name}.{one}", name, cores, memory, gpus, user=user, age=draw(st.integers(0, 3)) * 100)
            here.append(made)
            costs[made.run] = float(draw(st.integers(0, 9)))
        free = Amounts(*draw(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 1))))
        total = sum_of([free, *(one.holds or Amounts() for one in here)])
        node_class = draw(st.sampled_from(("cpu", "fat")))
        divisible = draw(st.sampled_from((True, True, True, False)))
        places.append(place(name, total, free, node_class=node_class, divisible=divisible))
        pilots += here
    kinds = []
    for number in range(draw(st.integers(1, most_kinds))):
        cores, memory, gpus = draw(amounts_held)
        classes = draw(st.sampled_from((("cpu",), ("cpu", "fat"), ("fat",), ())))
        account = draw(st.sampled_from(("bob", "carol")))
        several = draw(st.sampled_from((1, 1, 1, 2)))
        whole = draw(st.sampled_from((False, False, False, True)))
        jobs = draw(st.integers(1, 4))
        kinds.append(
            kind(f"k{number}", jobs, cores, memory, gpus, classes=classes, account=account, places=several, whole=whole)
        )
    most = {user: draw(st.sampled_from((ENDLESS, ENDLESS, 3, 8))) for user in users}
    owed = {"bob": draw(st.sampled_from((float(ENDLESS), 8.0, 13.5)))}
    return Pool(tuple(kinds), tuple(places), tuple(pilots), costs, users, owed, most)

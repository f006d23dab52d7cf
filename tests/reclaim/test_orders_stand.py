"""A plan that was carried out leaves nothing to do while its pilots leave, whichever goes first and however late it
is seen: no order more, and none withdrawn.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest
from hypothesis import settings

from drainwise.pool.amounts import NOTHING, Amounts, sum_of
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.pool.shares import shared_out
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.unmet_demand import UnmetDemand, watched, with_orders

from .facts import NOW, SETTINGS

SITE = dataclasses.replace(SETTINGS, drain_only=True)
CORES, SIZES = 8, ((4, 4), (8,), (2, 2, 4), (4, 2, 2), (6, 2), (2, 2, 2, 2))
CLASSES = (("a", "b"), ("a",), ("b",), ("a", "b"))


class SmallPool:
    """Some nodes full of pilots of alice's and carl's; bob and dora wait for jobs of several kinds."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.nodes = {
            f"n{row}": (dice.choice("ab"), Amounts(CORES, dice.choice((16_384, 32_768))))
            for row in range(dice.randint(1, 4))
        }
        sizes = {name: dice.choice(SIZES) for name in self.nodes}
        self.pilots = [
            self._pilot(f"{name}.{row}", name, cores, dice.choice(("alice", "alice", "carl")))
            for name in self.nodes
            for row, cores in enumerate(sizes[name])
        ]
        kinds = [self._kind(dice) for _ in range(dice.randint(1, 3))]
        self.kinds = list({one.name: one for one in kinds}.values())
        self.unmet: dict[str, UnmetDemand] = {}
        self.gone: list[Pilot] = []

    def _pilot(self, name: str, node: str, cores: int, user: str) -> Pilot:
        held = Amounts(cores, self.nodes[node][1].memory * cores // CORES)
        return Pilot(f"ce#{name}@{NOW - 5000}", name, node, user, user, cores, NOW - 5000, place=node, holds=held)

    def _kind(self, dice: random.Random) -> JobKind:
        cores, account = dice.choice((1, 2, 4, 8)), dice.choice(("bob", "dora"))
        needs, may = Amounts(cores, dice.choice((64, 2048 * cores, min(16_384, 4096 * cores)))), dice.choice(CLASSES)
        fits = {of for of, total in self.nodes.values() if of in may and total.covers(needs)}
        name = kind_name(account, needs, ",".join(may))
        return JobKind(name, account, dice.randint(1, 2), needs, frozenset(fits))

    def snapshot(self, now: int, hidden: tuple[Pilot, ...] = ()) -> Snapshot:
        """hidden: pilots that have left, and of which their nodes have not reported yet."""
        use, wants, jobs = Counter[str](), Counter[str](), Counter[str]()
        for one in self.pilots:
            use[one.account] += one.cores
        for kind in self.kinds:
            if kind.classes:
                wants[kind.account] += kind.jobs * kind.cores
                jobs[kind.account] += kind.jobs
        names = sorted({"alice", *use, *wants})
        needs = {name: float(use[name] + wants.get(name, 1000)) for name in names}
        owed = shared_out(float(CORES * len(self.nodes)), dict.fromkeys(names, 1.0), needs)
        accounts = tuple(
            Account(name, float(use[name]), owed[name], float(wants[name]), 500.0, wants[name] / max(1, jobs[name]))
            for name in names
        )
        places = []
        for name, (of, total) in self.nodes.items():
            held = sum_of(one.holds or NOTHING for one in (*self.pilots, *hidden) if one.node == name)
            unseen = sum_of(one.holds or NOTHING for one in hidden if one.node == name)
            places.append(Place(name, name, of, total.minus(held), total, unseen=unseen))
        return Snapshot(now, tuple(self.pilots), accounts, kinds=tuple(self.kinds), places=tuple(places))

    def cycle(self, now: int, hidden: tuple[Pilot, ...] = ()) -> Plan:
        """Decide, and give the orders: they are over in 400 s."""
        seen = self.snapshot(now, hidden)
        self.unmet = watched(self.unmet, seen, now, SITE)
        plan = make_plan(seen, now, SITE, History(unmet=self.unmet))
        ordered = {order.pilot.run for order in plan.orders}
        for one in with_orders(self.unmet, seen, plan.parts, now):
            self.unmet[one.key] = one
        goes = NOW + 400
        self.pilots = [dataclasses.replace(it, deadline=goes) if it.run in ordered else it for it in self.pilots]
        return plan

    def can_start(self) -> bool:
        """Whether a waiting job fits into what is free."""
        return any(
            one.free.covers(kind.needs) and one.node_class in kind.classes
            for one in self.snapshot(NOW).places
            for kind in self.kinds
        )


POOLS = 2 * settings().max_examples


@pytest.mark.daemons
@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in range(0, POOLS, 10)], ids=str)
def test_orders_stand_while_their_pilots_leave(seeds: range) -> None:
    ordered = 0
    for seed in seeds:
        pool, now = SmallPool(seed), NOW
        first = pool.cycle(now)
        ordered += len(first.orders)
        hidden: tuple[Pilot, ...] = ()
        left = [one for one in pool.pilots if one.deadline is not None]
        random.Random(seed).shuffle(left)
        for step in range(2 * len(left) + 1):
            now += 5
            later = pool.cycle(now, hidden)
            assert (later.orders, later.withdrawals) == ((), ()), f"pool {seed}, step {step}"
            if not hidden and (not left or pool.can_start()):
                break
            hidden = () if hidden else (left.pop(),)
            pool.pilots = [one for one in pool.pilots if one not in hidden]
    assert ordered

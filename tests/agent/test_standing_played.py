"""Many cycles of an agent while jobs come and go and payloads end early: which orders stand, and who is asked again."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals
from drainwise.journal.memory import Memory
from drainwise.pilot.decide.lease import Lease
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.pool.shares import shared_out
from drainwise.reclaim.history import PAUSE
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import ReclaimSettings
from memory_pool import MemoryPool
from more_examples import most_of

from .full_nodes import MINUTE, FullPilot
from .memory_pool import NOW, SETTINGS, Lines

SITE = replace(SETTINGS, min_age=60, order_latency=60)
POLICIES = {"open-need": replace(SITE, policy="open-need", waiting_cost=0.02), "least-waste": SITE}
CORES, LONG = 16, (10, 90)
EACH = most_of(2, 1)
"""Minutes between two cycles."""
PRIORITIES = {"alice": 900.0, "ann": 800.0, "bob": 500.0}


class BusyNodes(MemoryPool):
    """Nodes full of pilots of alice's and ann's, that end earlier than they say; bob's jobs come, start, and leave."""

    def __init__(self, seed: int, are_kinds_told: bool) -> None:
        super().__init__()
        self.now, self.chance, self.are_kinds_told = NOW, random.Random(seed), are_kinds_told
        self.names = [f"n{number}" for number in range(self.chance.randint(3, 6))]
        self.pilots: dict[str, FullPilot] = {}
        self.user: dict[str, str] = {}
        self.waiting: list[int] = []
        self.running: list[tuple[str, int, int]] = []  # node, cores, end
        self.times: list[tuple[int, str, str]] = []
        self._fill()

    def _free(self) -> dict[str, int]:
        held = Counter[str]()
        for one in self.pilots.values():
            held[one.node] += one.cores
        for node, cores, _ in self.running:
            held[node] += cores
        return {name: CORES - held[name] for name in self.names}

    def _fill(self) -> None:
        for name in self.names:
            while (free := self._free()[name]) >= 4:
                cores = self.chance.choice([size for size in (4, 4, 8) if size <= free])
                lease = Lease(cores, self.now - MINUTE * self.chance.randint(2, 300), None)
                one = FullPilot(len(self.user), name, cores, lease, self.chance, self.now, LONG)
                self.pilots[one.run] = one
                self.user[one.run] = self.chance.choice(("alice", "ann"))

    def pass_to(self, now: int) -> None:
        """Let a minute pass."""
        self.now, chance = now, self.chance
        for run, one in list(self.pilots.items()):
            if one.workload.running and chance.random() < 0.01:
                one.workload.remove(next(iter(one.workload.running)))
            if not one.step(now):
                del self.pilots[run]
                self.ended[run] = Ending(run, now, vacated=False)
        self.running = [one for one in self.running if one[2] > now]
        if chance.random() < 0.15:
            self.waiting += [chance.choice((2, 4, 8, 16))] * chance.randint(1, 4)
        if chance.random() < 0.05:
            self.waiting = self.waiting[: chance.randint(0, len(self.waiting))]
        for cores in sorted(self.waiting, reverse=True):
            free = self._free()
            node = min((name for name in free if free[name] >= cores), key=free.__getitem__, default="")
            if node:
                self.waiting.remove(cores)
                self.running.append((node, cores, now + MINUTE * chance.randint(10, 60)))
        if not self.waiting:
            self._fill()

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        free, use, kinds = self._free(), Counter[str](), []
        pilots = [self._seen(one) for one in self.pilots.values()]
        for one in pilots:
            use[one.account] += one.cores
        use["bob"] = sum(cores for _, cores, _ in self.running)
        for cores, jobs in sorted(Counter(self.waiting).items(), reverse=True):
            needs = Amounts(cores)
            kinds.append(JobKind(kind_name("bob", needs, ""), "bob", jobs, needs, frozenset({"plain"}), example="1"))
        wants = {"alice": 1000.0, "ann": 1000.0, "bob": float(sum(self.waiting))}
        needs_of = {name: use[name] + wants[name] for name in wants}
        owed = shared_out(float(CORES * len(self.names)), dict.fromkeys(wants, 1.0), needs_of)
        accounts = tuple(
            Account(
                name,
                float(use[name]),
                owed[name],
                wants[name] if name == "bob" else 0.0,
                PRIORITIES[name],
                max(1.0, wants[name] / max(1, len(self.waiting))),
            )
            for name in wants
        )
        places = tuple(Place(name, name, "plain", Amounts(cores), Amounts(CORES)) for name, cores in free.items())
        told = (tuple(kinds), places) if self.are_kinds_told else (None, ())
        return Snapshot(
            now, tuple(pilots), accounts, float(sum(free.values())), PRIORITIES, kinds=told[0], places=told[1]
        )

    def _seen(self, one: FullPilot) -> Pilot:
        user = self.user[one.run]
        return replace(one.seen(self.now), account=user, user=user)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        super().give_order(pilot, deadline, reason)
        self.times.append((self.now, "ordered", pilot.run))
        self.pilots[pilot.run].deadline = deadline

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        super().withdraw_order(pilot, reason)
        self.times.append((self.now, "withdrawn", pilot.run))
        self.pilots[pilot.run].deadline = None


def replaces_no_more(plan: Plan) -> None:
    """No user gives more cores back in place of orders than these were for."""
    gone, new = Counter[str](), Counter[str]()
    for withdrawal in plan.withdrawals:
        gone[withdrawal.pilot.user] += withdrawal.pilot.cores * bool(withdrawal.instead)
    for order in plan.orders:
        new[order.pilot.user] += order.pilot.cores * bool(order.instead_of)
    assert all(new[user] <= gone[user] for user in new)


def play(pool: BusyNodes, settings: ReclaimSettings) -> None:
    """Play two hours of an agent."""
    memory, confirmed, journal = Memory(), ConfirmedWithdrawals(), Lines(10**6)
    for minute in range(120):
        pool.pass_to(NOW + MINUTE * minute)
        if minute % EACH:
            continue
        done = AgentCycle(pool, settings, memory, journal, lambda: pool.now, acting=True, confirmed=confirmed).run()
        assert done.fault == "" and done.plan is not None
        replaces_no_more(done.plan)


@pytest.mark.daemons
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("are_kinds_told", [True, False], ids=["kinds", "cores"])
def test_orders_stand_through_events(policy: str, are_kinds_told: bool) -> None:
    """By the default policy nobody is asked twice within the hour."""
    counts = Counter[str]()
    for seed in most_of((5,), range(6)):
        pool = BusyNodes(seed, are_kinds_told)
        play(pool, POLICIES[policy])
        released: dict[str, int] = {}
        for at, act, run in pool.times:
            counts[act] += 1
            assert act == "withdrawn" or policy != "open-need" or at - released.get(run, 0) >= PAUSE
            released |= {run: at} if act == "withdrawn" else {}
    assert 0 < counts["withdrawn"] <= 0.55 * counts["ordered"], "they were 24 to 34 of 70 to 80 before"

"""The whole decision, from a snapshot to the plan, against one numpy sort. All in one process, in turn."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.figures import Figure
from benchmarks.made_up_room import NOW, mixed_pool
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.settings import ReclaimSettings

FLOATS, PILOTS, KINDS = 1_000_000, 100_000, 50
SITE = ReclaimSettings(
    "least-waste",
    horizon=7200,
    grace=7200,
    max_grace=86400,
    heartbeat_limit=3600,
    max_cores=10**9,
    max_cores_per_user=10**9,
    max_cores_per_user_hour=10**9,
)


def snapshot(
    nodes: int, pilots: int, kinds: int, users: int, accounts: int, *, by_kind: bool = True, parts: bool = False
) -> Snapshot:
    """A pool of mixed nodes and pilots that report; each account may lose two thirds of what it holds.

    by_kind: whether the batch system tells what waits by kind; else a tenth of the cores is wanted. parts: pilots are
    four times as large, and each can return all of its cores but one.
    """
    it, dice = mixed_pool(nodes, pilots, kinds, users), np.random.default_rng(20261128)
    running = [
        _reporting(one, f"group{number % accounts}", parts, dice)
        for number, mine in enumerate(it.pilots.values())
        for one in mine
    ]
    held = Counter[str]()
    for one in running:
        held[one.account] += one.cores
    over = [Account(name, cores, cores / 3, 0.0, 900.0 + place) for place, (name, cores) in enumerate(held.items())]
    wanted = Counter[str]()
    for kind in it.kinds:
        wanted[kind.account] += kind.jobs * kind.cores if kind.classes else 0
    if not by_kind:
        wanted = Counter({"a0": sum(held.values()) // 10})
    waits = [Account(name, 0.0, cores, cores, 1.0, 1.0) for name, cores in wanted.items()]
    if not by_kind:
        return Snapshot(NOW, tuple(running), (*over, *waits))
    return Snapshot(NOW, tuple(running), (*over, *waits), kinds=it.kinds, places=it.places)


def _reporting(one: Pilot, account: str, parts: bool, dice: np.random.Generator) -> Pilot:
    cores = one.cores * (4 if parts else 1)
    used, ends = float(dice.integers(0, cores + 1)), sorted(dice.integers(NOW, NOW + 30_000, 2).tolist())
    began, (first, last) = max(one.started, NOW - int(dice.integers(1, 20_000))), ends
    idle = (cores - used) * (last - first)
    report = PilotReport(NOW - 60, used, began, first, last, None, 0.0, idle, can_postpone_last_job=True)
    return replace(one, account=account, cores=cores, report=report, can_return=cores - 1 if parts else 0)


def figures(runs: int) -> list[Figure]:
    """Each pool, CPU time, with the seconds that are good enough."""
    pools = [
        (snapshot(nodes, PILOTS, KINDS, users, accounts), f"{users:,} users in {accounts:,} accounts", nodes, limit)
        for nodes, users, accounts, limit in (
            (20_000, 20, 5, 2.0),
            (20_000, 5_000, 5_000, 2.0),
            (20_000, 10_000, 10_000, 2.0),
            (400, 20, 5, 3.0),
        )
    ]
    rows = [(it, f"{PILOTS:,} pilots of {whose}, {nodes:,} nodes, {KINDS} kinds", s) for it, whose, nodes, s in pools]
    few = snapshot(400, 2_000, KINDS, 2_000, 2_000)
    rows.append((few, f"2,000 pilots of 2,000 accounts, 400 nodes, {KINDS} kinds", 0.3))
    rows.append(
        (snapshot(400, 1_600, 20, 20, 5, parts=True), "1,600 pilots that return parts, 400 nodes, 20 kinds", 1.0)
    )
    for users, accounts in ((20, 5), (20_000, 10_000)):
        it = snapshot(1, PILOTS, 1, users, accounts, by_kind=False)
        rows.append((it, f"by cores: {PILOTS:,} pilots of {users:,} users in {accounts:,} accounts", 2.0))
    numbers = np.random.default_rng(1).random(FLOATS)
    steps: list[Callable[[], object]] = [lambda: np.sort(numbers)]
    steps += [lambda it=it: make_plan(it, NOW, SITE) for it, _, _ in rows]  # type: ignore[misc]
    rounds = [[_seconds(step) for step in steps] for _ in range(runs)]
    floor, *whole = (statistics.median(times) for times in zip(*rounds))
    return [
        Figure(f"one numpy sort of {FLOATS:,} floats", floor, 1.0, None),
        *(Figure(what, took, took / floor, None, limit=limit) for (_, what, limit), took in zip(rows, whole)),
    ]


def _seconds(step: Callable[[], object]) -> float:
    begin = time.process_time()
    step()
    return time.process_time() - begin

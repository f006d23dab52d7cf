"""The chooser on large pools, from arrays to a plan, against one numpy sort of 1,000,000 floats. All in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.figures import Figure
from drainwise.reclaim.choose.plan import Rules, make_plan
from drainwise.reclaim.choose.problem import KILL, PART, Limits, Needs, Places, Problem, Real, Rows, Whole, sums

FLOATS, PILOTS, KINDS = 1_000_000, 100_000, 50


def pool(
    nodes: int, pilots: int, kinds: int, users: int, accounts: int, *, most_jobs: int = 200, parts: int = 0
) -> Problem:
    """Nodes with 2 to 8 GiB a core, one in twenty with GPUs; pilots of 1 to 16 cores; kinds of 1 to 32 cores.

    Of the kinds one wants whole nodes, three want four nodes at once. parts: beside itself, each pilot could give so
    many smaller parts of its cores. Each account may lose what it holds.
    """
    dice = np.random.default_rng(20261127)
    place, node_class = dice.integers(0, nodes, pilots), dice.choice(4, nodes, p=(0.5, 0.25, 0.2, 0.05))
    size = dice.choice((1, 2, 4, 8, 16), pilots, p=(0.15, 0.15, 0.2, 0.4, 0.1)) * (4 if parts else 1)
    gpus = (node_class[place] == 3) & (np.arange(pilots) % 3 == 0)
    holds = np.column_stack((size, size * dice.choice((1, 2, 3, 4), pilots), gpus)).astype(float)
    user, age = dice.integers(0, users, pilots), dice.integers(100, 200_000, pilots)
    free = np.column_stack((dice.integers(0, 4, nodes), dice.integers(0, 9, nodes), np.zeros(nodes))).astype(float)
    cores = free[:, 0] + sums(place, holds[:, 0], nodes)
    share = np.tile(np.arange(1, parts + 2) / (parts + 1), pilots)
    pilot = np.repeat(np.arange(pilots), parts + 1)
    gives = np.floor(holds[pilot] * share[:, None])
    loss: Real = gives[:, 0] * age[pilot].astype(float)
    claim: Real = np.rint(loss * dice.random(len(pilot)) ** 2)
    every = np.arange(len(pilot))
    way = np.where(share < 1, PART, KILL)
    rows = Rows(pilot, way, user[pilot], gives[:, [0, 2]], loss, claim, every, place[pilot], gives)
    limits = _limits(rows, users, accounts)
    return Problem(
        rows, Places(free, cores, np.ones(nodes, dtype=bool)), _needs(kinds, most_jobs, node_class, dice), limits
    )


def _limits(rows: Rows, users: int, accounts: int) -> Limits:
    account = np.arange(users) % accounts
    held = sums(account[rows.user], rows.spends[:, 0], accounts)
    return Limits(
        account,
        np.arange(users, dtype=float),
        np.column_stack((account, np.full(users, accounts))),
        np.append(held, 1e12),
        np.zeros(accounts + 1, dtype=np.int64),
        np.full(users, np.nan),
    )


def _needs(kinds: int, most_jobs: int, node_class: Whole, dice: np.random.Generator) -> Needs:
    cores = dice.choice((1, 2, 4, 8, 16, 32), kinds, p=(0.2, 0.1, 0.2, 0.3, 0.1, 0.1))
    memory, gpus = cores * dice.choice((1, 2, 4, 8), kinds), (np.arange(kinds) % 10 == 9).astype(float)
    classes = [(3,) if gpus[kind] else dice.choice(3, int(dice.integers(1, 4)), replace=False) for kind in range(kinds)]
    several, jobs = np.where(np.arange(kinds) % 15 == 14, 4, 1), dice.integers(1, most_jobs, kinds)
    return Needs(
        np.arange(kinds) % 5,
        jobs,
        np.column_stack((cores, memory, gpus)).astype(float),
        np.array([np.isin(node_class, some) for some in classes]),
        np.arange(kinds) == 33,
        several,
        (cores * several).astype(float),
        jobs.copy(),
        np.full(5, 1e12),
    )


def figures(runs: int) -> list[Figure]:
    """Each pool, CPU time, with the seconds that are good enough."""
    pools: list[tuple[str, Problem, float]] = []
    for nodes, users, accounts, limit in (
        (20_000, 20, 5, 2.0),
        (20_000, 5_000, 5_000, 2.0),
        (20_000, 10_000, 10_000, 2.0),
        (1_600, 20, 5, 3.0),
        (400, 20, 5, 3.0),
    ):
        what = f"{PILOTS:,} pilots of {users:,} users in {accounts:,} accounts on {nodes:,} nodes, {KINDS} kinds"
        pools.append((what, pool(nodes, PILOTS, KINDS, users, accounts), limit))
    small = pool(400, 2_000, KINDS, 2_000, 2_000, most_jobs=20)
    pools.append((f"2,000 pilots of 2,000 accounts on 400 nodes, {KINDS} kinds", small, 0.3))
    pools.append(
        ("1,600 pilots with parts on 400 nodes, 20 kinds", pool(400, 1_600, 20, 20, 5, most_jobs=20, parts=3), 1.0)
    )
    numbers = np.random.default_rng(1).random(FLOATS)
    steps: list[Callable[[], object]] = [lambda: np.sort(numbers)]
    steps += [lambda it=it: make_plan(it, Rules()) for _, it, _ in pools]  # type: ignore[misc]
    names = [what for what, _, _ in pools]
    rounds = [[_seconds(step) for step in steps] for _ in range(runs)]
    floor, *whole = (statistics.median(times) for times in zip(*rounds))
    limits = [limit for _, _, limit in pools]
    return [
        Figure(f"one numpy sort of {FLOATS:,} floats", floor, 1.0, None),
        *(Figure(what, took, took / floor, None, limit=limit) for what, took, limit in zip(names, whole, limits)),
    ]


def _seconds(step: Callable[[], object]) -> float:
    begin = time.process_time()
    step()
    return time.process_time() - begin

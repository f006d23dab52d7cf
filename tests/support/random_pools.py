"""Random pools by family, as arrays of a decision: nodes, pilots of users over quota, and kinds of waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from drainwise.reclaim.choose.problem import CORES, KILL, PART, Limits, Needs, Places, Problem, Real, Rows, Whole, sums

Dice = np.random.Generator
ENDLESS = 1e12


class Family(NamedTuple):
    """Of what a family's pools are made: ranges are inclusive."""

    nodes: tuple[int, int] = (2, 5)
    cores: tuple[int, ...] = (8, 16, 24, 32)
    pilots: tuple[int, int] = (0, 5)
    sizes: tuple[int, ...] = (1, 2, 4, 8, 12, 16)
    kinds: tuple[int, int] = (1, 3)
    asks: tuple[int, ...] = (1, 2, 4, 6, 8, 12, 16)
    jobs: tuple[int, int] = (1, 4)
    owed: tuple[int, int] = (8, 40)
    users: int = 1
    full: bool = False
    wide: bool = False


FAMILIES = {
    "small": Family(),
    "users": Family(users=3),
    "full": Family(full=True),
    "full-users": Family(full=True, users=3),
    "wide": Family(wide=True),
    "crowd": Family((4, 6), (16, 24, 32), (4, 8), (1, 2, 4, 8), (1, 2), (2, 4, 8), (1, 3), users=3, full=True),
    "tall": Family((2, 3), (96,), (40, 70), (1, 2), (6, 8), (1, 2, 4, 8), (150, 300), (10, 60), users=3, full=True),
    "broad": Family((50, 70), (8, 16), (1, 3), (2, 4, 8), (1, 3), (4, 6, 12), (1, 3), users=3, full=True, wide=True),
    "middle": Family(
        (30, 60), (32, 48, 64), (4, 8), (2, 4, 8, 12, 16), (3, 5), (4, 6, 8, 12, 16, 24), (4, 15), (100, 400)
    ),
}


@dataclass(frozen=True)
class _Node:
    cores: int
    total: Real
    free: Real
    other: bool


def random_problem(family: str, seed: int) -> Problem:
    """The pool of that number of a family, in which jobs wait for room; resources are cores, GiB and GPUs."""
    it, dice = FAMILIES[family], np.random.default_rng((sum(family.encode()), seed))
    nodes, holds, where = _nodes(it, dice)
    if not holds:
        return random_problem(family, seed + 1_000_003)
    rows = _rows(it, dice, np.array(holds), np.array(where))
    places = Places(
        np.array([node.free for node in nodes]),
        np.array([float(node.cores) for node in nodes]),
        np.ones(len(nodes), dtype=bool),
    )
    needs = _without_free(places, _needs(it, dice, nodes))
    if not needs.jobs.any():
        return random_problem(family, seed + 1_000_003)
    return Problem(rows, places, needs, _limits(it, dice, rows))


def with_spanning(it: Problem, seed: int) -> Problem:
    """The same pool, in which some pairs of pilots on different nodes are one pilot."""
    rows, dice = it.rows, np.random.default_rng(seed)
    whole = np.arange(len(rows))
    order = dice.permutation(len(rows))
    for one, other in zip(order[::2].tolist(), order[1::2].tolist()):
        if rows.place[one] != rows.place[other] and dice.random() < 0.6:
            whole[max(one, other)] = min(one, other)
    first, whole = np.unique(whole, return_inverse=True)
    count, order = len(first), np.argsort(whole.reshape(-1), kind="stable")
    loss, claim, *spends = (sums(whole, one, count) for one in (rows.loss, rows.claim, *rows.spends.T))
    ways, users = rows.way[first], rows.user[first]
    pieces = whole[order], rows.place[order], rows.gives[order]
    return replace(it, rows=Rows(np.arange(count), ways, users, np.column_stack(spends), loss, claim, *pieces))


def with_parts(it: Problem, seed: int) -> Problem:
    """The same pool, in which most pilots can return parts and go on: some of these are hardly to be expected."""
    rows, dice = it.rows, np.random.default_rng(seed)
    found = []
    for pilot, cores in enumerate(rows.spends[:, CORES].astype(int).tolist()):
        some = {*dice.integers(1, cores, 3).tolist(), cores - 1} if cores > 1 and dice.random() < 0.7 else set()
        found += [(pilot, part) for part in sorted(some)]
    of, cores = np.array(found, dtype=np.int64).reshape(-1, 2).T
    gives = np.floor(rows.gives[of] * (cores / rows.spends[of, CORES])[:, None])
    gives[:, 2:] = 0
    wastes = cores * dice.uniform(0, 7200, len(of)) * dice.random(len(of))
    claim = np.where(dice.random(len(of)) < 0.2, 1e9 * cores, np.rint(wastes))
    parts = Rows(
        of,
        np.full(len(of), PART),
        rows.user[of],
        np.column_stack((cores, 0 * cores)).astype(float),
        0.0 * cores,
        claim,
        len(rows) + np.arange(len(of)),
        rows.place[of],
        gives,
    )
    both = [np.concatenate((getattr(rows, one.name), getattr(parts, one.name))) for one in fields(Rows)]
    return replace(it, rows=Rows(*both))


def _nodes(it: Family, dice: Dice) -> tuple[list[_Node], list[list[float]], list[int]]:
    nodes, holds, where = [], [], []
    for number in range(int(dice.integers(it.nodes[0], it.nodes[1] + 1))):
        cores = int(dice.choice(it.cores))
        free = np.array((cores, cores * int(dice.choice((2, 4))), int(dice.choice((0, 0, 0, 2, 4)))), dtype=float)
        total = free.copy()
        for _ in range(int(dice.integers(it.pilots[0], it.pilots[1] + 1))):
            size = int(dice.choice(it.sizes))
            held = np.array((size, size * int(dice.choice((1, 2, 3, 4))), int(dice.random() < 0.3)), dtype=float)
            if size > free[0]:
                continue
            held = np.minimum(held, free)
            free -= held
            holds.append(held.tolist())
            where.append(number)
        if it.full and free[0] and where and where[-1] == number:
            holds[-1][0] += free[0]
            free[0] = 0
        elif it.full and free[0]:
            holds.append([free[0], free[1], 0.0])
            where.append(number)
            free[:2] = 0
        nodes.append(_Node(cores, total, free, bool(dice.random() < 1 / 3)))
    return nodes, holds, where


def _rows(it: Family, dice: Dice, holds: Real, where: Whole) -> Rows:
    """Each pilot can be killed; 70 % report, the others cost what facts say."""
    count = len(holds)
    age = np.exp(dice.uniform(np.log(100), np.log(100_000), count))
    loss = np.rint(holds[:, 0] * age)
    reports = dice.random(count) < 0.7
    claim = np.where(reports, np.rint(loss * dice.random(count) ** 2), loss)
    user = dice.integers(0, it.users, count)
    every = np.arange(count)
    spends = holds[:, [0, 2]]
    return Rows(every, np.full(count, KILL), user, spends, loss, claim, every, where, holds)


def _needs(it: Family, dice: Dice, nodes: list[_Node]) -> Needs:
    count = int(dice.integers(it.kinds[0], it.kinds[1] + 1))
    cores = dice.choice(it.asks, count)
    memory = np.where(dice.random(count) < 0.4, cores * dice.choice((2, 4), count), 0)
    gpus = (dice.random(count) < 0.2).astype(float)
    classes = dice.integers(0, 3, count)  # both, the first, the second
    other = np.array([node.other for node in nodes])
    may = (classes == 0)[:, None] | ((classes == 2)[:, None] == other[None, :])
    whole = (dice.random(count) < 1 / 3) & it.wide
    several = np.where((dice.random(count) < 1 / 3) & it.wide, 2, 1)
    jobs = dice.integers(it.jobs[0], it.jobs[1] + 1, count)
    account = dice.integers(0, 2, count)
    owed = np.where(dice.random(2) < 0.7, ENDLESS, dice.integers(*it.owed, 2).astype(float))
    needs = np.column_stack((cores, memory, gpus)).astype(float)
    return Needs(account, jobs, needs, may, whole, several, cores * several.astype(float), jobs.copy(), owed)


def _without_free(places: Places, needs: Needs) -> Needs:
    """What is left when each kind in turn has used what is free; `places.free` is reduced."""
    jobs, owed, free = needs.jobs.copy(), needs.owed.copy(), places.free
    for kind in range(len(jobs)):
        if needs.whole[kind] or needs.several[kind] > 1:
            continue
        for place in np.flatnonzero(needs.may[kind]):
            need = needs.needs[kind]
            while jobs[kind] and owed[needs.account[kind]] >= needs.cores[kind] and (free[place] >= need).all():
                free[place] -= need
                jobs[kind] -= 1
                owed[needs.account[kind]] -= needs.cores[kind]
    return Needs(
        needs.account, jobs, needs.needs, needs.may, needs.whole, needs.several, needs.cores, jobs.copy(), owed
    )


def _limits(it: Family, dice: Dice, rows: Rows) -> Limits:
    """One limit for each account of users; one user may lose all."""
    account = np.array((0, 0, 1))[: it.users]
    held = np.bincount(account[rows.user], weights=rows.spends[:, 0], minlength=2)
    share = dice.choice((0.0, 0.3, 0.6), 2) if it.users > 1 else np.zeros(2)
    return Limits(
        account,
        np.arange(it.users, dtype=float),
        account[:, None].copy(),
        np.floor(held * (1 - share)),
        np.zeros(2, dtype=np.int64),
        np.full(it.users, np.nan),
    )

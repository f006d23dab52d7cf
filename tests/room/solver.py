"""The same choice by scipy's integer solver: most jobs in the kinds' order, then fewest cores, then least cost."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.reclaim.choose.problem import Real
from drainwise.reclaim.room import demand_left, room_facts

from .pools import ENDLESS, Pool


def solved(pool: Pool, gpus: float = float(ENDLESS)) -> tuple[dict[str, int], int, float]:
    """The jobs of each kind beyond those that need no room, the cores lost, and the cost; of a pool of one user.

    gpus: how many its pilots may lose, where a kind needs some.
    """
    facts = room_facts(pool.kinds, pool.places)
    owed = {one.account: float(ENDLESS) for one in pool.kinds} | dict(pool.owed)
    left = demand_left(facts, owed, pool.returning)
    model = _Model(len(pool.pilots), len(pool.kinds), len(pool.places))
    for at, place in enumerate(facts.places):
        _place(model, pool, at, left.room[at], closed=bool(left.closed[at]))
        for number, kind in enumerate(pool.kinds):
            allowed = place.node_class in kind.classes and not left.closed[at]
            model.at_most({model.here(number, at): 1}, float(left.jobs[number]) if allowed else 0.0)
            model.at_most({model.here(number, at): 1, model.jobs(number): -1}, 0)
    accounts: dict[str, dict[int, float]] = {}
    for number, kind in enumerate(pool.kinds):
        model.at_most({model.jobs(number): 1}, float(left.jobs[number]))
        parts = {model.here(number, at): -1.0 for at in range(len(facts.places))}
        model.at_most(parts | {model.jobs(number): float(kind.places)}, 0)
        accounts.setdefault(kind.account, {})[model.jobs(number)] = float(kind.cores)
    for account, terms in accounts.items():
        model.at_most(terms, math.floor(left.owed[facts.accounts.index(account)] + 1e-6))
    lost = {row: float(one.cores) for row, one in enumerate(pool.pilots)}
    model.at_most(lost, float(pool.most.get("alice", ENDLESS)))
    if "gpus" in facts.resources:
        model.at_most({row: float(_amount(one.holds, "gpus")) for row, one in enumerate(pool.pilots)}, gpus)
    jobs = {}
    for number, kind in enumerate(pool.kinds):
        jobs[kind.name] = -round(model.least({model.jobs(number): -1.0}))
    cores = round(model.least(lost))
    cost = model.least({row: pool.costs.get(one.run, 0.0) for row, one in enumerate(pool.pilots)})
    return {name: number for name, number in jobs.items() if number}, cores, cost


class _Model:
    """Which pilots go, how many jobs of a kind run on a place, how many run in all; each objective is then held."""

    def __init__(self, pilots: int, kinds: int, places: int) -> None:
        self._pilots, self._kinds, self._places = pilots, kinds, places
        self._size = pilots + kinds * places + kinds
        self._rows: list[Real] = []
        self._most: list[float] = []

    def here(self, kind: int, place: int) -> int:
        return self._pilots + kind * self._places + place

    def jobs(self, kind: int) -> int:
        return self._pilots + self._kinds * self._places + kind

    def at_most(self, terms: Mapping[int, float], most: float) -> None:
        row = np.zeros(self._size)
        for column, factor in terms.items():
            row[column] = factor
        self._rows.append(row)
        self._most.append(most)

    def least(self, terms: Mapping[int, float]) -> float:
        objective = np.zeros(self._size)
        for column, factor in terms.items():
            objective[column] = factor
        upper = np.full(self._size, 1000.0)
        upper[: self._pilots] = 1
        # Each worker of a suite reads this file, and one of them solves.
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            objective,
            constraints=LinearConstraint(np.array(self._rows), -np.inf, np.array(self._most)),
            integrality=np.ones(self._size),
            bounds=Bounds(0, upper),
            options={"mip_rel_gap": 0.0},
        )
        assert found.success, found.message
        self.at_most(terms, round(found.fun) + 1e-6)
        return float(round(found.fun))


def _place(model: _Model, pool: Pool, at: int, room: Real, *, closed: bool) -> None:
    """What the jobs on a place take is free there or held by pilots that go."""
    places = sorted(pool.places, key=lambda one: one.name)
    place = places[at]
    facts = room_facts(pool.kinds, pool.places)
    mine = [row for row, one in enumerate(pool.pilots) if one.place == place.name]
    for number, name in enumerate(facts.resources):
        terms = {row: -float(_amount(pool.pilots[row].holds, name)) for row in mine}
        for kind in range(len(pool.kinds)):
            needs = float(facts.needs.needs[kind, number])
            if pool.kinds[kind].whole and name == "cores":
                needs = max(needs, float(place.total.cores))
            terms[model.here(kind, at)] = needs
        model.at_most(terms, 0.0 if closed else float(room[number]))
    alone = [kind for kind in range(len(pool.kinds)) if pool.kinds[kind].whole or not place.divisible]
    for kind in alone:  # 1000 × jobs of this kind + all other jobs ≤ 1000
        terms = {model.here(other, at): 1.0 for other in range(len(pool.kinds))} | {model.here(kind, at): 1000.0}
        model.at_most(terms, 1000.0)


def _amount(held: Amounts | None, name: str) -> int:
    return dict((held or Amounts()).named()).get(name, 0)

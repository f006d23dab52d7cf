"""The same choice by scipy's integer solver: most jobs in the needs' order, then the least of a price."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from drainwise.reclaim.choose.problem import Problem, Real, Whole


class Exact:
    """Which rows go, how many jobs of a kind run on a place, and how many in all."""

    def __init__(self, problem: Problem, seconds: float = 60.0) -> None:
        self._it = it = problem
        self._seconds = seconds
        self._n, self._kinds, self._places = len(it.rows), len(it.needs.jobs), len(it.places.free)
        self._size = self._n + self._kinds * self._places + self._kinds
        self._terms: list[Mapping[int, float]] = []
        self._most: list[float] = []
        self._upper = np.full(self._size, 1.0)
        self._upper[self._n :] = np.concatenate((np.repeat(it.needs.most, self._places), it.needs.jobs))
        self._room()
        self._jobs()
        for limit in range(len(it.limits.most)):
            bound = (it.limits.binds[it.rows.user] == limit).any(axis=1)
            spent = it.rows.spends[:, it.limits.counts[limit]]
            self.at_most({int(row): float(spent[row]) for row in np.flatnonzero(bound)}, it.limits.most[limit])

    def _here(self, kind: int, place: int) -> int:
        return self._n + kind * self._places + place

    def _all(self, kind: int) -> int:
        return self._n + self._kinds * self._places + kind

    def _room(self) -> None:
        it = self._it
        for place in range(self._places):
            pieces, _ = it.pieces(np.array([place]))
            for resource in range(it.places.free.shape[1]):
                terms = {int(it.rows.row[one]): -float(it.rows.gives[one, resource]) for one in pieces}
                for kind in range(self._kinds):
                    terms[self._here(kind, place)] = float(it.needed(kind, np.array([place]))[0, resource])
                self.at_most(terms, float(it.places.free[place, resource]))
            for kind in range(self._kinds):
                if not it.needs.may[kind, place]:
                    self._upper[self._here(kind, place)] = 0
                elif it.needs.whole[kind] or not it.places.shared[place]:
                    others = {self._here(other, place): 1.0 for other in range(self._kinds)}
                    self.at_most(others | {self._here(kind, place): 1000.0}, 1000.0)

    def _jobs(self) -> None:
        it, pilots = self._it, dict[int, dict[int, float]]()
        for row, pilot in enumerate(it.rows.pilot.tolist()):
            pilots.setdefault(pilot, {})[row] = 1.0
        for ways in pilots.values():
            if len(ways) > 1:
                self.at_most(ways, 1)
        for kind in range(self._kinds):
            parts = {self._here(kind, place): -1.0 for place in range(self._places)}
            self.at_most(parts | {self._all(kind): float(it.needs.several[kind])}, 0)
            if it.needs.several[kind] > 1:
                for place in range(self._places):
                    self.at_most({self._here(kind, place): 1.0, self._all(kind): -1.0}, 0)
        for account, owed in enumerate(it.needs.owed):
            mine = np.flatnonzero(it.needs.account == account).tolist()
            self.at_most({self._all(kind): float(it.needs.cores[kind]) for kind in mine}, float(owed))

    def at_most(self, terms: Mapping[int, float], most: float) -> None:
        """Hold a sum; columns up to n are rows."""
        self._terms.append(terms)
        self._most.append(most)

    def budget(self, most: Real) -> None:
        """Hold what each user loses in cores and devices, U × 2."""
        for user, bounds in enumerate(most.tolist()):
            mine = np.flatnonzero(self._it.rows.user == user)
            for column, bound in enumerate(bounds):
                self.at_most({int(row): float(self._it.rows.spends[row, column]) for row in mine}, bound)

    def only(self, gone: Whole) -> None:
        """Let no other rows go than these."""
        self._upper[: self._n] = 0
        self._upper[gone] = 1

    def fix(self, jobs: Whole) -> None:
        """Serve at least these jobs of each kind."""
        for kind, number in enumerate(jobs.tolist()):
            self.at_most({self._all(kind): -1.0}, -float(number))

    def jobs(self) -> Whole:
        """The most jobs in the needs' order, which are fixed from here on."""
        most = np.zeros(self._kinds, dtype=np.int64)
        for kind in range(self._kinds):
            if self._it.needs.jobs[kind]:
                objective = np.zeros(self._size)
                objective[self._all(kind)] = -1
                most[kind] = round(self._solve(objective)[self._all(kind)])
                self.at_most({self._all(kind): -1.0}, -float(most[kind]))
        return most

    def least(self, price: Real) -> float:
        """The least sum of a price of rows."""
        objective = np.zeros(self._size)
        objective[: self._n] = price
        return float((np.rint(self._solve(objective)[: self._n]) * price).sum())

    def _solve(self, objective: Real) -> Real:
        where = [(number, column) for number, terms in enumerate(self._terms) for column in terms]
        values = [factor for terms in self._terms for factor in terms.values()]
        # Each worker of a suite reads this file, and one of them solves.
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_matrix

        matrix = coo_matrix((values, tuple(zip(*where))), (len(self._terms), self._size)).tocsr()
        found = milp(
            objective,
            constraints=LinearConstraint(matrix, -np.inf, np.array(self._most) + 1e-6),
            integrality=np.ones(self._size),
            bounds=Bounds(0, self._upper),
            options={"mip_rel_gap": 1e-6, "time_limit": self._seconds},
        )
        assert found.x is not None, found.message
        solution: Real = found.x
        return solution

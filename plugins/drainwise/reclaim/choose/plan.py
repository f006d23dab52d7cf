"""Plan in two passes: facts say which jobs are served and what each user loses, claims which of its pilots go for that.

A user's reports cost it at most its extra cores more than facts do, and by default nobody else: each user, or group of
users whose reports compete, is chosen for anew with its own rows, on places where nothing else depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.choose import LOOKS, choose
from drainwise.reclaim.choose.fill import reprieve
from drainwise.reclaim.choose.problem import CORES, DEVICES, Limits, Mask, Needs, Places, Problem, Real, Rows, Whole
from drainwise.reclaim.choose.sets import sets_on
from drainwise.reclaim.choose.state import ROUNDING, State

USER, ACCOUNT, SITE = "user", "account", "site"
"""Whose reports compete with each other."""
IDLE = 600.0
"""Seconds for which each core beyond the least is taken to idle; an hour changes waste by up to 4 %."""


@dataclass(frozen=True)
class Rules:
    """How a plan weighs. rank_factor: how much dearer a core is for each rank of its user. compete: USER, ACCOUNT or SITE.

    idle: seconds a core beyond the least counts. looks: groups of places solved anew in each pass. join: whether small
    pools are solved as a whole.
    """

    rank_factor: float = 1.0
    compete: str = USER
    idle: float = IDLE
    looks: int = LOOKS
    join: bool = True


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows go (n), and the parts of jobs that each place serves (P × K) with what is free.

    by_facts: n, rows that would go by facts alone. budget: U × 2, cores and devices that each user may lose. spared: n, rows that go on
    because what others give has made them unneeded.
    """

    gone: Mask
    jobs: Whole
    served: Whole
    by_facts: Mask
    budget: Real
    spared: Mask


def price_by_facts(rows: Rows, limits: Limits, rank_factor: float) -> Real:
    """Return cores, dearer by a factor for each rank of the user, and so little of the loss that it only breaks ties."""
    loss = np.where(np.isfinite(rows.loss), rows.loss, 0)
    cores = rows.spends[:, CORES] * (1 + rank_factor * limits.rank[rows.user])
    return np.where(np.isfinite(rows.loss), cores + 0.5 * loss / (1 + loss.sum()), np.inf)


def make_plan(problem: Problem, rules: Rules) -> Plan:
    """Return which rows go, for which jobs."""
    rows, limits = problem.rows, problem.limits
    first = choose(problem, price_by_facts(rows, limits, rules.rank_factor), rules.looks, join=rules.join)
    lost = _lost(rows, len(limits.rank), first.gone)
    budget = lost.copy()
    budget[:, CORES] += extra_cores(rows, limits, lost[:, CORES], first.rest)
    price = rows.claim + rules.idle * rows.spends[:, CORES]
    price = np.where(np.isfinite(first.price), price, np.inf)
    group = {USER: np.arange(len(limits.rank)), ACCOUNT: limits.account, SITE: np.zeros(len(limits.rank), dtype=np.int64)}
    groups = _Groups(problem, first, group[rules.compete], budget, price)
    gone, jobs = groups.chosen(rules)
    second = State(problem, np.where(gone, first.price, np.inf))
    second.go(np.flatnonzero(gone))
    for kind in range(jobs.shape[1]):
        places = np.flatnonzero(jobs[:, kind])
        second.serve(kind, places, jobs[places, kind])
    reprieve(second)
    return Plan(second.gone, second.jobs, second.served, first.gone, budget, gone & ~second.gone)


def _lost(rows: Rows, users: int, gone: Mask | Whole) -> Real:
    """Return the cores and devices that each user loses by some rows, U × 2."""
    columns = [np.bincount(rows.user[gone], weights=rows.spends[gone, one], minlength=users) for one in (CORES, DEVICES)]
    return np.column_stack(columns).astype(float)


def extra_cores(rows: Rows, limits: Limits, lost: Real, rest: Real) -> Real:
    """Return how many cores more than by facts (lost, U) reports may cost each user that loses some, in users' ranks.

    rest: L, what is left of each limit, which users share in that order.
    """
    largest = np.zeros(len(lost))
    np.maximum.at(largest, rows.user, rows.spends[:, CORES])
    auto = np.maximum(largest, np.floor(lost / 4))
    extra = np.where(lost > 0, np.where(np.isnan(limits.extra), auto, limits.extra), 0)
    rest = rest.copy()
    for user in np.lexsort((np.arange(len(lost)), limits.rank)).tolist():
        if extra[user] > 0:
            bound = [one for one in limits.binds[user].tolist() if one >= 0 and limits.counts[one] == CORES]
            extra[user] = max(0.0, min([float(extra[user]), *rest[bound].tolist()]))
            rest[bound] -= extra[user]
    return extra


class _Groups:
    """The groups of users whose reports compete, and where each may choose: by facts alone.

    A place that only one group clears is its own, with what is free there and the jobs. Of a place where nothing goes, what
    is free belongs to the group that holds most cores there. On other places of a group its rows give room by themselves.
    Where several groups clear a place together each may only give as much there by other rows.
    """

    def __init__(self, problem: Problem, first: State, group: Whole, budget: Real, price: Real) -> None:
        self.problem, self.first, self.price = problem, first, price
        rows, places = problem.rows, len(problem.places.free)
        self.of_row = group[rows.user]
        of_piece = self.of_row[rows.row]
        gone = first.gone[rows.row]
        self.owner = _most_held(rows.place, of_piece, rows.gives[:, 0], places)
        low, high = np.full(places, len(rows) + len(group)), np.full(places, -1)
        np.minimum.at(low, rows.place[gone], of_piece[gone])
        np.maximum.at(high, rows.place[gone], of_piece[gone])
        self.cleared = high >= 0
        self.mixed = self.cleared & (low != high)
        self.owner = np.where(self.cleared, high, self.owner)
        fixed = first.gone & problem.wide
        self.mixed[rows.place[fixed[rows.row]]] = True
        self.order = np.argsort(self.of_row, kind="stable")
        self.begin = np.searchsorted(self.of_row[self.order], np.arange(int(group.max(initial=0)) + 2))
        self.left = budget - _lost(rows, len(budget), first.gone)

    def chosen(self, rules: Rules) -> tuple[Mask, Whole]:
        """Return the rows that go (n) and the parts of jobs on each place (P × K) when each group is chosen for."""
        gone, jobs = self.first.gone.copy(), self.first.jobs.copy()
        losing = np.unique(self.of_row[self.first.gone]).tolist()
        total = max(1.0, float(self.first.gone.sum()))
        for group in losing:
            rows = self.order[self.begin[group] : self.begin[group + 1]]
            rows = rows[np.isfinite(self.price[rows]) & (~self.problem.wide[rows])]
            looks = 5 + int(rules.looks * self.first.gone[rows].sum() / total)
            self._choose(group, rows, looks, rules, gone, jobs)
            for place in np.unique(self._place(rows[self.mixed[self._place(rows)]])).tolist():
                self._swap(rows[self._place(rows) == place], place, gone)
        return gone, jobs

    def _place(self, rows: Whole) -> Whole:
        return self.problem.rows.place[self.problem.pieces_of[rows]]

    def _choose(self, group: int, rows: Whole, looks: int, rules: Rules, gone: Mask, jobs: Whole) -> None:
        """Choose anew among the rows of a group on places that are not mixed, for the jobs that it serves there."""
        problem, first = self.problem, self.first
        rows = rows[~self.mixed[self._place(rows)]]
        places = np.unique(self._place(rows))
        mine = self.owner[places] == group
        cleared = mine & self.cleared[places]
        parts = first.jobs[places[cleared]].sum(axis=0)
        kinds = np.flatnonzero(parts)
        if not len(kinds):
            return
        part, start = self._part(rows, places, kinds, parts[kinds], mine, cleared)
        price = self.price[rows]
        state = State(part, price)
        state.go(np.flatnonzero(first.gone[rows]))
        for column in range(len(kinds)):
            state.serve(column, np.arange(len(places)), start[:, column])
        found = choose(part, price, looks, state, rules.join, _prices(part.rows, rules.idle))
        self._move(rows[gone[rows]], rows[found.gone], gone)
        jobs[np.ix_(places, kinds)] += found.jobs - start

    def _part(
        self, rows: Whole, places: Whole, kinds: Whole, parts: Whole, mine: Mask, cleared: Mask
    ) -> tuple[Problem, Whole]:
        """Return the problem of one group, and the parts of jobs that its places serve by facts."""
        problem, first, table, needs = self.problem, self.first, self.problem.rows, self.problem.needs
        where = np.searchsorted(places, self._place(rows))
        users, user = np.unique(table.user[rows], return_inverse=True)
        pieces = problem.pieces_of[rows]
        start = np.where(cleared[:, None], first.jobs[np.ix_(places, kinds)], 0)
        free = first.room[places].copy()
        for column, kind in enumerate(kinds.tolist()):
            free += start[:, column, None] * problem.needed(kind, places)
        going = first.gone[rows]
        np.subtract.at(free, where[going], table.gives[pieces[going]])
        free[~mine] = np.minimum(free[~mine], 0)
        closed = first.closed[places] & ~cleared
        may = needs.may[np.ix_(kinds, places)] & ~closed & (mine | problem.places.shared[places])
        alone = needs.whole[kinds] | (needs.several[kinds] > 1)
        others = first.jobs[np.ix_(places, kinds)].T > start.T
        may &= ~alone[:, None] | (mine & ~others)
        some = Rows(
            np.unique(table.pilot[rows], return_inverse=True)[1].reshape(-1),
            table.way[rows],
            user.reshape(-1),
            table.spends[rows],
            table.loss[rows],
            table.claim[rows],
            np.arange(len(rows)),
            where,
            table.gives[pieces],
        )
        count = len(users)
        limits = Limits(
            problem.limits.account[users],
            problem.limits.rank[users],
            np.column_stack((np.arange(count), np.arange(count) + count)),
            (self.left[users] + _lost(table, len(self.left), rows[going])[users]).T.reshape(-1),
            np.repeat(np.array([CORES, DEVICES]), count),
            np.zeros(count),
        )
        most = np.where(needs.several[kinds] > 1, first.served[kinds], needs.most[kinds])
        asked = Needs(
            np.zeros(len(kinds), dtype=np.int64),
            parts,
            needs.needs[kinds],
            may,
            needs.whole[kinds],
            np.ones(len(kinds), dtype=np.int64),
            np.zeros(len(kinds)),
            most,
            np.zeros(1),
        )
        held = Places(free, problem.places.cores[places], problem.places.shared[places])
        return Problem(some, held, asked, limits), start

    def _move(self, before: Whole, after: Whole, gone: Mask) -> None:
        """Let other rows go in place of those before."""
        table = self.problem.rows
        gone[before] = False
        gone[after] = True
        np.add.at(self.left, table.user[before], table.spends[before])
        np.subtract.at(self.left, table.user[after], table.spends[after])

    def _swap(self, rows: Whole, place: int, gone: Mask) -> None:
        """Give by other rows of the same group, on a place that several clear, no less than the rows that go there."""
        table, problem = self.problem.rows, self.problem
        going = rows[gone[rows]]
        if not len(going):
            return
        asked = table.gives[problem.pieces_of[going]].sum(axis=0)
        state = State(problem, self.price)
        state.barred[:] = True
        state.barred[rows] = False
        best, cost = going, float(self.price[going].sum())
        for sets in sets_on(state, np.array([place]), asked[None, :]):
            cheaper = (sets.gives[0] >= asked).all(axis=1) & (sets.price[0] < cost)
            for chosen in np.flatnonzero(cheaper)[np.argsort(sets.price[0, cheaper], kind="stable")].tolist():
                some = sets.rows_of(0, chosen)
                self._move(best, some, gone)
                if (self.left[table.user[some]] >= -ROUNDING).all():
                    best = some
                    break
                self._move(some, best, gone)


def _most_held(place: Whole, group: Whole, cores: Real, places: int) -> Whole:
    """Return for each place the group that holds most cores there, −1 where none does."""
    count = int(group.max(initial=0)) + 1
    key, where = np.unique(place * count + group, return_inverse=True)
    held = np.bincount(where.reshape(-1), weights=cores, minlength=len(key)) if len(key) else np.zeros(0)
    order = np.lexsort((-key, held))
    found = np.full(places, -1)
    found[key[order] // count] = key[order] % count
    return found


def _prices(rows: Rows, idle: float) -> list[Real]:
    """Return the prices by which a large part is filled: claims, and cores at five prices up to endless."""
    cores = rows.spends[:, CORES]
    usual = float(np.median(rows.claim / np.maximum(cores, 1))) if len(rows) else 0.0
    each = [idle, *(idle + usual * times for times in (0.5, 2.0, 8.0))]
    found: list[Real] = [rows.claim + one * cores for one in each]
    return [*found, cores + rows.claim / (1 + rows.claim.sum())]

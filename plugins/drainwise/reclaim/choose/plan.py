"""Plan in two passes: facts say which jobs are served and what each user loses, claims which of its pilots go for that.

A user's reports cost it at most its extra cores more than facts do, and nobody else anything: each user, or group of
users whose reports compete, is chosen for anew with its own rows, for the jobs for which it makes the room by facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drainwise.reclaim.choose.choose import LOOKS, choose
from drainwise.reclaim.choose.fill import MANY, reprieve
from drainwise.reclaim.choose.problem import (
    CORES,
    PART,
    ROUNDING,
    STANDING,
    Limits,
    Mask,
    Needs,
    Problem,
    Real,
    Rows,
    State,
    Whole,
    largest_of,
)
from drainwise.reclaim.choose.sets import sets_on

USER, ACCOUNT, SITE = "user", "account", "site"
"""Whose reports compete with each other."""
PART_SHARE = 0.5
"""By facts a core of a part, which no payload is ended for, counts as so much of one of a pilot that ends."""
MOST_GROUPS = 50
"""Groups that are chosen for anew, those that lose most."""
MOST_WASTE = 1e18
"""Core-seconds; whoever claims more is believed no more."""
IDLE = 600.0
"""Seconds for which each core beyond the least is taken to idle; an hour changes waste by up to 4 %."""


@dataclass(frozen=True)
class Rules:
    """How a plan weighs.

    rank_factor: how much dearer a core is for each rank of its user. compete: USER, ACCOUNT or SITE. idle: seconds
    that a core beyond the least counts. looks: groups of places that are solved anew in each pass; in
    a pool of many rows a tenth of that by facts, a third by claims. join: whether small pools are solved as a whole.
    """

    rank_factor: float = 1.0
    compete: str = USER
    idle: float = IDLE
    looks: int = LOOKS
    join: bool = True


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows have `gone` (n), the parts of `jobs` that each place serves (P × K), the jobs that are `served` (K).

    by_facts: n, rows that would go by facts alone. budget: U × 2, cores and devices that each user may lose. spared: n,
    rows that go on because what others give has made them unneeded. room: P × R, that no job uses then.
    """

    gone: Mask
    jobs: Whole
    served: Whole
    by_facts: Mask
    budget: Real
    spared: Mask
    room: Real


def price_by_facts(rows: Rows, limits: Limits, rank_factor: float) -> Real:
    """Return cores, dearer by a factor for each rank of the user, and of the loss what only breaks ties.

    What stands has lost its cores already, and no payload is ended for a part.
    """
    loss = np.where(np.isfinite(rows.loss), rows.loss, 0)
    cores = rows.spends[:, CORES] * (1 + rank_factor * limits.rank[rows.user])
    cores = np.where(rows.way == STANDING, 0.0, np.where(rows.way == PART, PART_SHARE, 1.0)) * cores
    return np.where(np.isfinite(rows.loss), cores + 0.5 * loss / (1 + loss.sum()), np.inf)


def price_by_claims(rows: Rows, idle: float) -> Real:
    """Return what each row wastes by its report, with what its cores idle beyond the least, in core-seconds."""
    return np.minimum(rows.claim, MOST_WASTE) + np.where(rows.way == STANDING, 0.0, idle * rows.spends[:, CORES])


def make_plan(problem: Problem, rules: Rules) -> Plan:
    """Return which rows go, for which jobs."""
    rows, limits = problem.rows, problem.limits
    looks = [rules.looks // part for part in ((1, 1) if len(rows) <= MANY else (10, 3))]
    first = choose(problem, price_by_facts(rows, limits, rules.rank_factor), looks[0], join=rules.join)
    lost = _lost(rows, len(limits.rank), first.gone)
    budget = lost.copy()
    budget[:, CORES] += extra_cores(rows, limits, lost[:, CORES], first.rest)
    price = np.where(np.isfinite(first.price), price_by_claims(rows, rules.idle), np.inf)
    groups = _Groups(problem, first, groups_of(limits, rules.compete), budget, price)
    gone, jobs = groups.chosen(rules, looks[1])
    second = State(problem, np.where(gone, first.price, np.inf))
    second.go(np.flatnonzero(gone))
    for kind in range(jobs.shape[1]):
        places = np.flatnonzero(jobs[:, kind])
        second.serve(kind, places, jobs[places, kind])
    reprieve(second)
    return Plan(second.gone, second.jobs, second.served, first.gone, budget, gone & ~second.gone, second.room)


def groups_of(limits: Limits, compete: str) -> Whole:
    """Return the group of each user whose reports compete with each other."""
    one_each = np.arange(len(limits.rank))
    return {USER: one_each, ACCOUNT: limits.account, SITE: np.zeros_like(one_each)}[compete]


def _lost(rows: Rows, users: int, gone: Mask | Whole) -> Real:
    """Return the cores and devices that each user loses by some rows, U × 2."""
    return np.column_stack([np.bincount(rows.user[gone], one, users) for one in rows.spends[gone].T]).astype(float)


def extra_cores(rows: Rows, limits: Limits, lost: Real, rest: Real) -> Real:
    """Return how many cores more than by facts (lost, U) reports may cost each user that loses some.

    rest: L, what is left of each limit, which users share in the order of their ranks.
    """
    auto = np.maximum(largest_of(rows, len(lost))[:, CORES], np.floor(lost / 4))
    extra = np.where(np.isnan(limits.extra), auto, limits.extra) - limits.taken
    extra = np.where(lost > 0, np.maximum(extra, 0), 0)
    rest = rest.copy()
    for user in np.lexsort((np.arange(len(lost)), limits.rank)).tolist():
        if extra[user] > 0:
            bound = [one for one in limits.binds[user].tolist() if one >= 0 and limits.counts[one] == CORES]
            extra[user] = max(0.0, min([float(extra[user]), *rest[bound].tolist()]))
            rest[bound] -= extra[user]
    return extra


class _Groups:
    """The groups of users whose reports compete, and where each may choose: by facts alone.

    A place that only one group clears is its own, with what is free there and the jobs. Where nothing goes, both belong
    to the group that holds most cores there. Where several groups clear a place each of these may only give as much
    there by other rows. On all other places of a group its rows give room by themselves.

    owner: P, whose what is free is. mixed: P, which several groups clear. tied: n, rows that give room there.
    """

    def __init__(self, problem: Problem, first: State, group: Whole, budget: Real, price: Real) -> None:
        self.problem, self.first, self.price = problem, first, price
        rows, places = problem.rows, len(problem.places.free)
        self.of_row = group[rows.user]
        of_piece, gone = self.of_row[rows.row], first.gone[rows.row]
        cleared = np.zeros(places, dtype=bool)
        cleared[rows.place[gone]] = True
        held = np.where(gone | ~cleared[rows.place], rows.gives[:, 0], -1.0)
        self.owner = _most_held(rows.place, of_piece, held, places)
        others = gone & (of_piece != self.owner[rows.place])
        self.mixed = np.zeros(places, dtype=bool)
        self.mixed[rows.place[others]] = True
        self.tied = np.zeros(len(rows), dtype=bool)
        while (more := ~self.tied[rows.row] & self.mixed[rows.place]).any():
            self.tied[rows.row[more]] = True
            self.mixed[rows.place[gone & problem.wide[rows.row] & self.tied[rows.row]]] = True
        self.order = np.argsort(self.of_row, kind="stable")
        self.begin = np.searchsorted(self.of_row[self.order], np.arange(int(group.max(initial=0)) + 2))
        self.left = budget - _lost(rows, len(budget), first.gone)

    def chosen(self, rules: Rules, most_looks: int) -> tuple[Mask, Whole]:
        """Return the rows that go (n) and the parts of jobs on each place (P × K) when each group is chosen for.

        Beyond MOST_GROUPS those that lose least only swap rows place by place.
        """
        gone, jobs = self.first.gone.copy(), self.first.jobs.copy()
        lost = np.bincount(self.of_row[gone], 1 + self.problem.rows.spends[gone, CORES], len(self.begin) - 1)
        order = np.lexsort((np.arange(len(lost)), -lost))
        swapped = gone.copy()
        for group in order[lost[order] > 0][:MOST_GROUPS].tolist():
            rows = self.order[self.begin[group] : self.begin[group + 1]]
            rows = rows[np.isfinite(self.price[rows]) & ~self.tied[rows]]
            swapped[rows] = False
            looks = 5 + int(most_looks * lost[group] / lost.sum())
            if not gone[rows].all():
                self._choose(group, rows, looks, rules, gone, jobs)
        self._swap(np.flatnonzero(swapped & ~self.problem.wide), gone)
        return gone, jobs

    def _choose(self, group: int, rows: Whole, looks: int, rules: Rules, gone: Mask, jobs: Whole) -> None:
        """Choose anew among the rows of a group on places that are not mixed, for the jobs that it serves there."""
        places = np.unique(self.problem.rows.place[self.problem.pieces_by(rows)])
        mine = self.owner[places] == group
        start = np.where(mine[:, None], self.first.jobs[places], 0)
        kinds = np.flatnonzero(start.any(axis=0))
        if not len(kinds):
            return
        part = self._part(rows, places, mine, kinds, start[:, kinds])
        state = State(part, self.price[rows])
        state.go(np.flatnonzero(self.first.gone[rows]))
        for column, kind in enumerate(kinds.tolist()):
            state.serve(column, np.arange(len(places)), start[:, kind])
        found = choose(part, self.price[rows], looks, state, rules.join)
        self._move(rows[gone[rows]], rows[found.gone], gone)
        jobs[np.ix_(places, kinds)] += found.jobs - start[:, kinds]

    def _part(self, rows: Whole, places: Whole, mine: Mask, kinds: Whole, start: Whole) -> Problem:
        """Return the problem of one group: its rows on these places, and so many parts of jobs of some kinds.

        mine: whether what is free on a place is the group's.
        """
        problem, first, table, needs = self.problem, self.first, self.problem.rows, self.problem.needs
        users, user = np.unique(table.user[rows], return_inverse=True)
        pieces = problem.pieces_by(rows)
        others = first.jobs[np.ix_(places, kinds)] > start
        closed = first.closed[places] & ~start.any(axis=1)
        may = needs.may[np.ix_(kinds, places)] & ~closed & (mine | problem.places.shared[places])
        alone = needs.whole[kinds] | (needs.several[kinds] > 1)
        may &= ~alone[:, None] | (mine & ~others.T)
        pilot = np.unique(table.pilot[rows], return_inverse=True)[1].ravel()
        row, place = np.searchsorted(rows, table.row[pieces]), np.searchsorted(places, table.place[pieces])
        way, spends, loss, claim = table.way[rows], table.spends[rows], table.loss[rows], table.claim[rows]
        some = Rows(pilot, way, user.ravel(), spends, loss, claim, row, place, table.gives[pieces])
        count, whose, one = len(users), problem.limits, np.ones(len(kinds), dtype=np.int64)
        left = (self.left + _lost(table, len(self.left), rows[first.gone[rows]]))[users].T.ravel()
        binds, counts = np.arange(2 * count).reshape(2, -1).T, np.repeat(np.arange(2), count)
        limits = Limits(whose.account[users], whose.rank[users], binds, left, counts, np.zeros(count))
        most = np.where(needs.several[kinds] > 1, first.served[kinds], needs.most[kinds])
        jobs, whole, none = start.sum(axis=0), needs.whole[kinds], np.zeros_like(kinds)
        every = np.array([float(jobs.sum())])
        asked = Needs(none, jobs, needs.needs[kinds], may, whole, one, one.astype(float), most, every)
        held = problem.places
        free = np.where(mine[:, None], held.free[places], np.minimum(held.free[places], 0))
        some_places = replace(held, free=free, cores=held.cores[places], shared=held.shared[places])
        return Problem(some, some_places, asked, limits)

    def _move(self, before: Whole, after: Whole, gone: Mask) -> None:
        """Let other rows go in place of those before."""
        table = self.problem.rows
        gone[before] = False
        gone[after] = True
        np.add.at(self.left, table.user[before], table.spends[before])
        np.subtract.at(self.left, table.user[after], table.spends[after])

    def _swap(self, going: Whole, gone: Mask) -> None:
        """Give by other rows of the same group no less than these rows that go, on each place for itself."""
        problem, table = self.problem, self.problem.rows
        groups = int(self.of_row.max(initial=0)) + 1
        key = table.place * groups + self.of_row[table.row]
        going = going[np.isfinite(self.price[going])]
        asked_of = np.unique(key[problem.pieces_of[going]])
        some = np.flatnonzero(np.isin(key, asked_of) & ~problem.wide[table.row] & (gone | ~self.first.gone)[table.row])
        where = np.searchsorted(asked_of, key[some])
        own = replace(table, row=table.row[some], place=where, gives=table.gives[some])
        asked, cost = np.zeros((len(asked_of), table.gives.shape[1])), np.zeros(len(asked_of))
        none = replace(problem.places, free=asked.copy())
        state = State(Problem(own, none, problem.needs, problem.limits), self.price)
        at = np.searchsorted(asked_of, key[problem.pieces_of[going]])
        np.add.at(asked, at, table.gives[problem.pieces_of[going]])
        np.add.at(cost, at, self.price[going])
        for sets in sets_on(state, np.arange(len(asked_of)), asked):
            enough = (sets.gives >= asked[sets.at].T[:, :, None]).all(axis=0)
            price = np.where(enough, sets.price, np.inf)
            best = price.argmin(axis=1)
            cheaper = price[np.arange(len(best)), best] < cost[sets.at] * (1 - 1e-12)
            for number in np.flatnonzero(cheaper).tolist():
                before, after = going[at == sets.at[number]], sets.rows_of(number, int(best[number]))
                self._move(before, after, gone)
                if (self.left[table.user[after]] < -ROUNDING).any():
                    self._move(after, before, gone)


def _most_held(place: Whole, group: Whole, cores: Real, places: int) -> Whole:
    """Return for each place the group that holds most cores there, −1 where none does."""
    count = int(group.max(initial=0)) + 1
    key, where = np.unique(place * count + group, return_inverse=True)
    held = np.bincount(where.ravel(), cores, len(key))
    order = np.lexsort((-key, held))
    found = np.full(places, -1)
    found[key[order] // count] = key[order] % count
    return found

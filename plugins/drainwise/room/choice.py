"""Choose the pilots that make room for the waiting jobs: who gives back how much by facts, which pilots by claims.

What waits, the places, the pilots and the limits become the arrays of one decision (`reclaim.choose`), and what that
says becomes room by place and each user's part again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Plan, Rules, make_plan
from drainwise.reclaim.choose.problem import CORES, KILL, Limits, Needs, Places, Problem, sums
from drainwise.room.demand import DemandLeft, Mask, RoomFacts, Whole
from drainwise.room.user_pilots import UserPilots, rows_of

CLOSED = -1e15
"""Room on a place that one job has for itself: nothing more can start there, whoever leaves."""


@dataclass(frozen=True)
class PlaceRoom:
    """Room that is made on a place by ending `runs`: for `jobs` of each kind, by its name.

    Of a kind that needs several places at once these are the jobs that have one of their places here. runs: empty where
    such a job needs no more than what is free, and what pilots return. place: for a pilot on several places all of
    these where jobs get room.
    """

    place: str
    jobs: tuple[tuple[str, int], ...]
    runs: tuple[str, ...]


@dataclass(frozen=True)
class PartMade:
    """What a pilot is to return and go on: `cores` that waiting jobs need, and the cores of the largest of these."""

    run: str
    cores: int
    together: int


@dataclass(frozen=True)
class UserLoss:
    """What one user gives back: its `runs` that go, by name, and `parts` of others: `cores` in all, at so much cost.

    extra: of the cores those beyond what facts take.
    """

    account: str
    user: str
    runs: tuple[str, ...]
    cores: int
    cost: float
    extra: int = 0
    parts: tuple[PartMade, ...] = ()


@dataclass(frozen=True)
class RoomMade:
    """Who gives back what, the places where room is made, and of each kind the jobs with room and without.

    users: one for each that was given, in that order. jobs: that can start when all these pilots have left, beside
    those that need none to go. missing: jobs that their accounts are owed cores for, and that find no room.
    """

    users: tuple[UserLoss, ...]
    places: tuple[PlaceRoom, ...]
    jobs: Mapping[str, int]
    missing: Mapping[str, int]


def make_room(
    facts: RoomFacts,
    left: DemandLeft,
    users: Sequence[UserPilots],
    most: Mapping[str, int],
    now: int,
    rules: Rules = Rules(),  # noqa: B008 - immutable
) -> RoomMade:
    """Return the pilots that go at `now` (UNIX s), for whom, and what of the demand stays unserved.

    users: those that may lose cores, who gives back first at the front. most: cores that may be lost by the name of the
    limit: each user is bound by all limits that it names, and not at all without one.
    """
    table = RowTable(facts, users, now)
    problem = Problem(table.rows, places_of(facts, left), needs_of(facts, left), limits_of(users, most))
    plan = make_plan(problem, rules)
    missing, places = left.without_room(plan.served), tuple(table.rooms(plan.gone, plan.jobs))
    return RoomMade(table.losses(plan), places, named(facts, plan.served), named(facts, missing))


class RowTable:
    """The rows of all users. runs: the pilots, by their numbers in the rows."""

    def __init__(self, facts: RoomFacts, users: Sequence[UserPilots], now: int) -> None:
        self._facts, self._users = facts, users
        self.rows, self.runs = rows_of(facts, users, now)

    def losses(self, plan: Plan) -> tuple[UserLoss, ...]:
        """Return what each user gives back, of parts no more than jobs need."""
        rows, gone, parts = self.rows, plan.gone, dict[int, PartMade]()
        cores, users = rows.spends[:, CORES].copy(), len(self._users)
        by_facts = sums(rows.user[plan.by_facts], cores[plan.by_facts], users)
        for row, needed, together in self._needed(plan):
            cores[row] = needed
            parts[row] = PartMade(self.runs[rows.pilot[row]], needed, together)
        given, cost = (sums(rows.user[gone], value[gone], users) for value in (cores, rows.claim))
        mine: list[list[int]] = [[] for _ in self._users]
        for row in np.flatnonzero(gone).tolist():
            mine[rows.user[row]].append(row)
        return tuple(
            UserLoss(
                one.account,
                one.user,
                tuple(sorted(self.runs[rows.pilot[row]] for row in mine[number] if row not in parts)),
                int(given[number]),
                float(cost[number]),
                max(0, int(given[number] - by_facts[number])),
                tuple(parts[row] for row in mine[number] if row in parts),
            )
            for number, one in enumerate(self._users)
        )

    def _needed(self, plan: Plan) -> Iterator[tuple[int, int, int]]:
        """Yield the parts that go, the cores of each that jobs need, and of these those of the largest job there."""
        rows, spare = self.rows, np.maximum(plan.room, 0)
        parts = np.flatnonzero(plan.gone & (rows.way != KILL))
        for row in parts[np.argsort(-rows.claim[parts], kind="stable")].tolist():
            piece = int(np.searchsorted(rows.row, row))
            gives, place = rows.gives[piece], int(rows.place[piece])
            share = gives / gives[0]  # of each core
            least = np.max((gives - spare[place]) / np.where(share > 0, share, np.inf))
            needed = max(1, int(np.ceil(least - 1e-9)))
            spare[place] -= gives - needed * share
            largest = self._facts.needs[plan.jobs[place] > 0, 0].max(initial=1)
            yield row, needed, min(needed, int(largest))

    def rooms(self, going: Mask, jobs: Whole) -> Iterator[PlaceRoom]:
        """Yield the room on each place, by its name; going: n, rows that go. jobs: P × K, parts of jobs."""
        rows, facts, gone = self.rows, self._facts, dict[tuple[int, ...], list[int]]()
        for row in np.flatnonzero(going).tolist():
            here = rows.place[np.searchsorted(rows.row, row) : np.searchsorted(rows.row, row + 1)].tolist()
            gone.setdefault(tuple(here), []).extend([row] if rows.way[row] == KILL else [])
        several = {place for places in gone if len(places) > 1 for place in places}
        for place in {*np.flatnonzero(jobs.any(axis=1)).tolist()} - several:
            gone.setdefault((place,), [])
        for places, some in sorted(gone.items()):
            made = tuple(named(facts, jobs[list(places)].sum(axis=0)).items())
            where = [facts.places[one].name for one in places if jobs[one].any()] or [facts.places[places[0]].name]
            yield PlaceRoom(", ".join(where), made, tuple(self.runs[rows.pilot[row]] for row in some))


def places_of(facts: RoomFacts, left: DemandLeft) -> Places:
    """Return the places with what no job uses there."""
    room = np.where(left.closed[:, None], CLOSED, left.room)
    return Places(room, facts.totals[:, 0], facts.divisible)


def needs_of(facts: RoomFacts, left: DemandLeft) -> Needs:
    """Return the kinds of jobs without room, and what their accounts are owed."""
    accounts = sorted({kind.account for kind in facts.kinds})
    return Needs(
        account=np.array([accounts.index(kind.account) for kind in facts.kinds], dtype=np.int64),
        jobs=left.jobs,
        needs=facts.needs,
        may=facts.may,
        whole=facts.whole,
        several=facts.several,
        cores=facts.cores.astype(float),
        most=left.jobs,
        owed=np.array([left.owed.get(name, 0.0) for name in accounts]),
    )


def limits_of(users: Sequence[UserPilots], most: Mapping[str, int]) -> Limits:
    """Return what the users may lose: all that they were asked for, of which no more is returned than jobs need."""
    accounts = {name: place for place, name in enumerate(sorted({user.account for user in users}))}
    names = {name: place for place, name in enumerate(sorted({name for user in users for name in user.limits}))}
    binds = np.full((len(users), max((len(user.limits) for user in users), default=0)), -1)
    stand = np.zeros(len(names))
    for number, user in enumerate(users):
        binds[number, : len(user.limits)] = [names[name] for name in user.limits]
        if user.parts is not None:
            stand[binds[number, : len(user.limits)]] += user.parts.cores[user.parts.stands].sum()
    return Limits(
        account=np.array([accounts[user.account] for user in users], dtype=np.int64),
        rank=np.arange(len(users), dtype=float),
        binds=binds,
        most=np.maximum([float(most.get(name, 0)) for name in names], stand),
        counts=np.full(len(names), CORES),
        extra=np.array([user.extra for user in users], dtype=float),
        taken=np.array([user.extra_taken for user in users], dtype=float),
    )


def named(facts: RoomFacts, jobs: Whole) -> dict[str, int]:
    """Return how many jobs there are of each kind, by its name."""
    return {facts.kinds[kind].name: int(jobs[kind]) for kind in np.flatnonzero(jobs).tolist()}

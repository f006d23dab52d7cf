"""Choose the pilots that make room for the waiting jobs: who gives back how much by facts, which pilots by claims.

What waits, the places, the pilots and the limits become the arrays of one decision (`reclaim.choose`), and what that
says becomes room by place and each user's part again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.choose.plan import Plan, Rules, make_plan
from drainwise.reclaim.choose.problem import CORES, KILL, Limits, Needs, Places, Problem, Rows
from drainwise.room.demand import DemandLeft, Mask, RoomFacts, Whole
from drainwise.room.user_pilots import UserPilots

CLOSED = -1e15
"""Room on a place that one job has for itself: nothing more can start there, whoever leaves."""


@dataclass(frozen=True)
class PlaceRoom:
    """Room that is made on a place by ending `runs` of `users` (account, user): for `jobs` of each kind, by its name.

    Of a kind that needs several places at once these are the jobs that have one of their places here. runs: empty where
    such a job needs no more than what is free.
    """

    place: str
    jobs: tuple[tuple[str, int], ...]
    runs: tuple[str, ...]
    users: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UserLoss:
    """What one user gives back: its `runs`, by name, `cores` in all, at so much cost.

    extra: of the cores those beyond what facts take.
    """

    account: str
    user: str
    runs: tuple[str, ...]
    cores: int
    cost: float
    extra: int = 0


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
    rules: Rules = Rules(),  # noqa: B008 - immutable
) -> RoomMade:
    """Return the pilots that go, for whom, and what of the demand stays unserved.

    users: those that may lose cores, who gives back first at the front. most: cores that may be lost by the name of the
    limit: each user is bound by all limits that it names, and not at all without one.
    """
    table = RowTable(facts, users)
    problem = Problem(table.rows, places_of(facts, left), needs_of(facts, left), limits_of(users, most))
    plan = make_plan(problem, rules)
    missing = left.without_room(plan.served)
    return RoomMade(
        tuple(table.loss(number, user, plan) for number, user in enumerate(users)),
        tuple(table.rooms(plan.gone, plan.jobs)),
        named(facts, plan.served),
        named(facts, missing),
    )


class RowTable:
    """The pilots of all users as rows, one each."""

    def __init__(self, facts: RoomFacts, users: Sequence[UserPilots]) -> None:
        self._facts, self._users = facts, users
        self.runs = [run for user in users for run in user.runs]
        count, none = len(self.runs), np.zeros(0)
        cores = np.concatenate([none, *(user.cores for user in users)])
        gives = np.concatenate([np.zeros((0, len(facts.resources))), *(user.holds.T for user in users)])
        devices = gives[:, facts.resources.index("gpus")] if "gpus" in facts.resources else np.zeros(count)
        whose = [np.full(len(user), number, dtype=np.int64) for number, user in enumerate(users)]
        self.cost = np.concatenate([none, *(user.cost for user in users)])
        self.rows = Rows(
            pilot=np.arange(count),
            way=np.full(count, KILL),
            user=np.concatenate([none.astype(np.int64), *whose]),
            spends=np.column_stack((cores, devices)),
            loss=cores * np.concatenate([none, *(user.run_time for user in users)]),
            claim=self.cost,
            row=np.arange(count),
            place=np.concatenate([none.astype(np.int64), *(user.at for user in users)]),
            gives=gives,
        )

    def loss(self, number: int, user: UserPilots, plan: Plan) -> UserLoss:
        """Return what the user at `number` gives back."""
        mine = np.flatnonzero(plan.gone & (self.rows.user == number))
        runs = tuple(sorted(self.runs[row] for row in mine.tolist()))
        cores, by_facts = (
            int(self.rows.spends[some & (self.rows.user == number), CORES].sum()) for some in (plan.gone, plan.by_facts)
        )
        cost = float(self.cost[mine].sum())
        return UserLoss(user.account, user.user, runs, cores, cost, max(0, cores - by_facts))

    def rooms(self, going: Mask, jobs: Whole) -> Iterator[PlaceRoom]:
        """Yield the room on each place, by its name; going: n, rows that go. jobs: P × K, parts of jobs."""
        gone: dict[int, list[int]] = defaultdict(list)
        for row in np.flatnonzero(going).tolist():
            gone[int(self.rows.place[row])].append(row)
        for place in sorted({*np.flatnonzero(jobs.any(axis=1)).tolist(), *gone}):
            runs = tuple(self.runs[row] for row in gone[place])
            whose = dict.fromkeys(int(self.rows.user[row]) for row in gone[place])
            users = tuple((self._users[one].account, self._users[one].user) for one in whose)
            here = tuple(named(self._facts, jobs[place]).items())
            yield PlaceRoom(self._facts.places[place].name, here, runs, users)


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
    """Return what the users may lose."""
    accounts, names = sorted({user.account for user in users}), sorted({name for user in users for name in user.limits})
    binds = np.full((len(users), max((len(user.limits) for user in users), default=0)), -1)
    for number, user in enumerate(users):
        binds[number, : len(user.limits)] = [names.index(name) for name in user.limits]
    return Limits(
        account=np.array([accounts.index(user.account) for user in users], dtype=np.int64),
        rank=np.arange(len(users), dtype=float),
        binds=binds,
        most=np.array([float(most.get(name, 0)) for name in names]),
        counts=np.full(len(names), CORES),
        extra=np.array([user.extra for user in users], dtype=float),
        taken=np.array([user.extra_taken for user in users], dtype=float),
    )


def named(facts: RoomFacts, jobs: Whole) -> dict[str, int]:
    """Return how many jobs there are of each kind, by its name."""
    return {facts.kinds[kind].name: int(jobs[kind]) for kind in np.flatnonzero(jobs).tolist()}

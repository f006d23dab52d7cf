"""Make room by the one chooser, from what `room` knows of places, kinds and users' pilots; `make_room` does it today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from drainwise.reclaim.choose.plan import Plan, Rules, make_plan
from drainwise.reclaim.choose.problem import CORES, KILL, Limits, Needs, Places, Problem, Rows
from drainwise.room.choice import CLOSED, PlaceRoom, RoomMade, UserLoss
from drainwise.room.demand import DemandLeft, OpenDemand
from drainwise.room.facts import RoomFacts, Whole
from drainwise.room.user_pilots import UserPilots

ENDLESS = 1e15


def choose_room(
    facts: RoomFacts, left: DemandLeft, users: Sequence[UserPilots], most: Mapping[str, int], rules: Rules
) -> RoomMade:
    """Return the pilots that go, for whom, and what of the demand stays unserved; parameters as of `make_room`."""
    problem = room_problem(facts, left, users, most)
    return _room_made(facts, left, users, problem, make_plan(problem, rules))


def room_problem(
    facts: RoomFacts, left: DemandLeft, users: Sequence[UserPilots], most: Mapping[str, int]
) -> Problem:
    """Return the arrays: a row for each pilot, users in the order in which they give back; see `make_room`."""
    whose = np.repeat(np.arange(len(users)), [len(user) for user in users])
    every, resources = np.arange(len(whose)), len(facts.resources)
    holds = np.concatenate([np.zeros((resources, 0)), *(user.holds for user in users)], axis=1).T
    cores = np.concatenate([np.zeros(0), *(user.cores for user in users)])
    devices = holds[:, facts.resources.index("gpus")] if "gpus" in facts.resources else 0 * cores
    rows = Rows(
        every,
        np.full(len(every), KILL),
        whose,
        np.column_stack((cores, devices)),
        cores * np.concatenate([np.zeros(0), *(user.run_time for user in users)]),
        np.concatenate([np.zeros(0), *(user.cost for user in users)]),
        every,
        np.concatenate([np.zeros(0, dtype=np.int64), *(user.at for user in users)]),
        holds,
    )
    places = Places(np.where(left.closed[:, None], CLOSED, left.room), facts.totals[:, 0], facts.divisible)
    accounts = {name: number for number, name in enumerate(dict.fromkeys(kind.account for kind in facts.kinds))}
    needs = Needs(
        np.array([accounts[kind.account] for kind in facts.kinds], dtype=np.int64),
        left.jobs,
        facts.needs,
        facts.may,
        facts.whole,
        facts.several,
        facts.cores.astype(float),
        left.jobs,
        np.array([left.owed.get(name, 0.0) for name in accounts], dtype=float),
    )
    return Problem(rows, places, needs, _limits(users, most))


def _limits(users: Sequence[UserPilots], most: Mapping[str, int]) -> Limits:
    """Return the limits by the names that users have of them; one that is not given lets nothing go."""
    names = {name: number for number, name in enumerate(dict.fromkeys(name for user in users for name in user.limits))}
    binds = np.full((len(users), max([1, *(len(user.limits) for user in users)])), -1)
    for number, user in enumerate(users):
        binds[number, : len(user.limits)] = [names[name] for name in user.limits]
    accounts = {name: number for number, name in enumerate(dict.fromkeys(user.account for user in users))}
    return Limits(
        np.array([accounts[user.account] for user in users], dtype=np.int64),
        np.arange(len(users), dtype=float),
        binds,
        np.array([min(float(most.get(name, 0)), ENDLESS) for name in names], dtype=float),
        np.full(len(names), CORES),
        np.full(len(users), np.nan),
    )


def _room_made(
    facts: RoomFacts, left: DemandLeft, users: Sequence[UserPilots], problem: Problem, plan: Plan
) -> RoomMade:
    rows = problem.rows
    begin = np.searchsorted(rows.user, np.arange(len(users) + 1))
    losses = []
    for number, user in enumerate(users):
        mine = np.arange(begin[number], begin[number + 1])
        mine = mine[plan.gone[mine]]
        others = plan.gone & (rows.user != number)
        alone = np.setdiff1d(rows.place[mine], rows.place[others])
        runs = tuple(user.runs[row] for row in (mine - begin[number]).tolist())
        cost, jobs = float(rows.claim[mine].sum()), plan.jobs[alone].sum(axis=0) // facts.several
        losses.append(UserLoss(user.account, user.user, runs, int(rows.spends[mine, CORES].sum()), cost, _named(facts, jobs)))
    demand = OpenDemand(facts, left.jobs, left.owed).without(plan.served)
    missing = np.array([demand.jobs_of(kind) for kind in range(len(facts.kinds))], dtype=np.int64)
    places = tuple(_places(facts, users, begin, problem, plan))
    return RoomMade(tuple(losses), places, dict(_named(facts, plan.served)), dict(_named(facts, missing)))


def _places(
    facts: RoomFacts, users: Sequence[UserPilots], begin: Whole, problem: Problem, plan: Plan
) -> Iterator[PlaceRoom]:
    """Yield the places where jobs are served, by their names."""
    rows = problem.rows
    for place in np.flatnonzero(plan.jobs.any(axis=1)).tolist():
        pieces, _ = problem.pieces(np.array([place]))
        going = [row for row in rows.row[pieces].tolist() if plan.gone[row]]
        runs = tuple(users[rows.user[row]].runs[row - begin[rows.user[row]]] for row in going)
        whose = tuple(dict.fromkeys((users[user].account, users[user].user) for user in rows.user[going].tolist()))
        yield PlaceRoom(facts.places[place].name, _named(facts, plan.jobs[place]), runs, whose)


def _named(facts: RoomFacts, jobs: Whole) -> tuple[tuple[str, int], ...]:
    return tuple((facts.kinds[kind].name, int(jobs[kind])) for kind in np.flatnonzero(jobs).tolist())

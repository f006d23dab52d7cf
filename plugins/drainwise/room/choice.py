"""Choose the pilots that make room for the waiting jobs: who gives back how much by facts, which pilots by claims.

What waits, the places, the pilots and the limits become the arrays of one decision (`reclaim.choose`), and what that
says becomes room by place again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from drainwise.pool.amounts import PLAIN, Amounts, amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.kept_room import KeptRoom
from drainwise.reclaim.choose.plan import Plan, Rules, make_plan
from drainwise.reclaim.choose.problem import CORES, KILL, Limits, Problem, Real, Rows, Whole, sums, whole_pilots
from drainwise.room.demand import DemandLeft, RoomFacts, Served

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
class RoomMade:
    """The places where room is made, and of each kind the jobs with room and without, by its name.

    jobs: that can start when all these pilots have left, beside those that need none to go. missing: jobs that their
    accounts are owed cores for, and that find no room. plan: the rows that go. cores: n, what each row gives, of a part
    that goes what jobs need, and together: n, of these those of the largest job there.
    """

    places: tuple[PlaceRoom, ...]
    jobs: Mapping[str, int]
    missing: Mapping[str, int]
    plan: Plan = field(compare=False)
    cores: Real = field(compare=False)
    together: Whole = field(compare=False)


def rows_of(facts: RoomFacts, pilots: Sequence[Pilot], user: Whole, cost: Real, now: int) -> Rows:
    """Return a row for each pilot that goes as a whole; user: its number; cost: from claims, ≥ 0; now: UNIX s."""
    known: dict[tuple[int, int], int] = {}
    vectors: list[tuple[int, ...]] = []
    found: list[tuple[int, int, int]] = []
    for number, pilot in enumerate(pilots):
        for place, held in pilot.returns() if pilot.pieces else ((pilot.place, pilot.holds),):
            if place not in facts.index:
                continue
            key = (pilot.cores, id(held))  # most hold the same objects, and comparing these takes its time
            if key not in known:
                known[key] = len(vectors)
                vectors.append(facts.vector(Amounts(pilot.cores) if held is None else held))
            found.append((number, facts.index[place], known[key]))
    row, place_of, which = np.array(found, dtype=np.int64).reshape(-1, 3).T
    gives = np.array(vectors, dtype=float).reshape(-1, len(facts.resources))[which]
    cores = np.array([pilot.cores for pilot in pilots], dtype=float)
    age = np.maximum(now - np.array([pilot.started for pilot in pilots], dtype=float), 0)
    rows = whole_pilots(cores, user, cores * age, cost)
    if "gpus" in facts.resources:
        rows.spends[:, 1] = sums(row, gives[:, facts.resources.index("gpus")], len(pilots))
    return replace(rows, row=row, place=place_of, gives=gives)


def make_room(
    left: DemandLeft,
    rows: Rows,
    limits: Limits,
    runs: Sequence[str],
    rules: Rules = Rules(),  # noqa: B008 - immutable
) -> RoomMade:
    """Return the pilots that go, for whom, and what of the demand stays unserved; runs: of the pilots of the rows."""
    plan, facts = make_plan(problem_of(left, rows, limits), rules), left.facts
    places, missing = tuple(_rooms(facts, rows, plan, runs)), left.without_room(plan.served)
    return RoomMade(places, named(facts, plan.served), named(facts, missing), plan, *_cores_needed(facts, rows, plan))


def _cores_needed(facts: RoomFacts, rows: Rows, plan: Plan) -> tuple[Real, Whole]:
    """Return the cores of rows, of parts that go those that jobs need, and of these those of the largest job there."""
    spare, cores, together = np.maximum(plan.room, 0), rows.spends[:, CORES].copy(), np.zeros(len(rows), dtype=np.int64)
    parts = np.flatnonzero(plan.gone & (rows.way != KILL))
    for row in parts[np.argsort(-rows.claim[parts], kind="stable")].tolist():
        piece = int(np.searchsorted(rows.row, row))
        gives, place = rows.gives[piece], int(rows.place[piece])
        share = gives / gives[0]  # of each core
        least = np.max((gives - spare[place]) / np.where(share > 0, share, np.inf))
        cores[row] = max(1, np.ceil(least - 1e-9))
        spare[place] -= gives - cores[row] * share
        together[row] = min(cores[row], facts.needs.needs[plan.jobs[place] > 0, 0].max(initial=1))
    return cores, together


def _rooms(facts: RoomFacts, rows: Rows, plan: Plan, runs: Sequence[str]) -> Iterator[PlaceRoom]:
    """Yield the room on each place, by its name."""
    gone, jobs = dict[tuple[int, ...], list[int]](), plan.jobs
    for row in np.flatnonzero(plan.gone).tolist():
        here = rows.place[np.searchsorted(rows.row, row) : np.searchsorted(rows.row, row + 1)].tolist()
        gone.setdefault(tuple(here), []).extend([row] if rows.way[row] == KILL else [])
    several = {place for places in gone if len(places) > 1 for place in places}
    for place in {*np.flatnonzero(jobs.any(axis=1)).tolist()} - several:
        gone.setdefault((place,), [])
    for places, some in sorted(gone.items()):
        made = tuple(named(facts, jobs[list(places)].sum(axis=0)).items())
        where = [facts.places[one].name for one in places if jobs[one].any()] or [facts.places[places[0]].name]
        yield PlaceRoom(", ".join(where), made, tuple(runs[rows.pilot[row]] for row in some))


def problem_of(left: DemandLeft, rows: Rows, limits: Limits) -> Problem:
    """Return the decision on these rows: places with what no job uses there, and the kinds of jobs without room."""
    facts = left.facts
    held = replace(facts.held, free=np.where(left.closed[:, None], CLOSED, left.room))
    return Problem(rows, held, replace(facts.needs, jobs=left.jobs, most=left.jobs, owed=left.owed), limits)


def named(facts: RoomFacts, jobs: Whole) -> dict[str, int]:
    """Return how many jobs there are of each kind, by its name."""
    return {facts.kinds[kind].name: int(jobs[kind]) for kind in np.flatnonzero(jobs).tolist()}


def kept_rooms(
    facts: RoomFacts,
    made: Iterable[PlaceRoom],
    served: Served | None,
    going: Mapping[str, Sequence[tuple[Amounts, int]]],
) -> dict[str, KeptRoom]:
    """Return by the name of its place, of those that `going` names, the room that pilots make only together.

    The first piece comes back before the waiting job fits. Whoever is smaller could start in it, such as the next pilot
    of the account that gives it back: so the pieces are kept.
    made, served: the jobs for which room is made now, and those that use what is free or on its way. going: of each
    pilot that has an order there or gets one what it gives back, and until when room is kept for its sake (UNIX s).
    """
    jobs: dict[str, Counter[str]] = defaultdict(Counter)
    for room in made:
        jobs[room.place].update(dict(room.jobs))
    if served is not None:
        for kind, place, number in zip(served.kind.tolist(), served.place.tolist(), served.jobs.tolist()):
            jobs[facts.places[place].name][facts.kinds[kind].name] += number
    needs = {kind.name: kind.needs for kind in facts.kinds}
    found: dict[str, KeptRoom] = {}
    for name, pilots in going.items():
        each = [needs[kind] for kind in jobs[name]]
        if name not in facts.index or all(held.covers(need) for need in each for held, _ in pilots):
            continue
        place = facts.places[facts.index[name]]
        if place.divisible:
            total = sum_of(needs[kind] for kind in jobs[name].elements())
            least = amounts(*(min(getattr(one, amount) for one in each) for amount in PLAIN))
            found[name] = KeptRoom(name, place.node, len(pilots), max(end for _, end in pilots), least, total)
    return found

"""Room for the waiting jobs: what is free and what comes back anyway serves them first, for the rest pilots go. Pure.

facts = room_facts(snapshot.kinds, snapshot.places)
left = demand_left(facts, owed, returning)
rows = rows_of(facts, pilots, user, cost, now)
made = make_room(left, rows, limits, runs)

owed: cores by account, with what its running jobs have taken off. returning: amounts by place name, of the pilots on
their way out (Σ Pilot.holds by Pilot.place). `left.served` tells which of these amounts which waiting jobs use: orders
whose room a job uses are not withdrawn. pilots: those that may get an order. cost: of each, ≥ 0, from claims; they
choose among pilots of the same user and change nothing else. limits: `reclaim.choose.problem.Limits`, what each user
may lose. `made.places` names for each pilot's run the jobs for which it makes room, and `made.missing` the jobs for
which no room can be made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from types import MappingProxyType

import numpy as np

from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import PLAIN, Amounts, amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.free_cores import whole_cores
from drainwise.pool.job_kinds import JobKind, Place, RoomFor
from drainwise.reclaim.choose.plan import Plan, Rules, make_plan
from drainwise.reclaim.choose.problem import (
    CORES,
    KILL,
    Limits,
    Mask,
    Needs,
    Places,
    Problem,
    Real,
    Rows,
    Whole,
    sums,
    whole_pilots,
)


@dataclass(frozen=True, eq=False)
class RoomFacts:
    """K kinds in the order in which they should start, P places by name, R resources: cores, and what a kind needs.

    index: of each place by its name. accounts: that wait, by name. totals: P × R, of the whole places. needs: all that
    waits, whatever is owed for it. held: what is free there.
    """

    kinds: tuple[JobKind, ...]
    places: tuple[Place, ...]
    index: Mapping[str, int]
    resources: tuple[str, ...]
    accounts: tuple[str, ...]
    totals: Real
    needs: Needs
    held: Places

    def fitting(self, kind: int, room: Real) -> Real:
        """Return how many jobs of a kind fit into the `room` (P × R) of each place; never below 0."""
        needs = self.needs
        needed = np.flatnonzero(needs.needs[kind])
        fit = np.floor(room[:, needed] / needs.needs[kind, needed]).min(axis=1)
        if needs.whole[kind]:
            fit = np.where(room[:, 0] >= self.held.cores, np.minimum(fit, 1), 0)
        fit = np.where(self.held.shared, fit, np.minimum(fit, 1))
        return np.where(needs.may[kind], np.maximum(fit, 0), 0)

    def at(self, names: Iterable[str]) -> RoomFacts:
        """Return the facts of these places alone."""
        names = tuple(names)
        rows, held = np.array([self.index[name] for name in names], dtype=np.int64), self.held
        return replace(
            self,
            places=tuple(self.places[row] for row in rows),
            index={name: row for row, name in enumerate(names)},
            totals=self.totals[rows],
            needs=replace(self.needs, may=self.needs.may[:, rows]),
            held=Places(held.free[rows], held.cores[rows], held.shared[rows]),
        )


def room_facts(kinds: Iterable[JobKind], places: Iterable[Place]) -> RoomFacts:
    """Return the arrays of these kinds, in their order, and these places, in any order."""
    kinds, places = tuple(kinds), tuple(sorted(places, key=lambda one: one.name))
    names = {name for kind in kinds for name, _ in kind.needs.named()} - {"cores"}
    plain = [name for name in PLAIN if name in names]
    resources = ("cores", *plain, *sorted(names.difference(plain)))
    classes = {name: row for row, name in enumerate(sorted({place.node_class for place in places}))}
    class_of = np.array([classes[place.node_class] for place in places], dtype=np.int64)
    allowed = np.zeros((len(kinds), len(classes)), dtype=bool)
    for row, kind in enumerate(kinds):
        allowed[row, [classes[name] for name in kind.classes if name in classes]] = True
    may, index = allowed[:, class_of], {place.name: row for row, place in enumerate(places)}
    for row, kind in enumerate(kinds):
        may[row, [index[name] for name in kind.barred if name in index]] = False
        if kind.at:
            may[row] &= np.array([place.name in kind.at for place in places], dtype=bool)
    needs = _matrix((kind.needs for kind in kinds), resources)
    needs[:, 0] = np.maximum(needs[:, 0], 1)
    totals, free = (_matrix(some, resources) for some in ((it.total for it in places), (it.free for it in places)))
    accounts, jobs = tuple(sorted({kind.account for kind in kinds})), np.array([kind.jobs for kind in kinds], dtype=int)
    waits = Needs(
        account=np.array([accounts.index(kind.account) for kind in kinds], dtype=np.int64),
        jobs=jobs,
        needs=needs,
        may=may,
        whole=np.array([kind.whole for kind in kinds], dtype=bool),
        several=np.array([max(1, kind.places) for kind in kinds], dtype=np.int64),
        cores=np.array([kind.cores for kind in kinds]),
        most=jobs,
        owed=np.zeros(len(accounts)),
    )
    held = Places(free, totals[:, 0], np.array([place.divisible for place in places], dtype=bool))
    return RoomFacts(kinds, places, index, resources, accounts, totals, waits, held)


_plain = attrgetter(*PLAIN)


def _matrix(rows: Iterable[Amounts], resources: tuple[str, ...]) -> Real:
    """Return the amounts of each row by resource."""
    rows = tuple(rows)
    plain = np.array([_plain(one) for one in rows], dtype=float).reshape(len(rows), len(PLAIN)).T
    by_name = dict(zip(PLAIN, plain))
    others = [name for name in resources if name not in PLAIN]
    by_name |= {name: np.array([dict(one.others).get(name, 0) for one in rows], dtype=float) for name in others}
    return np.column_stack([by_name[name] for name in resources])


@dataclass(frozen=True, eq=False)
class Served:
    """s uses: `jobs` of a kind (s) that a place (s) serves by what is `free` there and what is `returning`, s × R."""

    kind: Whole
    place: Whole
    jobs: Whole
    free: Real
    returning: Real

    def some(self, which: Mask) -> Served:
        """Return these uses."""
        return Served(*(getattr(self, one.name)[which] for one in fields(self)))


@dataclass(frozen=True, eq=False)
class DemandLeft:
    """What is left after the free and returning amounts were used.

    jobs: K, whatever the accounts are owed. owed: A, cores that each account is owed still. room: P × R, free
    and returning amounts that no job uses. closed: P, places that one job has for itself. served: who uses what.
    """

    facts: RoomFacts
    jobs: Whole
    owed: Real
    room: Real
    closed: Mask
    served: Served

    def without_room(self, with_room: Whole | None = None) -> Whole:
        """Return the jobs of each kind (K) that its account is owed the cores for, when so many more have room."""
        more, needs = np.zeros_like(self.jobs) if with_room is None else with_room, self.facts.needs
        owed = (self.owed - sums(needs.account, more * needs.cores, len(self.owed)))[needs.account] / needs.cores
        found: Whole = np.minimum(self.jobs - more, np.array([whole_cores(one) for one in owed], dtype=np.int64))
        return found


def demand_left(
    facts: RoomFacts,
    owed: Mapping[str, float],
    returning: Mapping[str, Amounts],
    intended: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> DemandLeft:
    """Serve kind by kind, as many whole jobs as its account is `owed` cores for, from free room first.

    returning: amounts by the name of the place that comes to have them. Of the places where a kind fits, those are used
    first that have nothing dear that it does not need (GPUs, licences), then the tightest, then by name. intended: the
    jobs of each kind for which room was made on a place, by their names: they have it first where more cores' jobs are
    served so.
    """
    left = _served(facts, owed, returning, {})
    if not (intended and left.jobs.any()):
        return left
    as_intended = _served(facts, owed, returning, intended)
    return as_intended if (as_intended.jobs - left.jobs) @ facts.needs.cores < 0 else left


def _served(
    facts: RoomFacts,
    owed_by_name: Mapping[str, float],
    returning: Mapping[str, Amounts],
    intended: Mapping[str, Mapping[str, int]],
) -> DemandLeft:
    needs, shared = facts.needs, facts.held.shared
    free, back = facts.held.free.copy(), np.zeros_like(facts.held.free)
    jobs, owed = needs.jobs.copy(), np.array([owed_by_name.get(name, 0.0) for name in facts.accounts])
    none, closed = np.zeros(0, dtype=np.int64), np.zeros(len(facts.places), dtype=bool)
    served = [(none, none, none, free[:0], free[:0])]
    for name, held in returning.items():
        if name in facts.index:
            back[facts.index[name]] += _matrix((held,), facts.resources)[0]
    rooms = [
        (row, np.array([at_place.get(name, 0) for name in facts.index], dtype=float))
        for row, kind in enumerate(facts.kinds)
        if (at_place := intended.get(kind.name))
    ]
    anywhere = np.full(len(facts.places), np.inf)
    for row, most in (*rooms, *((row, anywhere) for row in range(len(facts.kinds)))):
        account, several = needs.account[row], int(needs.several[row])
        wanted = min(int(jobs[row]), whole_cores(owed[account] / needs.cores[row]))
        if wanted < 1 or not needs.may[row].any():
            continue
        most = np.where(closed, 0, most)  # noqa: PLW2901
        now, later = (np.minimum(facts.fitting(row, room), most) for room in (free, free + back))
        count = jobs_on_places(later, several, wanted)
        if not count:
            continue
        order = _tightest_first(facts, row, free)
        first = _in_order(np.minimum(now, count), order, count * several)
        here = first + _in_order(np.minimum(later, count) - first, order, count * several - int(first.sum()))
        jobs[row] -= count
        owed[account] -= count * needs.cores[row]
        at = np.flatnonzero(here)
        alone = needs.whole[row] | ~shared[at]
        takes = np.where(alone[:, None], free[at] + back[at], here[at, None] * needs.needs[row])
        from_free = np.minimum(free[at], takes)
        free[at] -= from_free
        back[at] -= takes - from_free
        closed[at] |= alone
        served.append((np.full_like(at, row), at, here[at], from_free, takes - from_free))
    return DemandLeft(facts, jobs, owed, free + back, closed, Served(*map(np.concatenate, zip(*served))))


def jobs_on_places(fitting: Real, several: int, wanted: int) -> int:
    """Return how many jobs, `wanted` at most, find `several` different places each where `fitting` of them fit."""
    low, high = 0, wanted
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(fitting, middle).sum() >= several * middle:
            low = middle
        else:
            high = middle - 1
    return low


def _tightest_first(facts: RoomFacts, kind: int, free: Real) -> Whole:
    dear = [row for row, name in enumerate(facts.resources) if name not in {"cores", "memory", "disk"}]
    unneeded = facts.totals[:, [row for row in dear if not facts.needs.needs[kind, row]]].sum(axis=1)
    return np.lexsort((np.arange(len(free)), free[:, 0], unneeded))


def _in_order(most: Real, order: Whole, wanted: int) -> Whole:
    """Return how many each place takes when `wanted` are given to the places in this order, `most` to each."""
    before = np.cumsum(most[order]) - most[order]
    taken = np.zeros(len(most), dtype=np.int64)
    taken[order] = np.clip(wanted - before, 0, most[order])
    return taken


CLOSED = -1e15
"""Room on a place that one job has for itself: nothing more can start there, whoever leaves."""


@dataclass(frozen=True)
class PlaceRoom:
    """Room that is made on a place by ending `runs`.

    Of a kind that needs several places at once its jobs are those that have one of their places here. runs: empty where
    such a job needs no more than what is free, and what pilots return. For a pilot on several places the place's name
    is all of these where jobs get room.
    """

    room: RoomFor
    runs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RoomMade:
    """The places where room is made, and of each kind the jobs with room and without, by its name.

    jobs: that can start when all these pilots have left, beside those that need none to go. missing: jobs that their
    accounts are owed cores for, and that find no room. plan: the rows that go. cores: n, what each row gives, of a part
    that goes what jobs need, and together: n, of these those of the largest job there.
    """

    places: tuple[PlaceRoom, ...]
    jobs: Mapping[str, int]
    missing: Mapping[str, int]
    plan: Plan
    cores: Real
    together: Whole


def rows_of(facts: RoomFacts, pilots: Sequence[Pilot], user: Whole, cost: Real, now: int) -> Rows:
    """Return a row for each pilot that goes as a whole; user: its number; cost: from claims, ≥ 0; now: UNIX s."""
    pieces = [
        (number, place, Amounts(pilot.cores) if held is None else held)
        for number, pilot in enumerate(pilots)
        for place, held in (pilot.returns() if pilot.pieces else ((pilot.place, pilot.holds),))
    ]
    there = np.array([facts.index.get(place, -1) for _, place, _ in pieces], dtype=np.int64)
    row = np.array([number for number, _, _ in pieces], dtype=np.int64)[there >= 0]
    gives, place_of = _matrix((held for _, _, held in pieces), facts.resources)[there >= 0], there[there >= 0]
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
    begin = np.searchsorted(rows.row, np.arange(len(rows) + 1)).tolist()
    for row in np.flatnonzero(plan.gone).tolist():
        here = tuple(rows.place[begin[row] : begin[row + 1]].tolist())
        gone.setdefault(here, []).extend([row] if rows.way[row] == KILL else [])
    several = {place for places in gone if len(places) > 1 for place in places}
    for place in {*np.flatnonzero(jobs.any(axis=1)).tolist()} - several:
        gone.setdefault((place,), [])
    for places, some in sorted(gone.items()):
        where = [facts.places[one].name for one in places if jobs[one].any()] or [facts.places[places[0]].name]
        room = room_for(facts, ", ".join(where), jobs[list(places)].sum(axis=0))
        yield PlaceRoom(room, tuple(runs[rows.pilot[row]] for row in some))


def room_for(facts: RoomFacts, place: str, jobs: Whole) -> RoomFor:
    """Return the room for so many jobs of each kind (K)."""
    return RoomFor(place, tuple((facts.kinds[kind], int(jobs[kind])) for kind in np.flatnonzero(jobs).tolist()))


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
    for one in made:
        jobs[one.room.place].update({kind.name: number for kind, number in one.room.jobs})
    if served is not None:
        for kind, place, number in zip(served.kind.tolist(), served.place.tolist(), served.jobs.tolist()):
            jobs[facts.places[place].name][facts.kinds[kind].name] += number
    needs = {kind.name: kind.needs for kind in facts.kinds}
    found: dict[str, KeptRoom] = {}
    for name, pilots in going.items():
        each = [needs[kind] for kind in jobs[name]]
        if all(held.covers(need) for need in each for held, _ in pilots):  # also where no job is
            continue
        place = facts.places[facts.index[name]]
        if place.divisible:
            total = sum_of(needs[kind] for kind in jobs[name].elements())
            least = amounts(*(min(getattr(one, amount) for one in each) for amount in PLAIN))
            found[name] = KeptRoom(name, place.node, len(pilots), max(end for _, end in pilots), least, total)
    return found

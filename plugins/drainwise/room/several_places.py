"""Choose among pilots that lie on several places, and so give back all of them at once, beside those on one place.

Such a pilot is tried as if it had left: what waits is served with what it gives back, and the others make room for
the rest. It goes where that serves more jobs, or as many with fewer cores; where it makes no difference to anything
that is a fact, claims decide. So neither kind of pilots is spared or taken for what it claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.amounts import Amounts, sum_of
from drainwise.reclaim.choose.plan import Rules
from drainwise.room.choice import PlaceRoom, RoomMade, UserLoss, make_room
from drainwise.room.demand import DemandLeft, RoomFacts, Whole
from drainwise.room.user_pilots import UserPilots

MOST_TRIES = 200
"""Sets of pilots that are looked at; fewer in large pools, where each takes its time."""
_MOST_ROWS = 200_000
_LEAST_TRIES = 16

Serve = Callable[[Mapping[str, Amounts]], DemandLeft]
"""Serves what waits when these amounts come back by place beside what returns anyway."""


@dataclass(frozen=True)
class WidePilot:
    """A pilot on several places. user: its place among the users. holds: by place. cost: of ending it, from claims."""

    run: str
    user: int
    cores: int
    cost: float
    holds: tuple[tuple[str, Amounts], ...]


@dataclass(frozen=True)
class _Tried:
    chosen: tuple[WidePilot, ...]
    left: DemandLeft
    made: RoomMade
    facts: tuple[tuple[int, ...], int, tuple[int, ...]]
    cost: float

    def is_better(self, other: _Tried) -> bool:
        """Decide by facts; by what is claimed where these are the same."""
        return (self.facts, self.cost) < (other.facts, other.cost)


def make_room_with(
    facts: RoomFacts,
    left: DemandLeft,
    users: Sequence[UserPilots],
    most: Mapping[str, int],
    wide: Sequence[WidePilot],
    serve: Serve,
    rules: Rules = Rules(),  # noqa: B008 - immutable
) -> RoomMade:
    """Return the room as `make_room`, which these parameters are for, with the pilots on several places among it."""
    wanted = np.flatnonzero(left.jobs > 0)
    useful = [one for one in wide if _is_useful(facts, one, wanted)]
    best = _tried(facts, left, users, most, (), serve, rules)
    if best is None or not useful:
        return make_room(facts, left, users, most, rules) if best is None else best.made
    tries = min(MOST_TRIES, max(_LEAST_TRIES, _MOST_ROWS // (1 + sum(map(len, users)))))
    useful.sort(key=lambda one: (one.user, one.cores, one.cost, one.run))
    while tries > 0:
        here = useful[:tries]
        tries -= len(here)
        found = [_tried(facts, left, users, most, _changed(best.chosen, one), serve, rules) for one in here]
        better = [one for one in found if one is not None and one.is_better(best)]
        if not better:
            break
        best = min(better, key=lambda one: (one.facts, one.cost))
    return _merged(facts, left, users, best)


def _is_useful(facts: RoomFacts, one: WidePilot, wanted: Whole) -> bool:
    at = [facts.index[place] for place, _ in one.holds if place in facts.index]
    return any(bool(facts.may[row, at].any()) for row in wanted.tolist())


def _changed(chosen: tuple[WidePilot, ...], one: WidePilot) -> tuple[WidePilot, ...]:
    """Return the choice with a pilot that is not in it, or without one that is."""
    return tuple(it for it in chosen if it != one) if one in chosen else (*chosen, one)


def _tried(
    facts: RoomFacts,
    left: DemandLeft,
    users: Sequence[UserPilots],
    most: Mapping[str, int],
    chosen: tuple[WidePilot, ...],
    serve: Serve,
    rules: Rules,
) -> _Tried | None:
    """Return what comes of it when the chosen ones go; None where a limit forbids that."""
    limits = dict(most)
    back: dict[str, list[Amounts]] = {}
    for one in chosen:
        for name in users[one.user].limits:
            limits[name] = limits.get(name, 0) - one.cores
        for place, holds in one.holds:
            back.setdefault(place, []).append(holds)
    if any(cores < 0 for cores in limits.values()):
        return None
    after = serve({place: sum_of(held) for place, held in back.items()}) if chosen else left
    made = make_room(facts, after, users, limits, rules)
    cores = [gives.cores for gives in made.users]
    for one in chosen:
        cores[one.user] += one.cores
    names = [kind.name for kind in facts.kinds]
    jobs = tuple(-int(left.jobs[row] - after.jobs[row]) - made.jobs.get(name, 0) for row, name in enumerate(names))
    cost = sum(one.cost for one in chosen) + sum(gives.cost for gives in made.users)
    return _Tried(chosen, after, made, (jobs, sum(cores), tuple(-number for number in cores)), cost)


def _merged(facts: RoomFacts, left: DemandLeft, users: Sequence[UserPilots], best: _Tried) -> RoomMade:
    """Return the room with the runs of the chosen ones, and where each of them makes it."""
    losses = list(best.made.users)
    for one in best.chosen:
        losses[one.user] = _with_run(losses[one.user], one)
    before, after = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for served, counted in ((left.served, before), (best.left.served, after)):
        for it in served:
            counted[it.place, it.kind] += it.jobs
    for place in best.made.places:
        for name, number in place.jobs:
            after[place.place, name] += number
    places = [*best.made.places]
    for one in best.chosen:
        places.append(_place_room(one, after - before, users[one.user]))
    jobs = Counter(best.made.jobs)
    for row, kind in enumerate(facts.kinds):
        jobs[kind.name] += int(left.jobs[row] - best.left.jobs[row])
    return replace(best.made, users=tuple(losses), places=tuple(places), jobs={**+jobs})


def _with_run(loss: UserLoss, one: WidePilot) -> UserLoss:
    runs = tuple(sorted((*loss.runs, one.run)))
    return replace(loss, runs=runs, cores=loss.cores + one.cores, cost=loss.cost + one.cost)


def _place_room(one: WidePilot, new: Counter[tuple[str, str]], user: UserPilots) -> PlaceRoom:
    jobs, where = Counter[str](), []
    for place, _ in one.holds:
        here = {kind: number for (name, kind), number in new.items() if name == place}
        jobs.update(here)
        if here:
            where.append(place)
    names = ", ".join(where or [place for place, _ in one.holds])
    return PlaceRoom(names, tuple(sorted(jobs.items())), (one.run,), ((user.account, user.user),))

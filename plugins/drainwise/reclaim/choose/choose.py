"""Choose the rows that go: small pools as a whole, large ones by filling them and bettering small groups of places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drainwise.reclaim.choose.fill import Bounds, fill, reprieve
from drainwise.reclaim.choose.problem import Problem, Real, State, Whole, sums
from drainwise.reclaim.choose.resolve import MOST_LABELS, resolve
from drainwise.reclaim.choose.sets import PlaceSets

LOOKS = 1_000
"""Groups of places that are solved anew to better one choice."""
SMALL_MIXES, SMALL_PLACES = 1_000, 32
"""So many mixes of jobs, so many places are solved as a whole, where MOST_LABELS are enough for it."""
GROUP_LABELS, LABELS_OF_A_LOOK = 100_000, 10_000
"""Labels that a group may need; more than the second count as another look."""
MOST_TURNED = 20
"""Rows on several places that are looked at in place of others."""
PARTNERS, DEAR, UNSERVED, ROUNDS = 5, 4, 2, 4
"""Places with which each is looked at: near ones, dear ones; kinds that wait still; how often all that is done."""
MOST_PILOTS = 16
"""Places with more pilots are in no group."""


def choose(problem: Problem, price: Real, looks: int = LOOKS, start: State | None = None, join: bool = True) -> State:
    """Return the choice that serves most jobs in the needs' order, at the least price that is found.

    Kinds are filled in in their order; from there small groups of places are bettered. price: n, ≥ 0, infinite for
    rows that may not go. looks: groups of places that are solved anew at most. start: a choice by this price that it
    must be no worse than, and that is changed. join: whether a small pool is solved as a whole.
    """
    best = State(problem, price) if start is None else start
    if not len(price):
        return best
    mixes = float(np.prod(problem.needs.jobs.astype(float) + 1))
    if join and mixes <= SMALL_MIXES and len(problem.places.free) <= SMALL_PLACES:
        every, kinds = np.arange(len(best.room)), np.flatnonzero(problem.needs.jobs > 0)
        if problem.wide.any() and start is None:
            fill(best, range(len(problem.needs.jobs)))
        if resolve(best, every, kinds)[1] <= MOST_LABELS:
            turn(best, looks, every=True)
            reprieve(best)
            return best
    state = State(problem, price)
    fill(state, range(len(problem.needs.jobs)))
    reprieve(state)
    if state.better(best):
        best = state
    improve(best, looks - turn(best, looks * 3 // 4, every=False))
    reprieve(best)
    return best


def turn(state: State, looks: int, every: bool) -> int:
    """Let rows on several places go that do not, or go on that do, or one in place of another; return as `improve`.

    every: whether all places are solved anew each time, not only those of the rows and some dear ones.
    """
    used, table, needs = 0, state.problem.rows, state.problem.needs
    useful = needs.may[needs.jobs > 0].sum(axis=0).astype(float)
    gains = sums(table.row, useful[table.place], len(table)) > 0
    rows = np.flatnonzero(state.problem.wide & np.isfinite(state.price) & gains)
    rows = rows[np.argsort(state.price[rows], kind="stable")]
    for _ in range(ROUNDS if len(rows) else 0):
        before = state.gone[rows]
        gone, others = rows[before][::-1].tolist(), rows[state.open(rows)].tolist()
        pairs = ([one, other] for one in gone[:MOST_TURNED] for other in others[:MOST_TURNED])
        for turned in (*([one] for one in (*gone, *others)), *pairs):
            some = np.array(turned)
            if (state.gone[some] | state.open(some)).all():
                if used >= looks:
                    return used
                places, kinds = np.arange(len(state.room)), np.flatnonzero(needs.jobs > 0).tolist()
                if not every:
                    places = np.unique(table.place[state.problem.pieces_by(some)])
                    kinds = [one for one in kinds if state.wanted(one) and needs.may[one, places].any()][:UNSERVED]
                    worth = _worth(state)
                    dear = np.argsort(-worth, kind="stable")[:PARTNERS]
                    places = np.union1d(places, dear[worth[dear] > 0])
                used += 1 + resolve(state, places, kinds, GROUP_LABELS, some)[1] // LABELS_OF_A_LOOK
        if (state.gone[rows] == before).all():
            break
    return used


def _worth(state: State) -> Real:
    """Return the price of what goes on each place, that of rows on several places not counted."""
    problem, worth = state.problem, np.zeros(len(state.room))
    gone = np.flatnonzero(state.gone & ~problem.wide)
    np.add.at(worth, problem.home[gone], state.price[gone])
    return worth


def improve(state: State, looks: int) -> int:
    """Solve groups of places anew, those where most is lost first; return how many looks that took, `looks` at most.

    A group is looked at once more only when one of its places has changed; a look at very many labels counts as
    several.
    """
    used, seen, known = 0, dict[tuple[int, ...], int](), dict[int, PlaceSets]()
    changed, worth = np.zeros(len(state.room), dtype=np.int64), _worth(state)
    for _ in range(ROUNDS):
        before = used
        for group, kinds in _groups(state):
            nothing = not len(kinds) and not worth[list(group)].any()
            if nothing or seen.get(group, -1) >= int(changed[list(group)].max()):
                continue
            if used >= looks:
                return used
            better, labels = resolve(state, group, kinds, GROUP_LABELS, known=known)
            used += 1 + labels // LABELS_OF_A_LOOK
            seen[group] = used
            if better:
                changed[list(group)], worth = used + 1, _worth(state)
        if int(changed.max(initial=0)) <= before:
            break
    return used


def _groups(state: State) -> Iterator[tuple[tuple[int, ...], Whole]]:
    """Yield groups of places, and kinds to serve: each active place with a partner, a dear one, or both.

    A place is alone in a group only for kinds that wait still.
    """
    problem = state.problem
    many = problem.pilot_count > MOST_PILOTS
    worth = _worth(state)
    active = np.flatnonzero((state.jobs.any(axis=1) | (worth > 0)) & ~many)
    active = active[np.argsort(-worth[active], kind="stable")]
    unserved = np.array([kind for kind in range(len(state.served)) if state.wanted(kind)], dtype=np.int64)
    bounds = Bounds(state)
    near: dict[int, Whole] = {}
    for kind in range(len(state.served)):
        price = np.where(many, np.inf, bounds.of(kind))
        few = np.argsort(price, kind="stable")[: 2 * PARTNERS]
        near[kind] = few[np.isfinite(price[few])]
    for place in active.tolist():
        kinds = unserved[problem.needs.may[unserved, place]][:UNSERVED]
        own = np.flatnonzero(state.jobs[place])
        partners = list(dict.fromkeys(one for kind in (*own, *kinds) for one in near[kind].tolist() if one != place))
        dear = [one for one in active[: DEAR + 1].tolist() if one != place][:DEAR]
        groups: list[tuple[int, ...]] = [(place,)] if len(kinds) else []
        groups += [(place, other) for other in (*partners[:PARTNERS], *dear)]
        groups += [(place, partners[0], other) for other in dear if partners and other != partners[0]]
        for group in groups:
            yield tuple(sorted(group)), kinds

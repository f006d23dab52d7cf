"""The pilots of users that may get an order, as rows: where they are, what they hold, what ending one costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot
from drainwise.reclaim.choose.problem import KILL, PART, STANDING, Rows, sums
from drainwise.room.demand import Mask, Real, RoomFacts, Whole


@dataclass(frozen=True, eq=False)
class Parts:
    """m parts of pilots on one place, of which at most one of each pilot comes back while that goes on.

    pilot: m, its number. cores: m, fewer than it has; memory comes back in proportion. cost: m, ≥ 0, from claims.
    stands: m, whether it was asked for: nothing is lost by it any more.
    """

    pilot: Whole
    cores: Whole
    cost: Real
    stands: Mask


@dataclass(frozen=True, eq=False)
class UserPilots:
    """The pilots of one `user` of one `account`, in the order of their runs, and the cost of ending each, from claims.

    limits: names of the limits on the cores that may be lost which bind this user (see `make_room`). extra: cores
    beyond what facts take that reports of the user may cost it, not a number for the larger of its largest pilot and a
    quarter of that; extra_taken: what they have cost it. parts: of its pilots, by their numbers here.
    """

    account: str
    user: str
    limits: tuple[str, ...]
    pilots: Sequence[Pilot]
    cost: Real
    extra: float = math.nan
    extra_taken: int = 0
    parts: Parts | None = None


def rows_of(facts: RoomFacts, users: Sequence[UserPilots], now: int) -> tuple[Rows, list[str]]:
    """Return the rows of all pilots whose places are known, and their runs by the numbers of pilots in these rows.

    Of each user's pilots first those that go as a whole, one row each; the parts of all come last. now: UNIX s.
    """
    pilots = [pilot for user in users for pilot in user.pilots]
    whose = np.repeat(np.arange(len(users)), [len(user.pilots) for user in users])
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
    of, at, which = np.array(found, dtype=np.int64).reshape(-1, 3).T
    kept, of = np.unique(of, return_inverse=True)
    some = [pilots[number] for number in kept.tolist()]
    cores = np.array([pilot.cores for pilot in some], dtype=np.float64)
    age = np.maximum(now - np.array([pilot.started for pilot in some], dtype=np.float64), 0)
    gives = np.array(vectors, dtype=np.float64).reshape(-1, len(facts.resources))[which]
    gpus = gives[:, facts.resources.index("gpus")] if "gpus" in facts.resources else np.zeros(len(of))
    every, of = np.arange(len(some)), of.reshape(-1)
    spends = np.column_stack((cores, sums(of, gpus, len(some))))
    costs = np.concatenate([np.zeros(0), *(user.cost for user in users)])[kept]
    rows = Rows(every, every * 0 + KILL, whose[kept], spends, cores * age, costs, of, at, gives)
    begin, runs = np.searchsorted(whose, np.arange(len(users))), [pilot.run for pilot in some]
    parts = [(first, user.parts) for first, user in zip(begin.tolist(), users) if user.parts is not None]
    if not parts:
        return rows, runs
    joined = Parts(
        np.concatenate([first + one.pilot for first, one in parts]),
        *(np.concatenate([getattr(one, name) for _, one in parts]) for name in ("cores", "cost", "stands")),
    )
    mine = np.isin(joined.pilot, kept)
    own = Parts(np.searchsorted(kept, joined.pilot[mine]), joined.cores[mine], joined.cost[mine], joined.stands[mine])
    return with_parts(rows, own, facts.resources.index("memory") if "memory" in facts.resources else None), runs


def with_parts(rows: Rows, parts: Parts, memory: int | None = None) -> Rows:
    """Return the rows of whole pilots, one each, and then those of their parts; memory: the column of it in `gives`."""
    cores, piece = parts.cores.astype(float), np.searchsorted(rows.row, parts.pilot)
    gives = np.zeros((len(cores), rows.gives.shape[1]))
    gives[:, 0] = cores
    if memory is not None:
        gives[:, memory] = rows.gives[piece, memory] * cores // np.maximum(rows.spends[parts.pilot, 0], 1)
    own = Rows(
        parts.pilot,
        np.where(parts.stands, STANDING, PART),
        rows.user[parts.pilot],
        np.column_stack((cores, 0 * cores)),
        0 * cores,
        parts.cost,
        len(rows) + np.arange(len(cores)),
        rows.place[piece],
        gives,
    )
    return Rows(*(np.concatenate((getattr(rows, one.name), getattr(own, one.name))) for one in fields(Rows)))

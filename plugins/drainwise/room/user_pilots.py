"""The pilots of one user that may get an order, as rows: where they are, what they hold, what ending one costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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


_NONE = np.zeros(0, dtype=np.int64)
NO_PARTS = Parts(_NONE, _NONE, np.zeros(0), np.zeros(0, dtype=bool))


@dataclass(frozen=True, eq=False)
class UserPilots:
    """The pilots of one `user` of one `account` on places that are known, by their `runs`, which are in order.

    limits: names of the limits on the cores that may be lost which bind this user (see `make_room`). rows: what they
    give; first each pilot as a whole, then parts. extra: cores beyond what facts take that reports of the user may cost
    it, not a number for the larger of its largest pilot and a quarter of that; extra_taken: what they have cost it.
    """

    account: str
    user: str
    limits: tuple[str, ...]
    runs: tuple[str, ...]
    rows: Rows
    extra: float = math.nan
    extra_taken: int = 0

    def __len__(self) -> int:
        return len(self.runs)


def user_pilots(
    facts: RoomFacts,
    whose: tuple[str, str],
    pilots: Sequence[Pilot],
    cost: Iterable[float],
    now: int,
    limits: Sequence[str] = (),
    extra: float = math.nan,
    extra_taken: int = 0,
    parts: Parts = NO_PARTS,
) -> UserPilots:
    """Return the rows of these pilots, in any order, without those whose places are not known.

    whose: account and user. cost: of ending each, ≥ 0, in any unit; whole numbers are compared exactly. parts: of
    pilots on one place, by their numbers in `pilots`, which are in the order of their runs then.
    """
    spent, order = np.fromiter(cost, dtype=np.float64), sorted(range(len(pilots)), key=lambda row: pilots[row].run)
    known: dict[tuple[int, int], int] = {}
    vectors: list[tuple[int, ...]] = []
    found: list[tuple[int, int, int]] = []
    for number, row in enumerate(order):
        pilot = pilots[row]
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
    of, some = of.reshape(-1), [pilots[order[number]] for number in kept.tolist()]
    cores = np.array([pilot.cores for pilot in some], dtype=np.float64)
    age = np.maximum(now - np.array([pilot.started for pilot in some], dtype=np.float64), 0)
    gives = np.array(vectors, dtype=np.float64).reshape(-1, len(facts.resources))[which]
    gpus = gives[:, facts.resources.index("gpus")] if "gpus" in facts.resources else np.zeros(len(of))
    every, none = np.arange(len(some)), np.zeros(len(some), dtype=np.int64)
    spends = np.column_stack((cores, sums(of, gpus, len(some))))
    costs = spent[np.array(order, dtype=np.int64)[kept]]
    rows = Rows(every, none + KILL, none, spends, cores * age, costs, of, at, gives)
    mine = np.isin(parts.pilot, kept)
    own = Parts(np.searchsorted(kept, parts.pilot[mine]), parts.cores[mine], parts.cost[mine], parts.stands[mine])
    memory = facts.resources.index("memory") if "memory" in facts.resources else None
    runs = tuple([pilot.run for pilot in some])
    return UserPilots(*whose, tuple(limits), runs, with_parts(rows, own, memory), extra, extra_taken)


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

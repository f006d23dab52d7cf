"""The pilots of one user that may get an order, as arrays: where they are, what they hold, what ending one costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot
from drainwise.room.demand import Real, RoomFacts, Whole


@dataclass(frozen=True, eq=False)
class UserPilots:
    """n pilots of one `user` of one `account`, in the order of their `runs`, each on a place that is known.

    limits: names of the limits on the cores that may be lost which bind this user (see `make_room`). at: n, the place.
    holds: R × n. cores: n. run_time: n, seconds. cost: n, of ending each, ≥ 0; it comes from claims. extra: cores
    beyond what facts take that reports of the user may cost it, not a number for the larger of its largest pilot and a
    quarter of that; extra_taken: what they have cost it.
    """

    account: str
    user: str
    limits: tuple[str, ...]
    runs: tuple[str, ...]
    at: Whole
    holds: Real
    cores: Real
    run_time: Real
    cost: Real
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
) -> UserPilots:
    """Return the arrays of these pilots, in any order, without those whose place is not known.

    whose: account and user. cost: of ending each, ≥ 0, in any unit; whole numbers are compared exactly.
    """
    runs, spent = [pilot.run for pilot in pilots], np.fromiter(cost, dtype=np.float64)
    at = np.array([facts.index.get(pilot.place, -1) for pilot in pilots], dtype=np.int64)
    started = np.array([pilot.started for pilot in pilots], dtype=np.float64)
    known: dict[tuple[int, int], int] = {}
    vectors: list[tuple[int, ...]] = []
    number = []
    for pilot in pilots:
        key = (pilot.cores, id(pilot.holds))  # most hold the same objects, and comparing these takes its time
        found = known.get(key)
        if found is None:
            found = known[key] = len(vectors)
            amounts = Amounts(pilot.cores) if pilot.holds is None else pilot.holds
            vectors.append((pilot.cores, *facts.vector(amounts)))
        number.append(found)
    table = np.array(vectors, dtype=np.float64).reshape(-1, len(facts.resources) + 1)
    rows = np.array(sorted(range(len(runs)), key=runs.__getitem__), dtype=np.int64)
    rows = rows[at[rows] >= 0]
    held = table[np.array(number, dtype=np.int64)[rows]]
    return UserPilots(
        *whose,
        tuple(limits),
        tuple([runs[row] for row in rows.tolist()]),
        at[rows],
        held[:, 1:].T,
        held[:, 0],
        np.maximum(now - started[rows], 0),
        spent[rows],
        extra,
        extra_taken,
    )

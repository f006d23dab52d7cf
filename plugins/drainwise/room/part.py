"""One user's part: which pilots go, on which places, for which jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drainwise.room.facts import Whole


@dataclass(frozen=True)
class PlacePart:
    """What one user gives back on a place: the `rows` of its pilots, for `jobs` of each kind (kind, number)."""

    place: int
    jobs: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RoomPart:
    """jobs: K, whole jobs that can start when these pilots have left, which loses `cores` and costs so much."""

    jobs: Whole
    cores: int
    cost: float
    places: tuple[PlacePart, ...]


def nothing(kinds: int) -> RoomPart:
    """Return the part of a user that gives back nothing."""
    return RoomPart(np.zeros(kinds, dtype=np.int64), 0, 0.0, ())

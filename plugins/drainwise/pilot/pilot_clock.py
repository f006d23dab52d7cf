"""The pilot's clock: UNIX seconds that run evenly, and the steps of the machine's clock, seen when they happen.

Deadlines are UNIX seconds, so a machine's clock that is set must be followed. A payload's run time is not: set
forward by a day, the clock would end every payload at its maximum.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STEP = 2.0
"""Seconds by which the two clocks must differ to be a step, and not the moment between two readings."""


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PilotClock:
    """wall: UNIX s. steady: s from any origin, which nobody sets and which counts while the machine sleeps."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """UNIX s; never goes back except by what `step` tells."""
        return self._steady() + self._offset

    def step(self) -> float:
        """Return by how many seconds the machine's clock was set since the last call; `now` follows it."""
        offset = self._wall() - self._steady()
        step = offset - self._offset
        if abs(step) < STEP:
            return 0.0
        self._offset = offset
        return step

"""How long the last jobs of a task ran, and what that says of one that has run for some time already.

A payload that has outlived the median is not about to end: what counts are the run times that are longer than its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque

WINDOW = 200
"""Run times that are kept; older ones are forgotten, so that memory stays flat and a task may change."""


class RunTimes:
    """The last run times of a task, in seconds."""

    __slots__ = ("_newest", "_ordered", "_window", "seen")

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._newest: deque[float] = deque()
        self._ordered: list[float] = []
        self.seen = 0
        """How many were added in all."""

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, seconds: float) -> None:
        """A job has ended after so long."""
        ordered, newest = self._ordered, self._newest
        self.seen += 1
        newest.append(seconds)
        if len(newest) > self._window:
            del ordered[bisect_left(ordered, newest.popleft())]
        insort(ordered, seconds)

    def quantile_after(self, elapsed: float, quantile: float) -> float | None:
        """The quantile (0 to 1) of the run times above `elapsed` seconds, linear between two; None when there is none.

        It never falls when `elapsed` grows, and is always longer than it.
        """
        ordered = self._ordered
        first = bisect_right(ordered, elapsed) if elapsed > 0 else 0
        last = len(ordered) - 1
        if first > last:
            return None
        position = first + (last - first) * quantile
        below = int(position)
        low = ordered[below]
        return low if below == last else low + (ordered[below + 1] - low) * (position - below)

    def longer_than(self, elapsed: float) -> int:
        """How many of them are longer than `elapsed` seconds."""
        return len(self._ordered) - bisect_right(self._ordered, elapsed)

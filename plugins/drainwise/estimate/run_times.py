"""How long the last jobs of one task ran, and what that says of one that has run for some time already.

A payload that has outlived the median is not about to end: what counts are the run times that are longer than its own.
Who looks at ended jobs alone learns from the short ones first, since the long ones run still: so the share that ends at
some age is taken of all that came to that age, ended or not (Kaplan and Meier's estimate). No other task has a say;
what kinds of jobs say of each other is in `survival`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable

WINDOW = 200
"""Run times that are kept; older ones are forgotten, so that memory stays flat and a task may change."""


class RunTimes:
    """The last run times of a task, in seconds, and for how long those of its jobs run that have not ended."""

    __slots__ = ("_left", "_middles", "_newest", "_ordered", "_running", "_window", "seen")

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._newest: deque[float] = deque()
        self._ordered: list[float] = []
        self._running: list[float] = []
        self._left: list[float] = []
        self._middles: list[float] = []
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
        self._left = []

    def watch(self, running: Iterable[float]) -> None:
        """What runs now, each for so many seconds; it takes the place of what was told before."""
        self._running = sorted(running)
        self._left = []

    def quantile_after(self, elapsed: float, quantile: float) -> float | None:
        """The time to which a job that has run for `elapsed` seconds keeps with this probability, linear between two.

        It never falls when `elapsed` grows, and is always longer than it. None when nobody can tell: when no run time
        is longer, and when so many run on beyond all that have ended that it lies there, too.
        """
        ordered, running = self._ordered, self._running
        first = bisect_right(ordered, elapsed) if elapsed > 0 else 0
        last = len(ordered) - 1
        if first > last:
            return None
        if running and running[-1] >= ordered[first]:
            return self._censored(first, quantile)
        position = first + (last - first) * quantile
        below = int(position)
        low = ordered[below]
        return low if below == last else low + (ordered[below + 1] - low) * (position - below)

    def _censored(self, first: int, quantile: float) -> float | None:
        """The same for those that come to the run time at the place `first`, where some run on that came there, too."""
        ordered, last = self._ordered, len(self._ordered) - 1
        if not self._left:
            self._reckon()
        left, middles = self._left, self._middles
        # What is left at the quantile: of what is left in the middle of the first run time and in that of the last.
        # Where nobody runs, all are equal steps, and this is the same place as without.
        wanted = (1 - quantile) * (left[first] + left[first + 1]) / 2 + quantile * (left[last] - left[last + 1]) / 2
        place = bisect_left(middles, -wanted, first, last + 1)
        if place > last:
            return None if left[last + 1] else ordered[last]
        if place == first:
            return ordered[first]
        low = ordered[place - 1]
        return low + (ordered[place] - low) * (-wanted - middles[place - 1]) / (middles[place] - middles[place - 1])

    def _reckon(self) -> None:
        """What share is left before each run time and after the last, and, below 0, in the middle of each."""
        running, ended, gone, share = self._running, len(self._ordered), 0, 1.0
        left = [share]
        for place, seconds in enumerate(self._ordered):
            gone = bisect_left(running, seconds, gone)
            there = ended - place + len(running) - gone
            share *= (there - 1) / there
            left.append(share)
        self._left = left
        self._middles = [-(before + after) / 2 for before, after in zip(left, left[1:])]

"""How long a payload goes on that has run for some time: from those that have ended and from those that run still.

Who looks at finished jobs alone learns from the short ones first: the long ones of the same kind have not ended yet. So
the share that ends at some age is taken of all that came to that age, finished or not (Kaplan and Meier's estimate).
A kind of which little is known follows the wider one: its own jobs count against `_WIDER` jobs of that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from drainwise.estimate.expected_end import LEAST_JOBS, MEDIAN, MOST_KINDS, Kind
from drainwise.estimate.run_times import WINDOW

_RATIO = 1.1
"""Ages are told apart by a tenth."""
_STEPS = 171  # up to four months
_WIDER = 5.0
_NOTHING_KNOWN = 0.05
"""Share of jobs that end while their age grows by a tenth where nobody knows anything."""
_log_ratio = math.log(_RATIO)


def _step(seconds: float) -> int:
    """The step that an age lies in; the first is up to a second."""
    return 0 if seconds < 1 else min(_STEPS - 1, 1 + int(math.log(seconds) / _log_ratio))


def _begin(step: int) -> float:
    """The age in s at which a step begins."""
    return 0.0 if step == 0 else _RATIO ** (step - 1)


class _Ended:
    """The last jobs of one kind that have ended, by the step in which they did."""

    __slots__ = ("counts", "newest")

    def __init__(self) -> None:
        self.counts = [0] * _STEPS
        self.newest: deque[int] = deque()

    def add(self, step: int, window: int) -> None:
        self.counts[step] += 1
        self.newest.append(step)
        if len(self.newest) > window:
            self.counts[self.newest.popleft()] -= 1


class Survival:
    """What is known of the jobs of each kind, from the widest kind to the narrowest; window: jobs each kind keeps."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._ended: dict[Kind, _Ended] = {}
        self._running: dict[Kind, list[int]] = {}
        self._shares: dict[Kind, list[float]] = {}

    def learn(self, kind: Kind, seconds: float) -> None:
        """A job of that kind has ended after so long; every wider kind learns it, too."""
        step = _step(seconds)
        for length in range(len(kind) + 1):
            part = kind[:length]
            found = self._ended.get(part)
            if found is None:
                if len(self._ended) >= MOST_KINDS:
                    continue
                found = self._ended[part] = _Ended()
            found.add(step, self._window)
        self._shares.clear()

    def watch(self, running: Iterable[tuple[Kind, float]]) -> None:
        """What runs now, and for how many seconds; it takes the place of what was told before."""
        self._running.clear()
        self._shares.clear()
        for kind, elapsed in running:
            step = _step(elapsed)
            for length in range(len(kind) + 1):
                self._running.setdefault(kind[:length], [0] * _STEPS)[step] += 1

    def run_time(self, kind: Kind, elapsed: float, quantile: float = MEDIAN, limit: float = math.inf) -> float | None:
        """Seconds in all that a job which has run for `elapsed` keeps to with this probability; at most `limit`.

        None when fewer than `LEAST_JOBS` jobs have ended at all.
        """
        known = self._ended.get(())
        if known is None or len(known.newest) < LEAST_JOBS:
            return None
        shares, left = self._shares_of(kind), 1.0
        for step in range(_step(elapsed), _STEPS):
            begin, end = max(elapsed, _begin(step)), _begin(step + 1)
            if begin >= limit:
                break
            # Of a step that is half over half of its share is left, on the scale of ages.
            part = math.log(end / begin) / _log_ratio if begin >= 1 else 1.0
            after = left * math.pow(1.0 - shares[step], min(1.0, part))
            if after <= 1.0 - quantile:
                return min(limit, begin + (end - begin) * (left - (1.0 - quantile)) / (left - after))
            left = after
        return limit if limit < math.inf else None

    def _shares_of(self, kind: Kind) -> list[float]:
        """Of those that come to each step, the share that ends in it."""
        found = self._shares.get(kind)
        if found is not None:
            return found
        wider = self._shares_of(kind[:-1]) if kind else [_NOTHING_KNOWN] * _STEPS
        ended, running = self._ended.get(kind), self._running.get(kind)
        if ended is None and running is None:
            return wider
        shares, there = [0.0] * _STEPS, 0.0
        for step in range(_STEPS - 1, -1, -1):
            gone = ended.counts[step] if ended else 0
            going = running[step] if running else 0
            # Who is within the step has seen half of it.
            shares[step] = (gone + _WIDER * wider[step]) / (there + gone + going / 2 + _WIDER)
            there += gone + going
        self._shares[kind] = shares
        return shares

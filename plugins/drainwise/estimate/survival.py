"""How long a job goes on that has run for some time, told by many kinds of jobs within each other.

As for one task (see `run_times`) the share that ends at some age is taken of all that came to that age, ended or not.
A kind of which little is known follows the wider one: its own jobs count against `_WIDER` jobs of that. For this ages
are told apart by a tenth alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from drainwise.estimate.expected_end import LEAST_JOBS, MEDIAN
from drainwise.estimate.run_times import WINDOW

Kind = tuple[str, ...]
"""What a job is one of many of, the widest word first: ("atlas", "user7", "task12")."""
MOST_KINDS = 100_000
"""Kinds of job that are kept; later ones are not learned, so that memory stays bounded."""

_RATIO = 1.1
"""Ages are told apart by a tenth."""
_STEPS = 171  # up to four months
_WIDER = 5.0
_UNKNOWN = [0.05] * _STEPS
"""Share of jobs that end while their age grows by a tenth where nobody knows anything."""
_NOBODY = [0] * _STEPS
_log_ratio = math.log(_RATIO)
_BEGINS = [0.0, *(_RATIO**step for step in range(_STEPS))]
"""The age in s at which each step begins, and at which the last one ends."""


def _step(seconds: float) -> int:
    """The step that an age lies in; the first is up to a second."""
    return 0 if seconds < 1 else min(_STEPS - 1, 1 + int(math.log(seconds) / _log_ratio))


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
        steps: dict[Kind, list[int]] = {}
        for kind, elapsed in running:
            steps.setdefault(kind, []).append(_step(elapsed))
        for kind, own in steps.items():
            for length in range(len(kind) + 1):
                counts = self._running.setdefault(kind[:length], [0] * _STEPS)
                for step in own:
                    counts[step] += 1

    def run_time(self, kind: Kind, elapsed: float, quantile: float = MEDIAN, limit: float = math.inf) -> float | None:
        """Seconds in all that a job which has run for `elapsed` keeps to with this probability; at most `limit`.

        None when fewer than `LEAST_JOBS` jobs have ended at all.
        """
        known = self._ended.get(())
        if known is None or len(known.newest) < LEAST_JOBS:
            return None
        shares, first, left, rest = self._shares_of(kind), _step(elapsed), 1.0, 1.0 - quantile
        begin = max(elapsed, _BEGINS[first])
        for step in range(first, _STEPS):
            if begin >= limit:
                break
            end, keep = _BEGINS[step + 1], 1.0 - shares[step]
            if step == first and begin >= 1:
                # Of a step that is half over half of its share is left, on the scale of ages.
                keep = math.pow(keep, min(1.0, math.log(end / begin) / _log_ratio))
            after = left * keep
            if after <= rest:
                return min(limit, begin + (end - begin) * (left - rest) / (left - after))
            begin, left = end, after
        return limit if limit < math.inf else None

    def _shares_of(self, kind: Kind) -> list[float]:
        """Of those that come to each step, the share that ends in it."""
        found = self._shares.get(kind)
        if found is not None:
            return found
        wider = self._shares_of(kind[:-1]) if kind else _UNKNOWN
        ended, running = self._ended.get(kind), self._running.get(kind)
        if ended is None and running is None:
            return wider
        found = self._shares[kind] = _ending(ended.counts if ended else _NOBODY, running or _NOBODY, wider)
        return found


def _ending(ended: list[int], running: list[int], wider: list[float]) -> list[float]:
    """The shares of a kind by what is known of its own jobs and of the wider kind's."""
    shares, there = [], 0.0
    for gone, going, share in zip(reversed(ended), reversed(running), reversed(wider)):
        # Who is within the step has seen half of it.
        shares.append((gone + _WIDER * share) / (there + gone + going / 2 + _WIDER))
        there += gone + going
    shares.reverse()
    return shares

"""Percentiles as JEDI takes them; quantiles of errors of estimates, in some hundred counters however many they are."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], rank: float) -> float:
    """Return the value at position (n − 1)·rank/100 of values in rising order: [1, 2, 3, 4] at 75 → 3.25.

    rank: 0 to 100. Raises ValueError when there is no value.
    """
    if not ordered:
        raise ValueError("a percentile of nothing")
    position = (len(ordered) - 1) * rank / 100
    below = min(len(ordered) - 1, math.floor(position))
    above = min(len(ordered) - 1, below + 1)
    low, high = ordered[below], ordered[above]
    if position == below:
        return low
    # Weights, and not a step from the lower one, as JEDI has it: to the last digit these are two figures.
    return low * (above - position) + high * (position - below)


STEPS = 100
"""Counters per factor of e: a quantile is right to half a per cent."""
LEAST_SECONDS = 1.0
_log = math.log
"""Shorter times count as this long: being off by less than a second is no error."""


class Spread:
    """Error ratios: the larger of estimate and truth by the smaller, 1 or more."""

    __slots__ = ("_counts", "jobs")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.jobs = 0

    def add(self, estimate: float, truth: float) -> None:
        """Take in an estimate and what came true, both in seconds."""
        estimate = max(estimate, LEAST_SECONDS)
        truth = max(truth, LEAST_SECONDS)
        step = int(STEPS * abs(_log(estimate / truth)) + 0.5)
        self._counts[step] = self._counts.get(step, 0) + 1
        self.jobs += 1

    def ratio(self, share: float) -> float | None:
        """Return the ratio that this share (0 to 1) of all estimates keeps to; None when there is none."""
        if not self.jobs:
            return None
        wanted, passed = share * self.jobs, 0
        for step in sorted(self._counts):
            passed += self._counts[step]
            if passed >= wanted:
                return math.exp(step / STEPS)
        return None

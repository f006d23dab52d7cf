"""Confidence in figures: means and ratios with their intervals over independent replications, and quantiles.

A ratio is one of sums (all waste of a policy to all waste of the optimum), since a mean of ratios would let the
smallest bursts speak loudest; its interval is that of the ratio estimator (Cochran, Sampling Techniques, chapter 6).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
_LARGE = 10_000  # degrees of freedom from which the normal distribution is taken


@dataclass(frozen=True)
class Interval:
    """A figure and the bounds of its confidence interval; both are None where fewer than two replications speak."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.3g}" if self.half is None else f"{self.value:.3g} ± {self.half:.2g}"

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.high is None else self.high - self.value


def mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the mean of one value or more, with Student's interval."""
    count, middle = len(values), math.fsum(values) / len(values)
    if count < 2:
        return Interval(middle)
    spread = math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (count - 1) / count)
    half = spread * student(0.5 + confidence / 2, count - 1)
    return Interval(middle, middle - half, middle + half)


def ratio(above: Sequence[float], below: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return Σ above / Σ below of values that belong together in pairs; None where Σ below is not above 0."""
    total, count = math.fsum(below), len(below)
    if total <= 0:
        return None
    middle = math.fsum(above) / total
    if count < 2:
        return Interval(middle)
    rest = math.fsum((one - middle * other) ** 2 for one, other in zip(above, below))
    half = math.sqrt(rest * count / (count - 1)) / total * student(0.5 + confidence / 2, count - 1)
    return Interval(middle, middle - half, middle + half)


def student(share: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution for a share from 0.5 to 1 and one degree of freedom or more.

    Found by bisection of the distribution's closed form (Abramowitz and Stegun 26.7.3, 26.7.4).
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom > _LARGE:
        return NormalDist().inv_cdf(share)
    low, high = 0.0, 1.0
    while _student_below(high, freedom) < share:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_below(middle, freedom) < share else (low, middle)
    return high


def _student_below(t: float, freedom: int) -> float:
    """Return the share of the distribution below t ≥ 0."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = total = cosine if odd else 1.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + inside / 2


def quantile(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """Return the least value up to which `share` of all weight lies, of pairs of value and weight; 0 of nothing."""
    ordered = sorted(weighted)
    wanted, there = share * math.fsum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        there += weight
        if there >= wanted - 1e-9 * abs(wanted):
            return value
    return ordered[-1][0] if ordered else 0.0

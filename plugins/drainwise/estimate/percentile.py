"""The percentile that JEDI takes: linear between the two nearest values."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], rank: float) -> float:
    """The value at position (n − 1)·rank/100 of values in rising order: [1, 2, 3, 4] at 75 → 3.25.

    rank: 0 to 100. Raises ValueError when there is no value.
    """
    if not ordered:
        raise ValueError("a percentile of nothing")
    position = (len(ordered) - 1) * rank / 100
    below = min(len(ordered) - 1, math.floor(position))
    above = min(len(ordered) - 1, below + 1)
    low, high = ordered[below], ordered[above]
    return low + (high - low) * (position - below)

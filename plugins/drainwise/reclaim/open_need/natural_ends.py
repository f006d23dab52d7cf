"""Estimate how many cores come back by themselves: pilots end also without an order, and not only with their lease.

A pilot that runs one payload goes when that has ended. How often that happens is learned from what was seen in the last
days: the cores of pilots that ended by themselves before their lease did, for each core-second for which pilots
were seen. Before much is known the pilots that are there tell something: as many should end as have begun.

How many it will be is uncertain: of few large pilots more than of many small ones. So a decision looks at three
numbers, each with its probability, and not at one.
"""

from __future__ import annotations

import math

from drainwise.reclaim.open_need.ends_seen import WINDOW, EndsSeen
from drainwise.reclaim.totals.arrays import Real, Whole

_PRIOR = 6 * 3600  # seconds for which all pilots must have been seen so that what was seen counts as much as the prior
_SHORTEST = 600.0  # seconds that a pilot lives on average, at least


def rate_of_ends(cores: Whole, started: Real, now: int, seen: EndsSeen) -> float:
    """Return the share of their cores that should end by themselves in each second; from 0 to 1 / `_SHORTEST`.

    cores, started (UNIX s): of the user's pilots at `now`.
    """
    held = float(cores.sum())
    if not held:
        return 0.0
    began = float(cores[started > now - WINDOW].sum())
    watched = max(0.0, seen.core_seconds) + held * _PRIOR
    ended = max(0.0, seen.cores) + began / WINDOW * _PRIOR
    return min(1 / _SHORTEST, ended / watched)


def cores_that_end(cores: Whole, started: Real, now: int, left: int, seen: EndsSeen) -> tuple[float, float]:
    """Return the cores of these pilots that should come back by themselves within `left` seconds, and the standard
    deviation of that number.

    As many as if each pilot ended independently of the others.
    """
    held = float(cores.sum())
    if not held or left <= 0:
        return 0.0, 0.0
    expected = held * -math.expm1(-rate_of_ends(cores, started, now, seen) * left)
    one = float((cores.astype(float) ** 2).sum()) / held  # cores of the pilot that a core is of
    return expected, math.sqrt(expected * one)


def likely(mean: float, spread: float) -> tuple[tuple[float, float], ...]:
    """Return three numbers of cores, none below 0, each with its probability: a normal distribution's three points.

    By Gauss and Hermite: what changes evenly with the number is right on average.
    """
    far = math.sqrt(3) * spread
    return (max(0.0, mean - far), 1 / 6), (mean, 2 / 3), (mean + far, 1 / 6)

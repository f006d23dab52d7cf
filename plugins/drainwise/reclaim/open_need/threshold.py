"""Say what a pilot that is killed now may cost, while a need stays open until a moment.

Nothing forces a decision before the moment, and pilots become cheap by themselves: a payload ends, and the next one has
hardly begun. Who is killed is below a threshold: what the cores that are missing should cost if the rest of them are
taken later. What a kill loses grows by a second each second on each busy core, so a pilot stays below x core-seconds a
core for about x seconds: if C cores are below x now, about C·R/x more will come below it within the R seconds that are
left. The less time is left, the higher is the threshold; in the end it is what the cheapest pilots cost that are there.

Pilots end also without an order, and not only with their lease: a pilot that runs one payload goes when that has ended.
How often that happens is learned from what was seen in the last days: the cores of pilots that ended by themselves
before their lease did, for each core-second for which pilots were seen. Before much is known the pilots that are there
tell something: as many should end as have begun.

A core that is taken now serves more than one job where jobs of those who wait are short: what ends in it within the
time that is left makes room for the next one.

How many it will be is uncertain: of few large pilots more than of many small ones. So a decision looks at three
numbers, each with its probability, and not at one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from drainwise.reclaim.open_need.pilots_look import WINDOW, EndsSeen
from drainwise.reclaim.totals.arrays import Mask, Real, Whole

LAST_MOMENTS = 300
"""Seconds before and after the moment of a need in which what is missing is taken whatever it costs."""
_COME_LATER = 0.5  # of those that should become cheap later, the share that is counted on
_WORSE = 1.5  # an order stands until it costs so many times what another pilot costs
_LEAST_WORSE = 300  # and core-seconds a core more

_PRIOR = 6 * 3600  # seconds for which all pilots must have been seen so that what was seen counts as much as the prior
_SHORTEST = 600.0  # seconds that a pilot lives on average, at least


def open_since(known: Mapping[str, int], waiting: Iterable[str], now: int, horizon: int) -> dict[str, int]:
    """Return since when the need of each account is open at `now` (UNIX s).

    known: what is remembered. waiting: accounts that wait for cores that they are owed. A need that was not met within
    `horizon` and `LAST_MOMENTS` opens anew: no agent was there, or a limit held it up.
    """
    since = {name: min(known.get(name, now), now) for name in waiting}
    return {name: now if now > time + horizon + LAST_MOMENTS else time for name, time in since.items()}


def worth_replacing(cost: Real | float) -> Real | float:
    """Return what a core of another pilot may cost, in core-seconds, for an order at this `cost` a core to be worse by
    far.
    """
    return (cost - _LEAST_WORSE) / _WORSE


def threshold_of(
    kill_waste: Real, cores: Whole, comes_again: Mask, wanted: float, others: float, left: int, times: float = 0.0
) -> float:
    """Return the least core-seconds a core below which as many cores should come within `left` seconds as are wanted.

    kill_waste (core-seconds), cores: of the pilots that may get an order. comes_again: whether a pilot starts payloads
    one after the other, so that it becomes cheap again. others: cores that should come by themselves; those of pilots
    that are ended now are none of them any more. times: how many more jobs, one after the other, a core serves that is
    taken now.
    """
    if wanted <= others or not len(cores):
        return 0.0
    each = kill_waste / cores
    order = np.argsort(each, kind="stable")
    threshold, sizes = each[order], cores[order]
    ended, flows = np.cumsum(sizes), np.cumsum(sizes * comes_again[order])
    reach = ended * (1 + times) + _COME_LATER * flows * left / np.maximum(threshold, LAST_MOMENTS)
    reach += others * (1 - ended / ended[-1])
    enough = np.flatnonzero(reach >= wanted)
    return float(threshold[enough[0]] if len(enough) else threshold[-1])


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

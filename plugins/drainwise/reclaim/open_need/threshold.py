"""Say what a pilot that is killed now may cost, while a need stays open until a moment.

Nothing forces a decision before the moment, and pilots become cheap by themselves: a payload ends, and the next one has
hardly begun. Who is killed is below a threshold: what the cores that are missing should cost if the rest of them are
taken later. What a kill loses grows by a second each second on each busy core, so a pilot stays below x core-seconds a
core for about x seconds: if C cores are below x now, about C·R/x more will come below it within the R seconds that are
left. The less time is left, the higher is the threshold; in the end it is what the cheapest pilots cost that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from drainwise.reclaim.totals.arrays import Mask, Real, Whole

LAST_MOMENTS = 300
"""Seconds before and after the moment of a need in which what is missing is taken whatever it costs."""
_COME_LATER = 0.5  # of those that should become cheap later, the share that is counted on
_WORSE = 1.5  # an order stands until it costs so many times what another pilot costs
_LEAST_WORSE = 300  # and core-seconds a core more


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


def threshold_of(kill_waste: Real, cores: Whole, comes_again: Mask, wanted: float, others: float, left: int) -> float:
    """Return the least core-seconds a core below which as many cores should come within `left` seconds as are wanted.

    kill_waste (core-seconds), cores: of the pilots that may get an order. comes_again: whether a pilot starts payloads
    one after the other, so that it becomes cheap again. others: cores that should come by themselves; those of pilots
    that are ended now are none of them any more.
    """
    if wanted <= others or not len(cores):
        return 0.0
    each = kill_waste / cores
    order = np.argsort(each, kind="stable")
    threshold, sizes = each[order], cores[order]
    ended, flows = np.cumsum(sizes), np.cumsum(sizes * comes_again[order])
    reach = ended + _COME_LATER * flows * left / np.maximum(threshold, LAST_MOMENTS)
    reach += others * (1 - ended / ended[-1])
    enough = np.flatnonzero(reach >= wanted)
    return float(threshold[enough[0]] if len(enough) else threshold[-1])

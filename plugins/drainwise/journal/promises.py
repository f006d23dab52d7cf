"""The tail of a promise: how likely a user's pilot does not leave by itself as it says, by what earlier ones did.

A pilot whose payloads should have ended before its deadline may still run some then: these are lost. So an order to
leave costs that probability times what is lost. As long as little is known of a user it is drawn to `BROKEN_PROMISES`.
"""

from __future__ import annotations

from drainwise.reclaim.settings import BROKEN_PROMISES

WEIGHT = 10
"""Orders that `BROKEN_PROMISES` counts as."""
LEAST, MOST = 0.01, 0.75
"""The bounds of the probability."""


def broken_probability(leaving: int, broken: int) -> float:
    """Return the probability after orders to so many pilots that were to leave, of which so many did not in time."""
    return min(MOST, max(LEAST, (broken + BROKEN_PROMISES * WEIGHT) / (leaving + WEIGHT)))

"""Learn how often a user's pilots do not leave by themselves as they said: the tail of a promise.

A pilot whose payloads should have ended before its deadline may still run some then: these are lost. So an order to
leave costs that probability times what is lost. It comes from the user's own pilots that had such orders; as long as
little is known it is drawn to `BROKEN_PROMISES`. It moves the figures of this user's pilots alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from drainwise.reclaim.history import PilotOutcome
from drainwise.reclaim.settings import BROKEN_PROMISES

WEIGHT = 10
"""Orders that `BROKEN_PROMISES` counts as."""
LEAST, MOST = 0.01, 0.75
"""The bounds of the probability."""


def broken_by_user(outcomes: Iterable[PilotOutcome]) -> dict[str, float]:
    """Return the probability that a pilot does not leave as it says, for each user with such outcomes."""
    orders, broken = Counter[str](), Counter[str]()
    for one in outcomes:
        if one.kept is not None:
            orders[one.user] += 1
            broken[one.user] += not one.kept
    return {user: broken_probability(count, broken[user]) for user, count in orders.items()}


def broken_probability(orders: int, broken: int) -> float:
    """Return the probability after so many orders to leave, of which so many were not kept."""
    return min(MOST, max(LEAST, (broken + BROKEN_PROMISES * WEIGHT) / (orders + WEIGHT)))

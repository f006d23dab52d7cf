"""Signs of life of nodes: how often a node gives one, when it is missed, and what that is called.

Whatever a node publishes is one; a node that has nothing to publish gives one in each period.
"""

from __future__ import annotations

SIGN_PERIOD = 3600
"""Seconds from one to the next."""
NO_SIGN = "its node has missed two signs of life: nobody there would tell it of an order"
"""Why a pilot gets no order that must hear of it from its node."""

_MISSED, _LATE = 2, 600  # a batch system that did not answer may have held one up


def is_missed(last: int, now: int) -> bool:
    """Decide whether two signs are missing since `last`; both in UNIX s."""
    return now - last > _MISSED * SIGN_PERIOD + _LATE

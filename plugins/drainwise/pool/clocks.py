"""Compare the clocks of two machines: deadlines are times of day, so a wrong clock makes wrong deadlines."""

from __future__ import annotations

from drainwise.facts.errors import PoolUnreachable

CLOCKS_DIFFER = 30
"""Seconds that the clocks of two machines may differ."""

WRONG_CLOCK = "this machine's clock is"
"""The error for a wrong clock begins so."""

_HELD_UP = 120  # s; a busy daemon takes a message in that much after it was sent


def clock_off(sent: int, received: int) -> int:
    """Return by how many seconds the clock of who sent a message is ahead, below 0 behind; 0 where nothing shows that.

    sent, received: UNIX s by the clocks of both.
    """
    ahead = sent - received
    return 0 if -_HELD_UP <= ahead <= CLOCKS_DIFFER else ahead


def require_same_clock(said: float, begun: float, ended: float, whose: str) -> None:
    """Raise PoolUnreachable when this machine's clock cannot be right beside the one that said it is `said`.

    All in UNIX s; begun, ended: this machine's time before and after the query. whose: in words.
    """
    if said < begun - CLOCKS_DIFFER:
        raise wrong_clock(f"{begun - said:.0f} s ahead of", whose)
    if said > ended + CLOCKS_DIFFER:
        raise wrong_clock(f"{said - ended:.0f} s behind", whose)


def wrong_clock(how: str, whose: str) -> PoolUnreachable:
    """Return the error for a clock that is so (`40 s ahead of`) beside another."""
    return PoolUnreachable(
        f"{WRONG_CLOCK} {how} {whose}: deadlines would be wrong; synchronise the clocks (chrony, ntpd)"
    )

"""Exponential back-off: each failure doubles the pause before the next attempt. Times in seconds."""

from __future__ import annotations

_MOST_DOUBLINGS = 30


def delay(failures: int, first: float, longest: float) -> float:
    """Return the pause after `failures` failures in a row: `first`, doubled with each further one, up to `longest`."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), max(first, longest)) if failures > 0 else 0.0


class Backoff:
    """The back-off of one thing that is tried again and again, on a clock that may be turned back.

    failures: how many in a row; seconds: the current pause, 0 without a failure.
    """

    __slots__ = ("_first", "_longest", "_until", "failures", "seconds")

    def __init__(self, first: float = 1.0, longest: float = 60.0) -> None:
        self._first, self._longest = first, longest
        self.failures, self.seconds, self._until = 0, 0.0, 0.0

    def failed(self, now: float) -> None:
        """Count a failure: the pause begins anew, and is longer."""
        self.failures += 1
        self.seconds = delay(self.failures, self._first, self._longest)
        self._until = now + self.seconds

    def succeeded(self) -> None:
        """End the pause."""
        self.failures, self.seconds = 0, 0.0

    def is_over(self, now: float) -> bool:
        """Tell whether the next try is due."""
        # An end that lies further ahead than any pause was set before the clock was turned back.
        return not self.seconds or not now < self._until <= now + max(self._first, self._longest)

"""How long something that did not work is left alone: twice as long each time, up to a minute. Times: UNIX s."""

from __future__ import annotations

FIRST, LONGEST = 1.0, 60.0
"""Seconds."""


class Pause:
    """None to begin with. `seconds`: how long the last one is or was, 0 since it worked again."""

    __slots__ = ("_until", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._until = 0.0

    def lengthen(self, now: float) -> None:
        """It did not work, again."""
        self.seconds = min(max(self.seconds * 2, FIRST), LONGEST)
        self._until = now + self.seconds

    def end(self) -> None:
        """It works."""
        self.seconds = 0.0

    def is_over(self, now: float) -> bool:
        """Whether it may be tried by now."""
        # An end that lies further ahead than any was set before the clock was turned back.
        return not self.seconds or not now < self._until <= now + LONGEST

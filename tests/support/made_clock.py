"""A clock that goes on by pauses alone: what waits is tried in no time, however busy the machine is."""

from __future__ import annotations


class MadeClock:
    """Takes the place of the module `time` in the one module that is tried; all others keep the real one.

    stretch: how many times as long as asked for a pause lasts, as on a busy machine.
    """

    def __init__(self, now: float = 0.0, stretch: float = 1.0) -> None:
        self.now, self.pauses, self._stretch = now, 0, stretch

    def time(self) -> float:
        """Seconds since 1970, and of any other beginning."""
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        """A pause: time goes on."""
        self.now += self._stretch * seconds
        self.pauses += 1

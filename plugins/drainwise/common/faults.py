"""Faults said once: when they begin, when they become others, and when they have ended."""

from __future__ import annotations

import time
from collections.abc import Callable

_HOUR = 3600.0


class Faults:
    """The faults of now, by place; `say` takes a line when one changes.

    an_hour: lines that one place gets in an hour, so that nobody fills a log by spoiling a file in ever new ways; the
    count ends with the place. clock: seconds that never go back.
    """

    def __init__(
        self, say: Callable[[str], None], an_hour: float = float("inf"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say, self._an_hour, self._clock = say, an_hour, clock
        self._now: dict[str, str] = {}
        self._lines: dict[str, tuple[float, int]] = {}

    def set(self, place: str, text: str, ended: str = "all right again") -> None:
        """Say what is wrong at `place` ("" and `ended`: nothing is) if it differs from what was said before."""
        if text == self._now.get(place, ""):
            return
        self._now[place] = text
        now = self._clock()
        since, lines = self._lines.get(place, (now, 0))
        if now - since >= _HOUR:
            since, lines = now, 0
        self._lines[place] = (since, lines + 1)
        if lines < self._an_hour:
            self.say(f"{place}: {text or ended}")

    def forget(self, place: str) -> None:
        """Forget a place that is no more: nothing about it is worth a line."""
        self._now.pop(place, None)
        self._lines.pop(place, None)

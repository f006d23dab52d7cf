"""The agent's log: one printable line on standard error for each change, and no fault twice.

What lasts is said when it begins, again when it becomes another, and once more when it has ended. No place may change
its faults more often in an hour than MOST_LINES: nobody fills a node's log by spoiling a file in ever new ways.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from drainwise.node.hook import printable

MOST_LINES = 20
"""Lines that one place gets in an hour; the count ends with the place, too."""
_HOUR = 3600.0


def write_line(text: str) -> None:
    """One line of at most 200 printable characters; a closed or full standard error is no reason to fail."""
    line = printable(f"drainwise: {' '.join(text.split())}")
    try:
        os.write(2, (line + "\n").encode("ascii"))
    except OSError:
        return


class Faults:
    """What is wrong now, place by place, and said already. A place is a job, or what all jobs depend on.

    clock: seconds that never go back.
    """

    def __init__(self, say: Callable[[str], None] = write_line, clock: Callable[[], float] = time.monotonic) -> None:
        self.say, self._clock = say, clock
        self._now: dict[str, str] = {}
        self._lines: dict[str, tuple[float, int]] = {}

    def set(self, place: str, text: str, ended: str = "all right again") -> None:
        """Say what is wrong at `place` now ("" when nothing is) if it differs from what was said before."""
        if text == self._now.get(place, ""):
            return
        self._now[place] = text
        now = self._clock()
        since, lines = self._lines.get(place, (now, 0))
        if now - since >= _HOUR:
            since, lines = now, 0
        self._lines[place] = (since, lines + 1)
        if lines < MOST_LINES:
            self.say(f"{place}: {text or ended}")

    def forget(self, place: str) -> None:
        """The job is gone: nothing about it is worth a line any more."""
        self._now.pop(place, None)
        self._lines.pop(place, None)

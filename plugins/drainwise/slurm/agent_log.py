"""The agent's log: one printable line on standard error for each change, and no fault twice.

What lasts is said when it begins, again when it becomes another, and once more when it has ended. A job may change its
faults only so often: nobody fills a node's log by spoiling a file in ever new ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from drainwise.node.hook import printable

MOST_LINES = 20
"""Lines that one place gets until it is forgotten."""


def write_line(text: str) -> None:
    """One line of at most 200 printable characters; a closed or full standard error is no reason to fail."""
    line = printable(f"drainwise: {' '.join(text.split())}")
    try:
        os.write(2, (line + "\n").encode("ascii"))
    except OSError:
        return


class Faults:
    """What is wrong now, place by place, and said already. A place is a job, or what all jobs depend on."""

    def __init__(self, say: Callable[[str], None] = write_line) -> None:
        self.say = say
        self._now: dict[str, str] = {}
        self._lines: dict[str, int] = {}

    def set(self, place: str, text: str, ended: str = "all right again") -> None:
        """Say what is wrong at `place` now ("" when nothing is) if it differs from what was said before."""
        if text == self._now.get(place, ""):
            return
        self._now[place] = text
        lines = self._lines[place] = self._lines.get(place, 0) + 1
        if lines <= MOST_LINES:
            self.say(f"{place}: {text or ended}")

    def forget(self, place: str) -> None:
        """The job is gone: nothing about it is worth a line any more."""
        self._now.pop(place, None)
        self._lines.pop(place, None)

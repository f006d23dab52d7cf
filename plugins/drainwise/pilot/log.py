"""The pilot's log: one line of printable ASCII on standard error for each thing worth knowing, and no fault twice.

A fault that lasts is said when it begins, again only when it changes, and once more when it has ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LINE_LIMIT = 200
"""Characters of a line, the time in front included."""


class Log:
    """Lines to a descriptor. A closed or full one is no reason to fail: the payloads matter more."""

    def __init__(self, clock: Callable[[], float] = time.time, descriptor: int = 2) -> None:
        self._clock, self._descriptor = clock, descriptor

    def __call__(self, text: str) -> None:
        """Say one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        line = one_line(f"{moment} pilot: {text}")
        try:
            os.write(self._descriptor, f"{line}\n".encode("ascii"))
        except OSError:
            return


class Faults:
    """What is wrong now, place by place, and said already."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._said: dict[str, str] = {}

    def set(self, place: str, text: str) -> None:
        """Say what is wrong at `place` now ("" when nothing is) if it differs from what was said before."""
        if text == self._said.get(place, ""):
            return
        if text:
            self._said[place] = text
            self._log(f"{place}: {text}")
        else:
            del self._said[place]
            self._log(f"{place}: all right again")


def one_line(text: str) -> str:
    """At most 200 printable ASCII characters of `text`; blanks and line ends become one blank, the rest `?`."""
    # A long text is cut before it is taken apart: what a user wrote may be of any length.
    words = " ".join(text[: 8 * LINE_LIMIT].split())[:LINE_LIMIT]
    return "".join(letter if " " <= letter <= "~" else "?" for letter in words)

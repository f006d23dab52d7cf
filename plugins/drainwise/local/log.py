"""The daemon's log: a line with its time for what happened; a fault that lasts is said once, and once when it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from drainwise.node.hook import printable

LOG = "daemon.log"

_LARGEST = 1 << 20  # bytes; then the file is put aside as daemon.log.1

Say = Callable[[str], None]


def to_terminal(text: str) -> None:
    """Say it on standard error."""
    print(_line(text), file=sys.stderr, flush=True)


def to_file(directory: str) -> Say:
    """What appends a line to the log in `directory`; a full disk costs the line and nothing else."""
    path = os.path.join(directory, LOG)

    def say(text: str) -> None:
        try:
            if os.path.exists(path) and os.path.getsize(path) > _LARGEST:
                os.replace(path, f"{path}.1")
            with open(path, "a", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(_line(text) + "\n")
        except OSError:
            return

    return say


class Faults:
    """Faults by the place they are at."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._known: dict[str, str] = {}

    def set(self, place: str, text: str) -> None:
        """This is wrong at this place now; "" when nothing is."""
        if text == self._known.get(place, ""):
            return
        if text:
            self._known[place] = text
        else:
            del self._known[place]
        self._say(f"{place}: {text or 'in order again'}")

    def forget(self, place: str) -> None:
        """The place is no more."""
        self._known.pop(place, None)


def _line(text: str) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime())} {printable(text)}"

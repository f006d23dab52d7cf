"""The daemon's log: a line with its time for what happened."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from drainwise.common.printable import ascii_line
from drainwise.facts.units import clock

LOG = "daemon.log"

_LARGEST = 1 << 20  # bytes; then the file is put aside as daemon.log.1

Say = Callable[[str], None]


def to_terminal(text: str) -> None:
    """Print it on standard error."""
    print(_line(text), file=sys.stderr, flush=True)


def to_file(directory: str) -> Say:
    """Return a function that appends a line to the log in `directory`; a full disk costs the line and nothing else."""
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


def _line(text: str) -> str:
    return f"{clock(int(time.time()))} {ascii_line(text)}"

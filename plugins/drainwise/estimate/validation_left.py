"""What a run left behind in its directory: the runner's report, and the last words on its stderr. A user's files."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from drainwise.errors import FeatureError
from drainwise.estimate.validation_backend import REPORT
from drainwise.features.local_file import OPEN, read_small

_REPORT_LIMIT = 1 << 23
_SAID_READ = 4096
_SAID_SHOWN = 200


def report_in(work: str) -> bytes | None:
    """The runner's report; None where there is none that may be read, or an empty one."""
    with suppress(FeatureError):
        found = read_small(f"{work}/{REPORT}", _REPORT_LIMIT) if work else None
        return None if found is None else found[0] or None
    return None


def said_in(path: str) -> str:
    """The last line that a run wrote into this file, without what a terminal would take for more than text."""
    lines = _end_of(path).decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "".join(letter for letter in last if letter.isprintable()).strip()[:_SAID_SHOWN]


def _end_of(path: str) -> bytes:
    """The last bytes of a regular file, however long it is; nothing of anything else."""
    try:
        descriptor = os.open(path, OPEN)
    except OSError:
        return b""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return b""
        return os.pread(descriptor, _SAID_READ, max(0, found.st_size - _SAID_READ))
    except OSError:
        return b""
    finally:
        os.close(descriptor)

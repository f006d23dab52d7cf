"""A file that a command writes: whole or not at all, since a web server may read it at any moment."""

from __future__ import annotations

import os
import sys

from drainwise.errors import UsageError


def write_whole(path: str, text: str, what: str) -> None:
    """Put `text` at `path`, "-" being the standard output; `what` is what errors call it. Raises UsageError."""
    if path == "-":
        sys.stdout.write(text)
        return
    half = f"{path}.{os.getpid()}.new"
    try:
        with open(half, "x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.replace(half, path)
    except (OSError, ValueError) as fault:
        if not isinstance(fault, FileExistsError) and os.path.lexists(half):
            os.unlink(half)
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"the {what} {path!r} cannot be written: {reason}") from None

"""The record of what was done: one JSON line per act, in which no control character ever stands raw."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Protocol

from drainwise.errors import DrainwiseError, UsageError


class Journal(Protocol):
    """Takes one act after the other."""

    def write(self, act: Mapping[str, object]) -> None:
        """Keep one act; its values are what JSON can hold."""


def journal_line(act: Mapping[str, object]) -> str:
    r"""One line of ASCII JSON with its newline: what a user wrote cannot break a line or reach a terminal.

    JSON escapes everything below a blank and, asked for ASCII, everything above `~` but DEL.
    """
    return json.dumps(act, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("\x7f", "\\u007f") + "\n"


class JournalOf:
    """A journal into an open file descriptor: each line in one write, so that two writers never mix theirs."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, act: Mapping[str, object]) -> None:
        """Append the act's line. Raises DrainwiseError when it cannot be kept: then no further act may follow."""
        data = journal_line(act).encode("ascii")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as fault:
            raise DrainwiseError(
                f"the journal cannot be written ({fault.strerror}): no further order is given"
            ) from None


class JournalFile(JournalOf):
    """A journal that appends to a file, which is made (0640) when it is absent.

    Raises UsageError when `path` is not a regular file that can be written: a symbolic link is refused.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags, 0o640)
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or "not a path"
            raise UsageError(f"the journal {path!r} cannot be written: {reason}") from None
        super().__init__(descriptor)
        self.path = path

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

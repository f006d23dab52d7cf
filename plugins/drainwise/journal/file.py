"""The journal as a file: one JSON line per event, in which no control character ever stands raw; rotated by size."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from typing import Protocol

from drainwise.common.local_file import make_public
from drainwise.facts.errors import DrainwiseError, UsageError

MAX_SIZE = 64_000_000
"""Bytes a file grows to before the next one is begun."""

KEEP = 8
"""Files that are kept besides the one that is written."""


class Journal(Protocol):
    """Takes one event after the other."""

    def write(self, event: Mapping[str, object]) -> None:
        """Keep one event; its values are what JSON can hold."""


def journal_line(event: Mapping[str, object]) -> str:
    r"""Return one line of ASCII JSON with its newline: nothing that a user wrote breaks a line or controls a terminal.

    JSON escapes everything below a blank and, with ensure_ascii, everything above `~` but DEL.
    """
    return (
        json.dumps(event, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("\x7f", "\\u007f") + "\n"
    )


class JournalOf:
    """A journal into an open file descriptor: each line in one write, so that two writers never mix theirs."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._torn = False

    def write(self, event: Mapping[str, object]) -> None:
        """Append the event's line. Raises DrainwiseError when it cannot be kept: then no further act may follow."""
        data = journal_line(event).encode("ascii")
        try:
            self._make_room(len(data))
            if self._torn:  # what was begun and could not be ended must not spoil this line
                data = b"\n" + data
            while data:
                written = os.write(self._descriptor, data)
                data = data[written:]
                self._torn = bool(data)
        except OSError as fault:
            raise DrainwiseError(
                f"the journal cannot be written ({fault.strerror}): no further order is given"
            ) from None

    def _make_room(self, size: int) -> None:
        """Make room for a line of `size` bytes."""


class JournalFile(JournalOf):
    """A journal that appends to a file, which is made (0640) when it is absent, as is its directory (0755) in a parent.

    When a line would make it larger than `max_size` bytes, it becomes `path.1`, what was that becomes `path.2`, and so
    on; `keep` of them are kept. A file that somebody else moved away is begun anew. Raises UsageError when `path` is
    not a regular file that can be written: a symbolic link is refused.
    """

    def __init__(self, path: str, max_size: int = MAX_SIZE, keep: int = KEEP) -> None:
        try:
            _make_directory(os.path.dirname(path))
            super().__init__(_opened(path))
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or "not a path"
            raise UsageError(f"the journal {path!r} cannot be written: {reason}") from None
        self.path, self._max_size, self._keep = path, max_size, keep
        self._torn = _ends_torn(path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _make_room(self, size: int) -> None:
        mine = os.fstat(self._descriptor)
        try:
            there: os.stat_result | None = os.lstat(self.path)
        except FileNotFoundError:
            there = None
        if there is not None and os.path.samestat(mine, there):
            if mine.st_size == 0 or mine.st_size + size <= self._max_size:
                return
            _move_on(self.path, self._keep)
        descriptor = _opened(self.path)
        os.close(self._descriptor)
        self._descriptor, self._torn = descriptor, _ends_torn(self.path)


def _make_directory(path: str) -> None:
    """Make `path` if it alone is missing: below a parent that is not there the journal's name is more likely wrong."""
    if os.path.isdir(os.path.dirname(path)):
        make_public(path)


def _opened(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o640)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is not a regular file")
    return descriptor


def _ends_torn(path: str) -> bool:
    """Return whether the file's last line has no end: a writer was killed in the midst of it."""
    try:
        with open(path, "rb") as stream:
            if stream.seek(0, os.SEEK_END) == 0:
                return False
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"
    except OSError:  # a journal may be writable and not readable
        return False


def _move_on(path: str, keep: int) -> None:
    """Give each file the next number, from the last one on; a crash in between leaves a gap, which is filled later."""
    free = next((number for number in range(1, keep) if not os.path.lexists(f"{path}.{number}")), max(1, keep))
    for number in range(free, 1, -1):
        os.replace(f"{path}.{number - 1}", f"{path}.{number}")
    os.replace(path, f"{path}.1")

"""The directories that jobs have as their TMPDIR: empty at first, looked at while they run, taken away afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from drainwise.common.foreign_tree import is_as_made, remove_tree, sizes
from drainwise.facts.errors import FeatureError

_MODE = 0o700
_AT_ONCE, _IN_THE_END = 0.1, 5.0
"""Seconds that removing may take in a row; what is left is gone on with later."""
_LOOK = 2.0
"""Seconds from the end of one look at a scratch to the next."""
_ENTRIES = 2000
"""Entries that are looked at in a row: many files keep nobody waiting."""


class ScratchSpace:
    """`directory`: this launch's alone; made if need be. What an earlier one has left there is taken away.

    Raises OSError.
    """

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._directory, self._count = directory, 0
        self._left = [f"{directory}/{name}" for name in os.listdir(directory)]
        self._unused: dict[str, tuple[int, int]] = {}
        self.tidy()

    def make(self) -> str:
        """Return an empty one. Raises OSError."""
        while self._unused:
            path, before = self._unused.popitem()
            if _change_of(path) == before:
                return path
            self._left.append(path)
        while True:
            self._count += 1
            path = f"{self._directory}/{self._count}"
            with suppress(FileExistsError):  # an earlier one that resists
                os.mkdir(path, _MODE)
                return path

    def remove(self, path: str) -> None:
        """Take away the scratch of a job that is over, now or little by little."""
        # Some file systems take longer to remove a directory than to start a process: most jobs leave theirs empty.
        if is_as_made(path, _MODE):
            self._unused[path] = _change_of(path)
        else:
            self._left.append(path)
            self.tidy()

    def close(self) -> None:
        """Take all away that can be."""
        self._left += self._unused
        self._unused.clear()
        self._take_away(_IN_THE_END)

    def tidy(self) -> None:
        """Go on with what could not be taken away so far."""
        if self._left:
            self._take_away(_AT_ONCE)

    def _take_away(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        resists = []
        while self._left:
            path = self._left.pop()
            try:
                remove_tree(path, end)
            except TimeoutError:
                self._left.append(path)
                break
            except (OSError, FeatureError):  # what has just been killed may still write there
                resists.append(path)
        self._left += resists


def _change_of(path: str) -> tuple[int, int]:
    """Return which directory it is, and when anything about it changed last."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0
    return status.st_ino, status.st_ctime_ns


class Usage:
    """Measures the size of one scratch directory in small pieces."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._bytes = 0
        self._walk: Iterator[int] | None = None
        self._next = float("-inf")

    def look(self, now: float) -> int:
        """Return the bytes that are known to lie there, at `now` (monotonic clock, seconds)."""
        if self._walk is None:
            if now < self._next:
                return self._bytes
            self._walk, self._bytes = sizes(self._directory), 0
        for _ in range(_ENTRIES):
            taken = next(self._walk, None)
            if taken is None:
                self._walk, self._next = None, now + _LOOK
                break
            self._bytes += taken
        return self._bytes

"""The payloads that a pilot has claimed in a shared directory, `QUEUE/running/<pilot>/`: a lock dies with the pilot.

Whoever finds a claim whose lock is free knows that its pilot has vanished, and puts its payloads back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable

from drainwise.facts.errors import UsageError

RUNNING = "running"
LOCK = ".lock"
SUFFIX = ".json"
_NEW = ".new"
_ABANDONED = 60.0
"""Seconds after which a claim directory that was never finished is taken away."""


class Claims:
    """The claim directory of one pilot. Raises UsageError when it cannot be made."""

    def __init__(self, queue: str, pilot: str) -> None:
        self._queue, self._all = queue, f"{queue}/{RUNNING}"
        self.place = f"{self._all}/{pilot}"
        # Locked before it has its name: nobody may find it unlocked while its pilot is alive.
        made = f"{self._all}/.{pilot}{_NEW}"
        try:
            os.makedirs(made)
            self._lock = os.open(f"{made}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(made, self.place)
        except OSError as error:
            raise UsageError(f"queue {queue}: no claims can be made in {RUNNING}/: {error.strerror}") from None

    def take(self, file: str) -> bool:
        """Claim a file of the queue; False when it has gone. Raises OSError for anything else."""
        try:
            os.rename(f"{self._queue}/{file}", f"{self.place}/{file}")
        except FileNotFoundError:
            return False
        return True

    def settle(self, file: str, folder: str) -> None:
        """Move a claimed file to a folder of the queue, made if need be. Raises OSError."""
        os.makedirs(f"{self._queue}/{folder}", exist_ok=True)
        os.rename(f"{self.place}/{file}", f"{self._queue}/{folder}/{file}")

    def give_back(self, file: str) -> None:
        """Put a claimed file back into the queue. Raises OSError."""
        put_back(f"{self.place}/{file}", self._queue)

    def close(self) -> None:
        """Release the claim; the directory goes when it is empty, else the next pilot puts back what is in it."""
        if not [name for name in _names(self.place) if name != LOCK]:
            _remove(self.place)
        os.close(self._lock)

    def recover(self, put: Callable[[str, str], None]) -> None:
        """Put back what pilots claimed that have vanished; `put` gets each file and its pilot."""
        for pilot in _names(self._all):
            place = f"{self._all}/{pilot}"
            if place == self.place:
                continue
            if pilot.startswith("."):
                _remove_abandoned(place)
                continue
            with _locked(place) as vanished:
                if vanished:
                    for file in _names(place):
                        if file != LOCK:
                            put_back(f"{place}/{file}", self._queue)
                            put(file, pilot)
                    _remove(place)


class _locked:  # noqa: N801 - used as a function
    """Hold the lock of a claim while the block lasts, if it was free."""

    def __init__(self, place: str) -> None:
        self._place, self._fd = place, -1

    def __enter__(self) -> bool:
        try:
            self._fd = os.open(f"{self._place}/{LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def put_back(source: str, queue: str) -> str:
    """Move a file into the queue under its name, or one like it when that is taken; the name. Raises OSError."""
    stem = source.rpartition("/")[2][: -len(SUFFIX)]
    name, number = stem + SUFFIX, 1
    while True:
        try:
            # A link never replaces what is there, as a rename would: that would lose a payload.
            os.link(source, f"{queue}/{name}")
        except FileExistsError:
            number += 1
            name = f"{stem}.{number}{SUFFIX}"
            continue
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
                raise
            os.rename(source, f"{queue}/{name}")  # a file system without links
            return name
        os.unlink(source)
        return name


def _names(place: str) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return []


def _remove(place: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(f"{place}/{LOCK}")
    with contextlib.suppress(OSError):
        os.rmdir(place)


def _remove_abandoned(place: str) -> None:
    with contextlib.suppress(OSError):
        if place.endswith(_NEW) and time.time() - os.stat(place, follow_symlinks=False).st_mtime > _ABANDONED:
            _remove(place)

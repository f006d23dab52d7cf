"""One process per place: an flock on a file, which the kernel lets go of however its holder ends.

A file that is removed and made again locks nobody out: `take` looks for that once it has the lock, and `is_held` ever
after. A child that was forked holds the lock with its parent.
"""

from __future__ import annotations

import fcntl
import os
import time

from drainwise.common.local_file import Held, is_at
from drainwise.facts.errors import PoolError

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600  # whoever can open it, for reading even, can lock it
_LONGEST = 64
_PAUSE = 0.02


class ProcessLock:
    """The lock at `path`; nothing is done before `take`. note: what stands behind the pid in the file."""

    def __init__(self, path: str, note: str = "") -> None:
        self.path, self._note = path, note
        self._descriptor: int | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock; False when another process holds it, for `patience` seconds. Raises OSError."""
        ends = time.monotonic() + patience
        while self._descriptor is None:
            descriptor = os.open(self.path, _OPEN, _MODE)
            try:
                if try_lock(descriptor) and is_at(descriptor, self.path):
                    os.fchmod(descriptor, _MODE)
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"{os.getpid()} {self._note}".rstrip().encode() + b"\n", 0)
                    self._descriptor = descriptor
                    break
                if is_at(descriptor, self.path):  # else it was removed in between: the new one is tried
                    if time.monotonic() >= ends:
                        return False
                    time.sleep(_PAUSE)
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
        return True

    def is_held(self) -> bool:
        """Tell whether this process holds it and still keeps others out: the file was not removed or replaced."""
        return self._descriptor is not None and is_at(self._descriptor, self.path)

    def must_hold(self, otherwise: str) -> None:
        """Raise PoolError unless `is_held`; otherwise: what could happen beside this process then."""
        if not self.is_held():
            raise PoolError(f"{self.path} was removed or replaced: {otherwise} beside this one")

    def stamp(self, when: float) -> None:
        """Set the time of the file to `when`, UNIX s."""
        if self._descriptor is not None:
            os.utime(self._descriptor, (when, when))

    def release(self) -> None:
        """Release the lock, and name nobody in it any more."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file; return whether it was free. It never waits. Raises OSError."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder_words(path: str) -> list[str] | None:
    """Return what its last holder wrote in a lock file: pid, note; [] once it was released, None without a file."""
    try:
        with Held(os.open(path, _READ)) as descriptor:
            return os.read(descriptor, _LONGEST).decode("ascii", "replace").split()
    except OSError:
        return None


def last_stamp(path: str) -> float | None:
    """Return the time of a lock file that a process holds, UNIX s; None when nobody holds it."""
    try:
        with Held(os.open(path, _READ)) as descriptor:
            return None if try_lock(descriptor, fcntl.LOCK_SH) else os.fstat(descriptor).st_mtime
    except OSError:
        return None

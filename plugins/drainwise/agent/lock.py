"""One agent per pool: a lock on a file in the state directory, which the kernel lets go of however its holder ends.

A child that is giving an order holds the lock with its parent: when the agent is killed in the middle of an order, the
next one begins when that order has ended, and never beside it.
"""

from __future__ import annotations

import fcntl
import os
import re

from drainwise.errors import PoolError, UsageError
from drainwise.public_directory import make_public

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600  # whoever can open it, for reading even, can lock it and so keep every agent from acting
_LONGEST_NAME = 100


def lock_path(state_dir: str, pool: str) -> str:
    """Where the lock of the agent of `pool` lies; whatever is no letter or digit in its name becomes a dash."""
    name = re.sub("[^A-Za-z0-9]+", "-", pool).strip("-")[-_LONGEST_NAME:]
    return os.path.join(state_dir, f"agent-{name}.lock")


class AgentLock:
    """The right to act on a pool; `path` as `lock_path` gives it. Nothing is done before `take`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock; False when another process holds it. Its directory is made (0755) where it is missing.

        Raises UsageError when there is no place for it.
        """
        while self._descriptor is None:
            descriptor = self._open()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            if not _is_file_at(self.path, descriptor):
                os.close(descriptor)  # removed by somebody in between: what is locked hinders nobody
                continue
            os.fchmod(descriptor, _MODE)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            self._descriptor = descriptor
        return True

    def must_take(self) -> None:
        """Take the lock. Raises PoolError naming the holder when another process holds it, UsageError as `take`."""
        if not self.take():
            raise PoolError(f"another agent acts on this pool ({self.holder()}); it holds {self.path}")

    def is_held(self) -> bool:
        """Whether this process holds it, and would still keep others out: the file was not removed or replaced."""
        return self._descriptor is not None and _is_file_at(self.path, self._descriptor)

    def holder(self) -> str:
        """Who holds it, in words: `pid 123` as the holder wrote it."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return "nobody"
        try:
            written = os.read(descriptor, 32).strip()
        finally:
            os.close(descriptor)
        return f"pid {int(written)}" if written.isdigit() else "its pid is not known"

    def release(self) -> None:
        """Let go of it, and name nobody in it any more."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def make_place(self) -> None:
        """Make its directory where it is missing; `take` does so too. Raises UsageError when that cannot be done."""
        try:
            make_public(os.path.dirname(self.path))
        except OSError as fault:
            raise self._no_place(fault) from None

    def _open(self) -> int:
        self.make_place()
        try:
            return os.open(self.path, _OPEN, _MODE)
        except OSError as fault:
            raise self._no_place(fault) from None

    def _no_place(self, fault: OSError) -> UsageError:
        what = f"{self.path}: the agent's lock cannot be kept there ({fault.strerror}); see [agent] state_dir"
        return UsageError(what)


def _is_file_at(path: str, descriptor: int) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))

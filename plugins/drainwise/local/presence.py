"""Whether a daemon serves a directory: it holds a lock as long as it lives, and stamps it with the time of each round.

The kernel lets go of the lock whatever way the daemon ends, so what is left behind by a kill -9 hinders nobody.
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass

from drainwise.errors import PoolError, PoolUnreachable
from drainwise.local.processes import Process, birth_of

LOCK = "daemon.lock"
STALE_AFTER = 10.0
"""Seconds without a round after which the daemon counts as stuck."""

_PATIENCE = 1.0  # seconds; whoever looks whether there is a daemon holds the lock for a moment
_PAUSE = 0.02
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Presence:
    """The daemon as found: its process (None: not known), and when its last round ended, UNIX s."""

    process: Process | None
    last_round: float


class DaemonLock:
    """Held by the one daemon of a directory (or by whoever acts in its place). Raises PoolError when it is held."""

    def __init__(self, directory: str) -> None:
        try:
            self._descriptor = os.open(os.path.join(directory, LOCK), _OPEN, 0o600)
        except OSError as error:
            raise PoolError(f"{os.path.join(directory, LOCK)}: cannot be written: {error.strerror}") from None
        if not _locked(self._descriptor, fcntl.LOCK_EX, _PATIENCE):
            holder = _process_in(self._descriptor)
            os.close(self._descriptor)
            who = "" if holder is None else f" (pid {holder.pid})"
            raise PoolError(f"{directory}: a daemon serves it already{who}; `drainwise local stop` stops it")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d %d\n" % (os.getpid(), birth_of(os.getpid()) or 0), 0)
        os.utime(self._descriptor, (0, 0))  # no round yet

    def stamp(self, now: float) -> None:
        """Note that a round ended at `now`, UNIX s."""
        os.utime(self._descriptor, (now, now))

    def release(self) -> None:
        """Let go of the lock; nobody is named in it any more."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def find_daemon(directory: str) -> Presence | None:
    """The daemon that serves `directory`; None when there is none."""
    try:
        descriptor = os.open(os.path.join(directory, LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _locked(descriptor, fcntl.LOCK_SH, 0.0):
            return None
        return Presence(_process_in(descriptor), os.fstat(descriptor).st_mtime)
    finally:
        os.close(descriptor)


def require_daemon(directory: str, now: float, stale_after: float = STALE_AFTER) -> None:
    """Raise PoolUnreachable unless a daemon serves `directory` and has done a round within `stale_after` s of `now`."""
    found = find_daemon(directory)
    if found is None:
        raise PoolUnreachable(f"no daemon serves the local batch system in {directory}: `drainwise local start` it")
    age = now - found.last_round
    if abs(age) > stale_after:
        who = "" if found.process is None else f" (pid {found.process.pid})"
        since = "it has not done a round yet" if not found.last_round else f"its last round was {age:.0f} s ago"
        raise PoolUnreachable(f"the daemon of the local batch system in {directory}{who} does not answer: {since}")


def _locked(descriptor: int, kind: int, patience: float) -> bool:
    ends = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(_PAUSE)


def _process_in(descriptor: int) -> Process | None:
    words = os.pread(descriptor, 64, 0).split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return Process(int(words[0]), int(words[1]))

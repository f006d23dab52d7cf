"""The lock on `$JOBSTATUS/used_CPU`, in both kinds, never waited for without end.

The draft says "lock this file" and not how: flock() and fcntl() locks do not see each other, so both are taken.
"""

from __future__ import annotations

import errno
import fcntl
import posix
import time

from drainwise.errors import RefusedFile
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.safe_open import reason_of

_PAUSE = 0.001
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def lock(fd: int, exclusive: bool, timeout: float, patience: Patience | None = None) -> None:
    """Lock `fd` in both kinds; the locks go with the descriptor (fcntl's with *any* descriptor of that file).

    exclusive: a writer; else readers may share. timeout: s to keep trying, as far as `patience` (None: enough) goes.
    Raises RefusedFile("locked").
    """
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    budget, end = patience or Patience(timeout), time.monotonic() + timeout
    while not _both(fd, kind):
        if time.monotonic() + _PAUSE > end or not budget.pause(_PAUSE):
            raise RefusedFile("locked")


def _both(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind)
        fcntl.lockf(fd, kind)
    except OSError as error:
        if error.errno not in _HELD:
            raise RefusedFile(reason_of(error)) from error
        # Holding one while waiting for the other could stop two honest ones for good.
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    return True


def is_at(fd: int, dir_fd: int, name: str) -> bool:
    """Whether `name` in `dir_fd` still leads to the open file `fd`: a lock on a replaced file guards nothing."""
    try:
        there = posix.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        here = posix.fstat(fd)
    except OSError:
        return False
    return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)

"""Waking the node's agent: a byte into a FIFO in the runtime directory.

A FIFO needs no module that a prolog would have to load, holds no message that could be lost or forged (the agent looks
for what is new itself), and says at once when nobody listens.
"""

from __future__ import annotations

import posix
import stat

FIFO = "agent.wake"
"""The FIFO's name in the runtime directory; the agent makes it, with mode 0600, and holds it open for reading."""

_FLAGS = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_NOCTTY | posix.O_CLOEXEC


def wake(runtime_dir: str) -> bool:
    """Wake the agent; False when there is none. Never waits and never raises."""
    try:
        fifo = posix.open(f"{runtime_dir}/{FIFO}", _FLAGS)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(posix.fstat(fifo).st_mode):
            return False
        posix.write(fifo, b"\n")
    except BlockingIOError:
        return True  # so many have called already that no more fits
    except OSError:
        return False
    finally:
        posix.close(fifo)
    return True


def open_wake(runtime_dir: str) -> int:
    """The FIFO, made when it is not there, for the agent to poll and to empty; the caller closes it. Raises OSError.

    It is opened for writing, too: else it would be at its end whenever no prolog holds it.
    """
    path = f"{runtime_dir}/{FIFO}"
    try:
        posix.mkfifo(path, 0o600)
    except FileExistsError:
        if not stat.S_ISFIFO(posix.stat(path, follow_symlinks=False).st_mode):
            posix.unlink(path)
            posix.mkfifo(path, 0o600)
    return posix.open(path, posix.O_RDWR | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_CLOEXEC)

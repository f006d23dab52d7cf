"""Wake a process that sleeps in poll(): a FIFO for other processes, a pipe for its own signals and threads.

A byte holds no message that could be lost or forged: whoever is woken looks for what is new. The standard library's
slow modules are left out, since a hook wakes an agent.
"""

from __future__ import annotations

import posix
import stat

from drainwise.common.local_file import Held

_CALL = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_NOCTTY | posix.O_CLOEXEC
_LISTEN = posix.O_RDWR | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_CLOEXEC
_CALLS = 4096
_MOST_READS = 16  # that is all that a FIFO holds: who calls without end does not hold up the listener


def wake(fifo: str) -> bool:
    """Wake the listener at the FIFO `fifo`; False when there is none. Never waits and never raises."""
    try:
        with Held(posix.open(fifo, _CALL)) as descriptor:
            return stat.S_ISFIFO(posix.fstat(descriptor).st_mode) and _call(descriptor)
    except OSError:
        return False


class Wake:
    """A descriptor that can be read once somebody has called: of the FIFO `fifo`, or of a pipe of this process's own.

    The FIFO is made, with mode 0600, where it is missing; another kind of file under its name goes. Raises OSError.
    """

    def __init__(self, fifo: str = "") -> None:
        if fifo:
            try:
                posix.mkfifo(fifo, 0o600)
            except FileExistsError:
                if not stat.S_ISFIFO(posix.stat(fifo, follow_symlinks=False).st_mode):
                    posix.unlink(fifo)
                    posix.mkfifo(fifo, 0o600)
            # For writing, too: else it would be at its end whenever nobody else holds it.
            self._reader = self.writer = posix.open(fifo, _LISTEN)
        else:
            self._reader, self.writer = posix.pipe2(posix.O_NONBLOCK | posix.O_CLOEXEC)

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._reader

    def call(self) -> None:
        """Call; from a signal handler and from another thread, too."""
        _call(self.writer)

    def clear(self) -> bool:
        """Take the calls out; tell whether there was one."""
        called = False
        try:
            for _ in range(_MOST_READS):
                called = bool(posix.read(self._reader, _CALLS)) or called
        except BlockingIOError:
            return called
        return called

    def close(self) -> None:
        """Close it; the FIFO stays under its name."""
        posix.close(self._reader)
        if self.writer != self._reader:
            posix.close(self.writer)


def _call(descriptor: int) -> bool:
    try:
        posix.write(descriptor, b"\n")
    except BlockingIOError:
        return True  # the pipe is full of calls
    except OSError:
        return False
    return True

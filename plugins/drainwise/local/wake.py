"""How a client wakes the daemon: one byte in a FIFO, so that a job that is submitted starts at once.

It only saves time: the daemon looks by itself every few seconds, so a byte that is lost loses nothing.
"""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress

WAKE = "wake"

_CLIENT = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_DAEMON = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_HANDLES = 512  # a process may have 1024 files open where nothing else is said


def wake_daemon(directory: str) -> None:
    """Have the daemon of `directory` look now; without a daemon nothing happens."""
    try:
        descriptor = os.open(os.path.join(directory, WAKE), _CLIENT)
    except OSError:
        return
    try:
        os.write(descriptor, b"\n")
    except OSError:
        return  # full: it is about to look in any case
    finally:
        os.close(descriptor)


class Sleeper:
    """The daemon's sleep: ends with the time, with a client's word, or with the end of a process that is watched."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, WAKE)
        with suppress(FileExistsError):  # left by one that was killed
            os.mkfifo(self._path, 0o600)
        self._fifo = os.open(self._path, _DAEMON)
        self._poll = select.poll()
        self._poll.register(self._fifo, select.POLLIN)
        self._handles: dict[str, int] = {}

    def watch(self, name: str, pid: int) -> bool:
        """Wake when this process ends; False where that cannot be: the next round sees it."""
        self.forget(name)
        if len(self._handles) >= _MOST_HANDLES:
            return False
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):
            return False
        self._handles[name] = handle
        self._poll.register(handle, select.POLLIN)
        return True

    def forget(self, name: str) -> None:
        """Watch this one no more."""
        handle = self._handles.pop(name, None)
        if handle is not None:
            self._poll.unregister(handle)
            os.close(handle)

    def sleep(self, seconds: float) -> None:
        """Sleep, at most `seconds`."""
        ready = {descriptor for descriptor, _ in self._poll.poll(max(0.0, seconds) * 1000)}
        # A process ends once. Whoever cannot write that down at once must not wake for it without a pause.
        for name in [name for name, handle in self._handles.items() if handle in ready]:
            self.forget(name)
        try:
            os.read(self._fifo, 4096)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise

    def wake(self) -> None:
        """End the sleep; may be called by a signal handler and by another thread."""
        try:
            os.write(self._fifo, b"\n")
        except OSError:
            return

    def close(self) -> None:
        """Leave nothing behind."""
        for name in list(self._handles):
            self.forget(name)
        os.close(self._fifo)
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return

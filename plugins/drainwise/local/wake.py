"""The daemon's sleep, and the FIFO by which a client wakes it, so that a job that is submitted starts at once.

It only saves time: the daemon looks by itself every few seconds.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

from drainwise.common.wake import Wake, wake
from drainwise.processes.process import handle_of

WAKE = "wake"

_MOST_HANDLES = 512  # a process may have 1024 files open where nothing else is said


def wake_daemon(directory: str) -> None:
    """Have the daemon of `directory` look now; without a daemon nothing happens."""
    wake(os.path.join(directory, WAKE))


class Sleeper:
    """The daemon's sleep: it ends with the time, when a client calls, or with the end of a process that is watched."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, WAKE)
        self._fifo = Wake(self._path)
        self._poll = select.poll()
        self._poll.register(self._fifo, select.POLLIN)
        self._handles: dict[str, int] = {}

    def watch(self, name: str, pid: int) -> bool:
        """Wake when this process ends; False where that cannot be: the next round sees it."""
        self.forget(name)
        handle = handle_of(pid) if len(self._handles) < _MOST_HANDLES else None
        if handle is None:
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
        self._fifo.clear()

    def wake(self) -> None:
        """End the sleep; may be called by a signal handler and by another thread."""
        self._fifo.call()

    def close(self) -> None:
        """Leave nothing behind."""
        for name in list(self._handles):
            self.forget(name)
        self._fifo.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

"""Signals as events that a sleeping pilot wakes up for: children that ended, and requests to go."""

from __future__ import annotations

import signal
from types import FrameType

from drainwise.common.wake import Wake

_REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Use as a context. `fileno()` is readable when a signal came; `requests` counts those that ask the pilot to go.

    SIGHUP that is ignored already (nohup) stays so. Children start with the default actions all the same.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._wake = Wake()

    def __enter__(self) -> Signals:
        self._before = {number: signal.getsignal(number) for number in (*_REQUESTS, signal.SIGCHLD)}
        self._wakeup_before = signal.set_wakeup_fd(self._wake.writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        for number in _REQUESTS:
            if number != signal.SIGHUP or self._before[number] != signal.SIG_IGN:
                signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(self._wakeup_before)
        self._wake.close()

    def _asked(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.requests += 1

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._wake.fileno()

    def clear(self) -> None:
        """Make the descriptor wait for the next signal."""
        self._wake.clear()


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up is all that is wanted, which an ignored signal would not give."""

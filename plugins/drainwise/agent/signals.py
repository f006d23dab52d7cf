"""The agent's signals: they set a mark and end the sleep, and never interrupt an act.

HUP: read the site file again. TERM and INT: end after the current act; a second INT ends at once.
"""

from __future__ import annotations

import select
import signal
from types import FrameType

from drainwise.common.wake import Wake


class AgentSignals:
    """The marks, and the sleep that they end. `install` is for the main thread alone."""

    def __init__(self) -> None:
        self._wake = Wake()
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._stopping = self._reload = False

    def install(self) -> None:
        """Have them come here from now on."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    @property
    def stopping(self) -> bool:
        """Whether it is to end."""
        return self._stopping

    def stop(self) -> None:
        """Stop the agent as TERM does."""
        self._stopping = True
        self._wake.call()

    def reload(self) -> None:
        """Have the site file read again as HUP does."""
        self._reload = True
        self._wake.call()

    def take_reload(self) -> bool:
        """Return whether the site file is to be read again, and clear the mark."""
        marked, self._reload = self._reload, False
        return marked

    def sleep(self, seconds: float) -> bool:
        """Sleep at most `seconds`; return whether a signal ended it."""
        return bool(self._poll.poll(max(0.0, seconds) * 1000)) and self._wake.clear()

    def close(self) -> None:
        """Close the pipe and restore the signals' defaults."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        self._wake.close()

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload()
            return
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.stop()

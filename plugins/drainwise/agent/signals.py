"""The agent's signals: they set a mark and end the sleep, and never cut an act in two.

HUP: read the site file again. TERM and INT: end after the current act; a second INT ends at once.
"""

from __future__ import annotations

import os
import select
import signal
from types import FrameType


class Signals:
    """The marks, and the sleep that they end. `install` is for the main thread alone."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)
        self._stopping = self._reload = False

    def install(self) -> None:
        """Have them come here from now on."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heard)

    @property
    def stopping(self) -> bool:
        """Whether it is to end."""
        return self._stopping

    def stop(self) -> None:
        """As TERM does."""
        self._stopping = True
        self._wake()

    def reload(self) -> None:
        """As HUP does."""
        self._reload = True
        self._wake()

    def take_reload(self) -> bool:
        """Whether the site file is to be read again; the mark is gone then."""
        asked, self._reload = self._reload, False
        return asked

    def sleep(self, seconds: float) -> bool:
        """Sleep, at most `seconds`; whether a signal ended it."""
        if not self._poll.poll(max(0.0, seconds) * 1000):
            return False
        try:
            os.read(self._reader, 4096)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Leave nothing open; the signals do again what they do by themselves."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) == self._heard:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.close(self._reader)
        os.close(self._writer)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload()
            return
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.stop()

    def _wake(self) -> None:
        try:
            os.write(self._writer, b"\n")
        except BlockingIOError:
            return  # so many that it is awake in any case

"""Ctrl-C, as a flag that the demonstration looks at whenever it waits: never an exception in the middle of a change."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):  # noqa: N818 - the fact, not a fault
    """Somebody wants the demonstration to end; `number` is the signal."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class Late(Exception):  # noqa: N818
    """An awaited state did not happen in time."""


class Interrupts:
    """Takes the signals from when it is made; while things are put away a second Ctrl-C changes nothing."""

    def __init__(self) -> None:
        # A pipe, because the handler may come in the middle of anything, a lock's own code among it.
        self._heard, self._calls = os.pipe()
        self._number = 0
        for number in _SIGNALS:
            signal.signal(number, self._fall)

    def _fall(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if not self._number:
            self._number = number
            os.write(self._calls, b"!")

    def check(self) -> None:
        """Raise Interrupted when the demonstration is to end."""
        if self._number:
            raise Interrupted(self._number)

    def wait(self, seconds: float) -> None:
        """Wait; raise Interrupted as soon as the workload is to end."""
        select.select([self._heard], [], [], max(0.0, seconds))
        self.check()

    def wait_for(self, what: str, seconds: float, happened: Callable[[], bool], pause: float = 0.1) -> None:
        """Look until `happened`; raises Late, which names it, after so many seconds, and Interrupted."""
        ends = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > ends:
                raise Late(f"{what}: not within {seconds:.0f} s")
            self.wait(pause)
        self.check()

"""What a process that stays needs: its log's faults said once, a pause after failures, the service manager's notices.

Back-off is exponential: each failure doubles the pause before the next attempt. Times in seconds.
Notices to systemd (sd_notify) are datagrams to the socket that NOTIFY_SOCKET names. Without that variable nothing is
sent. A socket that does not answer costs the message and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, MutableMapping

from drainwise.common.printable import ascii_line

_LONGEST = 200
_MICRO = 1_000_000
_MOST_DOUBLINGS = 30
_HOUR = 3600.0


class Faults:
    """The faults of now, by place; `say` takes a line when one changes.

    an_hour: lines that one place gets in an hour, so that nobody fills a log by spoiling a file in ever new ways; the
    count ends with the place. clock: seconds that never go back.
    """

    def __init__(
        self, say: Callable[[str], None], an_hour: float = float("inf"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say, self._an_hour, self._clock = say, an_hour, clock
        self._now: dict[str, str] = {}
        self._lines: dict[str, tuple[float, int]] = {}

    def set(self, place: str, text: str, ended: str = "all right again") -> None:
        """Say what is wrong at `place` ("" and `ended`: nothing is) if it differs from what was said before."""
        if text == self._now.get(place, ""):
            return
        self._now[place] = text
        now = self._clock()
        since, lines = self._lines.get(place, (now, 0))
        if now - since >= _HOUR:
            since, lines = now, 0
        self._lines[place] = (since, lines + 1)
        if lines < self._an_hour:
            self.say(f"{place}: {text or ended}")

    def forget(self, place: str) -> None:
        """Forget a place that is no more: nothing about it is worth a line."""
        self._now.pop(place, None)
        self._lines.pop(place, None)


def delay(failures: int, first: float, longest: float) -> float:
    """Return the pause after `failures` failures in a row: `first`, doubled with each further one, up to `longest`."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), max(first, longest)) if failures > 0 else 0.0


class Backoff:
    """The back-off of one thing that is tried again and again, on a clock that may be turned back.

    failures: how many in a row; seconds: the current pause, 0 without a failure.
    """

    __slots__ = ("_first", "_longest", "_until", "failures", "seconds")

    def __init__(self, first: float = 1.0, longest: float = 60.0) -> None:
        self._first, self._longest = first, longest
        self.failures, self.seconds, self._until = 0, 0.0, 0.0

    def failed(self, now: float) -> None:
        """Count a failure: the pause begins anew, and is longer."""
        self.failures += 1
        self.seconds = delay(self.failures, self._first, self._longest)
        self._until = now + self.seconds

    def succeeded(self) -> None:
        """End the pause."""
        self.failures, self.seconds = 0, 0.0

    def is_over(self, now: float) -> bool:
        """Tell whether the next try is due."""
        # An end that lies further ahead than any pause was set before the clock was turned back.
        return not self.seconds or not now < self._until <= now + max(self._first, self._longest)


class Notifier:
    """Sends to the service manager whose variables stand in `environment`.

    They are taken out of it, so that no program which the agent runs sends in its place. watchdog: seconds within which
    a sign of life is expected, None where none is.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        import socket  # noqa: PLC0415 - a pilot that logs faults needs none

        name = environment.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name if name.startswith("/") else ""
        self.watchdog = _watchdog(environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", ""))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor of the socket, which a child that becomes another user must not keep."""
        return self._socket.fileno()

    def ready(self, status: str) -> None:
        """Notify systemd that the agent runs (again)."""
        self._send("READY=1", f"STATUS={ascii_line(status, _LONGEST)}")

    def status(self, status: str) -> None:
        """Notify systemd of what the agent does now, in a line; also a sign of life."""
        self._send(f"STATUS={ascii_line(status, _LONGEST)}", "WATCHDOG=1")

    def alive(self) -> None:
        """Send a sign of life."""
        if self.watchdog is not None:
            self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """Notify systemd that the agent reads its configuration again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={int(time.monotonic() * _MICRO)}")

    def stopping(self) -> None:
        """Notify systemd that the agent ends."""
        self._send("STOPPING=1", "STATUS=ends after the current act")

    def close(self) -> None:
        """Close the socket and send no more."""
        self._address = ""
        self._socket.close()

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            self._socket.sendto("\n".join(lines).encode("ascii"), self._address)
        except OSError:
            return


def _watchdog(microseconds: str, pid: str) -> float | None:
    """Return the seconds; None when there is no watchdog, or it is meant for another process."""
    if not (microseconds.isascii() and microseconds.isdigit()) or pid not in {"", str(os.getpid())}:
        return None
    return int(microseconds) / _MICRO or None

"""Notify systemd of an agent's state (sd_notify): datagrams to the socket that NOTIFY_SOCKET names.

Without that variable nothing is sent. A socket that does not answer costs the message and nothing else.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

from drainwise.common.printable import ascii_line

_LONGEST = 200
_MICRO = 1_000_000


class Notifier:
    """Sends to the service manager whose variables stand in `environment`.

    They are taken out of it, so that no program which the agent runs sends in its place. watchdog: seconds within which
    a sign of life is expected, None where none is.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
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

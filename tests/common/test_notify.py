"""What systemd is told, over a real datagram socket."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.common.service import Notifier


@pytest.fixture(params=["file", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A socket as systemd gives one, and what NOTIFY_SOCKET says of it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        name = str(tmp_path / "notify") if request.param == "file" else f"@drainwise-test-{os.getpid()}"
        made.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        made.settimeout(5)
        yield made, name


def test_each_message_is_one_datagram(listener: tuple[socket.socket, str]) -> None:
    heard, name = listener
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    notifier = Notifier(environment)
    assert environment == {"PATH": "/bin"}, "no program that it runs tells in its place"
    assert notifier.watchdog == 3.0
    notifier.ready("begins")
    notifier.status("ok: 2 pilots\ngive\x1b[0m back é")
    notifier.alive()
    before = time.monotonic()
    notifier.reloading()
    after = time.monotonic()
    notifier.stopping()
    got = [heard.recv(4096).decode("ascii") for _ in range(5)]
    assert got[:3] == ["READY=1\nSTATUS=begins", "STATUS=ok: 2 pilots give?[0m back ?\nWATCHDOG=1", "WATCHDOG=1"]
    assert got[3].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert before <= (int(got[3].rpartition("=")[2]) + 1) / 1e6 and int(got[3].rpartition("=")[2]) / 1e6 <= after
    assert got[4].startswith("STOPPING=1\n")
    notifier.close()
    notifier.alive()


@pytest.mark.parametrize("name", ["", "/nonexistent/socket", "relative", "@nobody-listens", "/" + "x" * 300])
def test_without_a_socket_nothing_happens(name: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name} if name else {})
    notifier.ready("begins")
    notifier.stopping()
    notifier.close()


def test_a_socket_that_nobody_empties_holds_nothing_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "notify"))
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        for _ in range(2000):
            notifier.status("still there")
        notifier.close()


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [("2000000", "", 2.0), ("2000000", "1", None), ("", "", None), ("0", "", None), ("-5", "", None), ("x", "", None)],
)
def test_the_watchdog_is_the_agents_own(microseconds: str, pid: str, seconds: float | None) -> None:
    notifier = Notifier({"WATCHDOG_USEC": microseconds, "WATCHDOG_PID": pid})
    assert notifier.watchdog == seconds
    notifier.close()

"""What systemd hears of a node's agent while it serves."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from drainwise.common.service import Faults, Notifier
from drainwise.common.wake import Wake
from drainwise.node.settings import NodeSettings
from drainwise.slurm.node_agent import agent as node_agent
from drainwise.slurm.node_agent.agent import serve
from drainwise.slurm.node_agent.round import NodeAgent


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(5)
        yield made


class IdleAgent:
    """One whose node has no jobs."""

    def greet(self, now: int) -> bool:
        return False

    def round(self, now: int) -> bool:
        return False


class Pauses:
    """In place of the poll between two rounds: how many milliseconds it may last; nothing ever comes."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def register(self, *_: object) -> None:
        """Nothing comes of it."""

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        self.asked.append(milliseconds)
        return []


def test_an_agent_with_nothing_to_do_gives_signs_of_life(
    tmp_path: Path, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least twice in the watchdog's limit, however long its period is."""
    agent, settings = cast("NodeAgent", IdleAgent()), NodeSettings({"agent_period_secs": "3600"})
    wake = Wake(str(tmp_path / "fifo"))
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"})
    pauses, turns = Pauses(), iter(range(8))
    monkeypatch.setattr(node_agent, "select", SimpleNamespace(poll=lambda: pauses, POLLIN=select.POLLIN))
    serve(agent, settings, Faults(print), wake, notifier, lambda: next(turns, None) is not None)
    wake.close()
    notifier.status("done")
    signs = 0
    while not (said := systemd.recv(4096)).startswith(b"STATUS"):
        assert said == b"WATCHDOG=1"
        signs += 1
    notifier.close()
    assert signs == len(pauses.asked) == 8 and max(pauses.asked) == 100, "each half of the limit, a sign before each"

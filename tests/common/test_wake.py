"""A call is received where somebody listens, and never waited for where nobody does."""

from __future__ import annotations

import os
import posix
import select
import socket
from pathlib import Path

import pytest

from drainwise.common.wake import Wake, wake

FIFO = "wake"


def test_an_agent_that_listens_is_woken(tmp_path: Path) -> None:
    """Each call is a byte; the file is for root alone."""
    fifo = Wake(str(tmp_path / FIFO))
    try:
        assert wake(str(tmp_path / FIFO))
        assert wake(str(tmp_path / FIFO))
        assert os.read(fifo.fileno(), 4096) == b"\n\n"
        assert not fifo.clear()
        assert os.stat(tmp_path / FIFO).st_mode & 0o777 == 0o600
    finally:
        fifo.close()
    assert not wake(str(tmp_path / FIFO)), "nobody listens any more"


def test_an_agent_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """A full FIFO says that it was called often enough."""
    fifo = Wake(str(tmp_path / FIFO))
    try:
        os.write(fifo.writer, b"\n" * 65536)
        assert wake(str(tmp_path / FIFO))
    finally:
        fifo.close()


def test_who_calls_without_end_does_not_hold_up_the_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE: a job of the same user can write to the FIFO as fast as it is read."""
    fifo, read = Wake(str(tmp_path / FIFO)), posix.read
    reads = 0

    def full_again(descriptor: int, most: int) -> bytes:
        nonlocal reads
        reads += 1
        assert reads < 1000
        os.write(fifo.writer, b"\n" * most)
        return read(descriptor, most)

    monkeypatch.setattr(posix, "read", full_again)
    try:
        assert fifo.clear()
    finally:
        fifo.close()


@pytest.mark.parametrize("kind", ["nothing", "file", "directory", "link", "socket", "no runtime directory"])
def test_what_is_no_agent_is_left_alone(tmp_path: Path, kind: str) -> None:
    """HOSTILE 1, 6, 8: nothing is written anywhere else."""
    place, victim = tmp_path / FIFO, tmp_path / "victim"
    victim.write_text("precious")
    if kind == "file":
        place.write_text("")
    elif kind == "directory":
        place.mkdir()
    elif kind == "link":
        place.symlink_to(victim)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    assert not wake(str((tmp_path / "none" if kind == "no runtime directory" else tmp_path) / FIFO))
    assert victim.read_text() == "precious"
    if kind == "file":
        assert place.read_text() == ""


def test_an_agent_replaces_what_stands_in_the_way(tmp_path: Path) -> None:
    """A second start finds the FIFO of the first, or something else under its name."""
    (tmp_path / FIFO).write_text("")
    for _ in range(2):
        fifo = Wake(str(tmp_path / FIFO))
        assert wake(str(tmp_path / FIFO))
        fifo.close()


@pytest.mark.parametrize("name", ["", FIFO])
def test_a_call_is_there_until_it_is_taken(tmp_path: Path, name: str) -> None:
    """However many: a full pipe holds nobody up."""
    awake = Wake(str(tmp_path / name) if name else "")
    assert not select.select([awake], [], [], 0)[0]
    for _ in range(70_000):
        awake.call()
    assert select.select([awake], [], [], 0)[0]
    assert awake.clear() and not awake.clear()
    awake.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(awake.fileno())

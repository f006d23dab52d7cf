"""Waking the agent: heard when it listens, never waited for when it does not."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from drainwise.slurm.wake import FIFO, open_wake, wake


def test_an_agent_that_listens_is_woken(tmp_path: Path) -> None:
    """Each call is a byte; the file is for root alone."""
    fifo = open_wake(str(tmp_path))
    try:
        assert wake(str(tmp_path))
        assert wake(str(tmp_path))
        assert os.read(fifo, 4096) == b"\n\n"
        with pytest.raises(BlockingIOError):
            os.read(fifo, 4096)
        assert os.stat(tmp_path / FIFO).st_mode & 0o777 == 0o600
    finally:
        os.close(fifo)
    assert not wake(str(tmp_path)), "nobody listens any more"


def test_an_agent_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """A full FIFO says that it was called often enough."""
    fifo = open_wake(str(tmp_path))
    try:
        os.write(fifo, b"\n" * 65536)
        begun = time.monotonic()
        assert wake(str(tmp_path))
        assert time.monotonic() - begun < 1
    finally:
        os.close(fifo)


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
    assert not wake(str(tmp_path / "none" if kind == "no runtime directory" else tmp_path))
    assert victim.read_text() == "precious"
    if kind == "file":
        assert place.read_text() == ""


def test_an_agent_replaces_what_stands_in_the_way(tmp_path: Path) -> None:
    """A second start finds the FIFO of the first, or something else under its name."""
    (tmp_path / FIFO).write_text("")
    for _ in range(2):
        fifo = open_wake(str(tmp_path))
        assert wake(str(tmp_path))
        os.close(fifo)

"""The kill switch: anything at its path stops the acts, and so does a doubt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drainwise.agent.loop import is_thrown


def test_no_file_no_stop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not is_thrown(str(tmp_path / "switch"))
    assert not is_thrown(str(tmp_path / "file" / "switch"))
    assert not is_thrown(str(tmp_path / "nowhere" / "switch"))


@pytest.mark.parametrize("kind", ["file", "directory", "fifo", "dangling link"])
def test_whatever_is_there_stops(tmp_path: Path, kind: str) -> None:
    """HOSTILE 1, 5, 8: it is never opened."""
    switch = tmp_path / "switch"
    make: dict[str, Callable[[], None]] = {
        "file": switch.touch,
        "directory": switch.mkdir,
        "fifo": lambda: os.mkfifo(switch),
        "dangling link": lambda: switch.symlink_to("/nonexistent"),
    }
    make[kind]()
    assert is_thrown(str(switch))


def test_what_cannot_be_looked_at_counts_as_there(tmp_path: Path) -> None:
    assert is_thrown(str(tmp_path / ("x" * 300)))
    (tmp_path / "loop").symlink_to("loop")
    assert is_thrown(str(tmp_path / "loop" / "switch"))

"""The event log through HTCondor's own reader: what is half there, broken, or no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise_launch.htcondor.schedd import EventLog

SUBMIT = "000 (007.000.000) 2026-11-21 23:00:00 Job submitted from host: <127.0.0.1:1>\n    T1\n...\n"
EXECUTE = "001 (007.000.000) 2026-11-21 23:00:01 Job executing on host: <127.0.0.1:1>\n...\n"


def kinds(log: EventLog) -> list[tuple[str, str]]:
    return [(event.number, event.kind) for event in log.news()]


def test_events_come_as_they_are_written(tmp_path: Path) -> None:
    """17: half an event is waited for."""
    path = tmp_path / "log"
    log = EventLog(str(path))
    assert kinds(log) == []
    with path.open("a") as file:
        file.write(SUBMIT + EXECUTE[:30])
        file.flush()
        assert kinds(log) == [("7.0", "SUBMIT")]
        file.write(EXECUTE[30:])
    assert kinds(log) == [("7.0", "EXECUTE")]
    log.close()


@pytest.mark.parametrize("broken", ["what\n...\n", "\0" * 20 + "\n...\n"])
def test_what_is_broken_is_no_fault(tmp_path: Path, broken: str) -> None:
    """24, 27: the disk was full, or somebody wrote into it."""
    path = tmp_path / "log"
    path.write_text(SUBMIT + broken)
    log = EventLog(str(path))
    assert kinds(log) == [("7.0", "SUBMIT")]
    with path.open("a") as file:
        file.write(EXECUTE)
    assert set(kinds(log)) <= {("7.0", "EXECUTE")}
    log.close()


def test_one_that_is_cut_or_taken_away_is_no_fault(tmp_path: Path) -> None:
    """16, 25."""
    path = tmp_path / "log"
    path.write_text(SUBMIT + EXECUTE)
    log = EventLog(str(path))
    assert len(kinds(log)) == 2
    os.truncate(path, 0)
    assert kinds(log) == []
    path.unlink()
    assert kinds(log) == []
    log.close()


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link", "socket"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """1, 5, 6, 8."""
    path = tmp_path / "log"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mknod(path, 0o140600)
    with pytest.raises(PoolUnreachable, match=r"the event log .*/log cannot be used"):
        EventLog(str(path))
    assert not (tmp_path / "elsewhere").exists()

"""One process at a time, whatever way one ends, and also where the file is removed under its holder."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drainwise.common.process_lock import ProcessLock, holder_words, last_stamp
from local_batch import ENVIRONMENT

HOLD = (
    "import signal, sys; from drainwise.common.process_lock import ProcessLock\n"
    "assert ProcessLock(sys.argv[1], 'birth 7').take(); print(flush=True); signal.pause()"
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def test_a_second_process_is_kept_out_until_the_first_has_died(path: str) -> None:
    """HOSTILE 51: what a kill -9 leaves behind hinders nobody."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], env=ENVIRONMENT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline()
        lock = ProcessLock(path)
        assert not lock.take() and not lock.is_held()
        assert holder_words(path) == [str(process.pid), "birth", "7"]
        assert last_stamp(path) is not None
        began = time.monotonic()
        assert not lock.take(patience=0.2)
        assert time.monotonic() - began >= 0.2
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert lock.take() and lock.is_held() and lock.take()
        assert holder_words(path) == [str(os.getpid())]
    finally:
        process.kill()
        process.communicate()
    lock.release()
    lock.release()
    assert not lock.is_held() and holder_words(path) == [] and last_stamp(path) is None
    assert holder_words(path + "x") is None and last_stamp(path + "x") is None


def test_the_stamp_is_the_time_of_the_file(path: str) -> None:
    lock = ProcessLock(path)
    lock.stamp(5.0)
    assert lock.take()
    lock.stamp(1795249000.0)
    assert last_stamp(path) == 1795249000.0
    lock.release()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lock_whose_file_was_taken_away_is_held_no_more(path: str, how: str) -> None:
    """Another process could make the file anew and work beside this one."""
    lock = ProcessLock(path)
    assert lock.take()
    os.unlink(path)
    if how == "replaced":
        Path(path).write_text("")
    assert not lock.is_held()
    lock.release()


def test_a_file_that_is_removed_while_it_is_locked_is_not_taken_for_the_lock(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []
    flock = fcntl.flock

    def removing(descriptor: int, kind: int) -> None:
        flock(descriptor, kind)
        locked.append(descriptor)
        if len(locked) == 1:
            os.unlink(path)

    monkeypatch.setattr(fcntl, "flock", removing)
    lock = ProcessLock(path)
    assert lock.take() and lock.is_held() and len(locked) == 2
    lock.release()


def test_nobody_else_can_lock_it(path: str) -> None:
    """HOSTILE 47: the kernel lets whoever can read a file lock it."""
    Path(path).touch(0o644)
    lock = ProcessLock(path)
    assert lock.take()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    lock.release()


def test_a_link_in_its_place_is_refused(path: str, tmp_path: Path) -> None:
    """HOSTILE 1: the file that it leads to is left alone."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, path)
    with pytest.raises(OSError, match="symbolic links"):
        ProcessLock(path).take()
    assert victim.read_text() == "precious" and holder_words(path) is None

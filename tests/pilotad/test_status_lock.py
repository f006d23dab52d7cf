"""The lock in both kinds."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drainwise.common.local_file import is_at
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad import jobstatus, safe_open
from drainwise.pilotad.jobstatus import lock
from drainwise.pilotad.safe_open import Patience
from made_clock import MadeClock


@contextmanager
def held_by_another_process(path: Path) -> Iterator[None]:
    """An fcntl lock of somebody else's."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
            os.write(told, b"x")
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.read(ready, 1)
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(told)


@pytest.fixture
def seal(tmp_path: Path) -> Path:
    """A file to lock."""
    path = tmp_path / "used_CPU"
    path.write_bytes(b"6\n")
    return path


def test_readers_share_and_a_writer_does_not(seal: Path) -> None:
    """Two readers at once; a writer only alone."""
    with open(seal, "r+b") as one, open(seal, "r+b") as two:
        lock(one.fileno(), exclusive=False, timeout=0)
        lock(two.fileno(), exclusive=False, timeout=0)
        with open(seal, "r+b") as three, pytest.raises(RefusedFile, match=r"^locked$"):
            lock(three.fileno(), exclusive=True, timeout=0.003)


def test_who_gets_only_one_kind_keeps_none(seal: Path) -> None:
    """Two honest ones that take them in different order must not stop each other for good."""
    with held_by_another_process(seal), open(seal, "r+b") as ours, open(seal, "r+b") as other:
        with pytest.raises(RefusedFile, match=r"^locked$"):
            lock(ours.fileno(), exclusive=False, timeout=0.003)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def waited(seal: Path, clock: MadeClock, timeout: float, patience: Patience | None) -> float:
    """Seconds of the clock until a lock that somebody else holds is given up."""
    begun = clock.now
    with held_by_another_process(seal), open(seal, "r+b") as ours, pytest.raises(RefusedFile, match=r"^locked$"):
        lock(ours.fileno(), exclusive=False, timeout=timeout, patience=patience)
    return clock.now - begun


def put_in_place(clock: MadeClock, monkeypatch: pytest.MonkeyPatch) -> MadeClock:
    """Have waiting for locks go by this clock."""
    for module in (jobstatus, safe_open):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_waiting_is_bounded_by_timeout_and_patience(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is less."""
    clock = put_in_place(MadeClock(), monkeypatch)
    for timeout, patience in ((0.02, None), (0.02, Patience(10)), (10, Patience(0.02))):
        assert 0.01 < waited(seal, clock, timeout, patience) <= 0.0201


def test_the_timeout_is_of_real_seconds(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a pause really lasts, and however much patience there is."""
    clock = put_in_place(MadeClock(stretch=20), monkeypatch)
    assert 0.05 < waited(seal, clock, 0.05, Patience(10)) < 0.08


def test_a_file_system_without_locks_is_told(seal: Path) -> None:
    """An errno's name, not a wait."""
    fd = os.open(seal.parent, os.O_RDONLY | os.O_PATH)
    with pytest.raises(RefusedFile, match=r"^EBADF$"):
        lock(fd, exclusive=False, timeout=10)
    os.close(fd)


def test_is_at(seal: Path) -> None:
    """The name leads to the open file until it is replaced or removed."""
    place = os.open(seal.parent, os.O_RDONLY | os.O_DIRECTORY)
    with open(seal, "rb") as stream:
        assert is_at(stream.fileno(), "used_CPU", place)
        os.rename(seal, seal.parent / "old")
        assert not is_at(stream.fileno(), "used_CPU", place)
        seal.write_bytes(b"7\n")
        assert not is_at(stream.fileno(), "used_CPU", place)
        assert is_at(stream.fileno(), "old", place)
    os.close(place)

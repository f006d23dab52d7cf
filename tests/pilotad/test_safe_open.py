"""Reading a sound file in a user's directory; what attackers do is in tests/hostile."""

from __future__ import annotations

import errno
import importlib
import itertools
import os
import posix
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import RefusedFile
from drainwise.pilotad import safe_open
from drainwise.pilotad.safe_open import Patience, not_written, open_dir, read_file, reason_of

UID = os.geteuid()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an empty directory of ours."""
    fd = open_dir(str(tmp_path))
    yield fd
    os.close(fd)


def test_content_and_mtime_come_together(place: int, tmp_path: Path) -> None:
    """The heartbeat is of the very file that was read."""
    file = tmp_path / "ad"
    file.write_bytes(b"A = 1\n")
    os.utime(file, ns=(1, 1_795_249_000_999_999_999))
    assert read_file(place, "ad", UID, 64) == (b"A = 1\n", 1_795_249_000)
    assert read_file(place, "ad", None, 64)[0] == b"A = 1\n"


def test_a_file_of_the_limit_is_read_and_one_byte_more_is_not(place: int, tmp_path: Path) -> None:
    """20: one byte over the limit."""
    (tmp_path / "ad").write_bytes(b"x" * 64)
    assert len(read_file(place, "ad", UID, 64)[0]) == 64
    with pytest.raises(RefusedFile, match=r"^too large$"):
        read_file(place, "ad", UID, 63)


def test_no_file_is_absent(place: int) -> None:
    """Callers tell it apart from what was refused."""
    with pytest.raises(RefusedFile, match=r"^absent$"):
        read_file(place, "ad", UID, 64)


def test_directories_are_walked_one_by_one(place: int, tmp_path: Path) -> None:
    """Each component below the one before, owned by the user."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "ad").write_bytes(b"x")
    a = open_dir("a", place, UID)
    b = open_dir("b", a, UID)
    try:
        assert read_file(b, "ad", UID, 64)[0] == b"x"
    finally:
        os.close(a)
        os.close(b)


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda path: path.write_bytes(b""), "not a directory"),
        (lambda path: path.symlink_to("/"), "not a directory"),
        (lambda path: None, "absent"),
        (os.mkfifo, "not a directory"),
    ],
)
def test_what_is_not_a_directory_is_refused(place: int, tmp_path: Path, make: object, reason: str) -> None:
    """A file, a symlink to a directory, nothing, a FIFO."""
    assert callable(make)
    make(tmp_path / "d")
    with pytest.raises(RefusedFile, match=f"^{reason}$"):
        open_dir("d", place)


def test_a_directory_of_somebody_else_is_refused_and_no_descriptor_is_lost(place: int, tmp_path: Path) -> None:
    """The owner is asked of the descriptor."""
    (tmp_path / "d").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(RefusedFile, match=r"^not the job's user$"):
            open_dir("d", place, UID + 1)
    assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests


def test_another_device_within_the_same_mount_is_no_other_file_system(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On overlayfs a file may show another device than its directory; then the mount decides."""
    (tmp_path / "ad").write_bytes(b"x")
    real = os.fstat

    def other_device(fd: int) -> os.stat_result:
        found = list(real(fd)[:10])
        if fd == place:
            found[2] += 1
        times = real(fd)
        return os.stat_result(
            found,
            {"st_mtime_ns": times.st_mtime_ns, "st_atime_ns": times.st_atime_ns, "st_ctime_ns": times.st_ctime_ns},
        )

    monkeypatch.setattr("posix.fstat", other_device)
    assert read_file(place, "ad", UID, 64)[0] == b"x"
    monkeypatch.setattr(safe_open, "same_mount", lambda fd, other: False)
    with pytest.raises(RefusedFile, match=r"^other file system$"):
        read_file(place, "ad", UID, 64)


def at_read(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Let something happen right before the given read of a file (0: the first), once."""
    real, count = os.pread, itertools.count()

    def pread(fd: int, length: int, offset: int) -> bytes:
        if next(count) == number:
            act()
        return real(fd, length, offset)

    monkeypatch.setattr("posix.pread", pread)


@pytest.mark.parametrize("content", [b"B = 2\n", b"B = 2222222\n", b"B\n"])
@pytest.mark.parametrize("keeps_mtime", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_a_file_written_during_the_read_is_read_again(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, keeps_mtime: bool, number: int
) -> None:
    """17: between the look and the read or between the reads; longer, shorter, as long; even with the old mtime."""
    file = tmp_path / "ad"
    file.write_bytes(b"A = 1\n")
    os.utime(file, (1_795_000_000, 1_795_000_000))

    def write() -> None:
        file.write_bytes(content)
        if keeps_mtime:
            os.utime(file, (1_795_000_000, 1_795_000_000))

    at_read(monkeypatch, number, write)
    data, mtime = read_file(place, "ad", UID, 64)
    assert data == content
    assert (mtime == 1_795_000_000) == keeps_mtime


def test_a_file_written_at_every_read_is_torn(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """17: three tries, then it is refused; without patience there is one."""
    file, real, reads = tmp_path / "ad", os.pread, []

    def pread(fd: int, length: int, offset: int) -> bytes:
        reads.append(length)
        file.write_bytes(b"%d" % (1000 + len(reads)))
        return real(fd, length, offset)

    file.write_bytes(b"1000")
    monkeypatch.setattr("posix.pread", pread)
    with pytest.raises(RefusedFile, match=r"^torn$"):
        read_file(place, "ad", UID, 64)
    assert len(reads) == 6
    with pytest.raises(RefusedFile, match=r"^torn$"):
        read_file(place, "ad", UID, 64, Patience(0))
    assert len(reads) == 8


def test_reasons_are_short_words() -> None:
    """Unknown numbers get the errno's name, never a path."""
    assert reason_of(OSError(5, "Input/output error", "/secret/path")) == "EIO"
    assert reason_of(OSError(99999, "odd")) == "unknown error"
    assert reason_of(OSError()) == "unknown error"


@pytest.mark.parametrize("call", ["fstat", "pread"])
def test_a_file_server_that_has_lost_a_file_costs_its_report(
    place: int, tmp_path: Path, mocker: MockerFixture, call: str
) -> None:
    """It fails after the open."""
    (tmp_path / "ad").write_bytes(b"x")
    (tmp_path / "a").mkdir()
    for error, reason in ((errno.ESTALE, "absent"), (errno.EIO, "EIO"), (0, "unknown error")):
        mocker.patch.object(posix, call, side_effect=OSError(error, ""))
        with pytest.raises(RefusedFile, match=f"^{reason}$"):
            read_file(place, "ad", UID, 64)
        if call == "fstat":
            with pytest.raises(RefusedFile, match=f"^{reason}$"):
                open_dir("a", place, UID)


OPENED = {
    "drainwise.common.local_file": {"OPEN": 0, "_CREATE": posix.O_NONBLOCK},
    "drainwise.node.glidein_places": {"_DIRECTORY": 0},
    "drainwise.node.payloads.process_table": {"_READ": posix.O_NOFOLLOW | posix.O_NONBLOCK},  # of the kernel's alone
    "drainwise.pilotad.jobstatus": {"_WRITE_FLAGS": 0},
    "drainwise.pilotad.safe_open": {"_DIRECTORY_FLAGS": 0},
    "drainwise.slurm.node_agent.user_task": {"_PLACE": posix.O_NOFOLLOW},  # as its user
}
"""The flags by which something is opened where users can put anything, and those that it can do without."""


@pytest.mark.parametrize(("module", "names"), OPENED.items(), ids=[name.rpartition(".")[2] for name in OPENED])
def test_nothing_of_a_users_is_opened_through_a_link_waited_for_or_left_to_a_child(
    module: str, names: dict[str, int]
) -> None:
    """HOSTILE 1 to 5; a directory that is only a place in the tree is never waited for."""
    for name, without in names.items():
        flags = getattr(importlib.import_module(module), name)
        needed = posix.O_NOFOLLOW | posix.O_CLOEXEC | (0 if flags & posix.O_PATH else posix.O_NONBLOCK)
        assert flags & needed == needed & ~without, f"{name}: {flags:o}"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("hard link", r"^ad: not written \(hard link\)$"),
        (
            OSError(errno.ENOSPC, ""),
            r"^ad: not written \(No space left on device\); free space in the job's directory$",
        ),
        (OSError(errno.EIO, ""), r"^ad: not written \(Input/output error\); check its directory$"),
        (OSError("odd"), r"^ad: not written \(Success\); check its directory$"),
    ],
)
def test_what_was_not_written_says_what_to_do(error: OSError | str, words: str) -> None:
    assert re.search(words, str(not_written("ad", error)))

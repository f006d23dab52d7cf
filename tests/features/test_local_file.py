"""Reading a file that may be anything: small regular files only, no leak, no wait."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.common.local_file import (
    create_file,
    read_json,
    read_small,
    replace_file,
    shown,
    small_text,
    split_path,
)
from drainwise.facts.errors import FeatureError
from real_daemons.waiting import wait_for

if TYPE_CHECKING:
    from tests.features.conftest import Attack

LIMIT = 64


def refused(path: Path) -> str:
    with pytest.raises(FeatureError) as error:
        read_small(str(path), LIMIT)
    message = str(error.value)
    assert message.isprintable()
    assert len(message) <= 200
    return message


def test_a_small_file_is_read_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"8\n")
    found = read_small(str(tmp_path / "key"), LIMIT)
    assert found is not None
    assert found[0] == b"8\n"
    assert stat.S_ISREG(found[1].st_mode)


def test_an_absent_file_is_none(tmp_path: Path) -> None:
    assert read_small(str(tmp_path / "key"), LIMIT) is None
    (tmp_path / "file").write_text("x")
    assert read_small(str(tmp_path / "file/key"), LIMIT) is None


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    """HOSTILE 1, 9: also not a link of /proc, which leads where no path does."""
    (tmp_path / "secret").write_text("root only")
    (tmp_path / "key").symlink_to(tmp_path / "secret")
    assert "symbolic link" in refused(tmp_path / "key")
    assert "symbolic link" in refused(Path("/proc/self/exe"))


def test_other_kinds_of_files_are_refused_at_once(tmp_path: Path) -> None:
    """HOSTILE 5, 6, 8: nobody writes to the FIFO, nobody listens on the socket."""
    os.mkfifo(tmp_path / "fifo")
    assert "FIFO" in refused(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    assert "directory" in refused(tmp_path / "directory")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert "socket" in refused(tmp_path / "socket")


def test_a_device_is_refused_without_opening_it() -> None:
    """HOSTILE 7: to open some devices is to make them act."""
    assert "device" in refused(Path("/dev/zero"))
    assert "device" in refused(Path("/dev/tty"))


def test_mode_000_is_refused_for_a_user(sandbox: Path, attack: Attack) -> None:
    """HOSTILE 10."""
    (sandbox / "key").write_text("8\n")
    (sandbox / "key").chmod(0)
    assert "Permission denied" in attack.run_as(attack.user, lambda: refused(sandbox / "key"))


def test_the_limit_is_exact_and_a_sparse_terabyte_costs_nothing(tmp_path: Path) -> None:
    """HOSTILE 19, 20."""
    (tmp_path / "fits").write_bytes(b"1" * LIMIT)
    found = read_small(str(tmp_path / "fits"), LIMIT)
    assert found is not None
    assert len(found[0]) == LIMIT
    (tmp_path / "over").write_bytes(b"1" * (LIMIT + 1))
    assert "longer than 64 bytes" in refused(tmp_path / "over")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**40)
    assert "longer than 64 bytes" in refused(tmp_path / "sparse")


def test_a_file_that_grows_while_it_is_read_ends_at_the_limit(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 25."""
    path = tmp_path / "growing"
    path.write_bytes(b"")

    def grow(_: int) -> None:
        with open(path, "ab", buffering=0) as file:
            file.write(b"1" * 16)

    def is_too_long() -> bool:
        try:
            found = read_small(str(path), LIMIT)
        except FeatureError as error:
            assert "longer than" in str(error)
            return True
        assert found is None or len(found[0]) <= LIMIT
        return False

    assert not is_too_long()
    with attack.looping(grow):
        wait_for(is_too_long, what="the file has grown")


def test_a_link_swapped_in_a_loop_never_leaks_what_it_points_to(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 2: look, then open, leaks thousands of times against this; not following never does."""
    secret, path = tmp_path / "secret", tmp_path / "key"
    secret.write_text("SECRET")
    path.write_text("8\n")

    def swap(count: int) -> None:
        other = tmp_path / f"swap{count % 2}"
        if count % 2:
            os.symlink(secret, other)
        else:
            other.write_text("8\n")
        os.rename(other, path)

    outcomes: set[bytes] = set()
    with attack.looping(swap):
        reads = 0
        while len(outcomes) < 2 or reads < 5000:
            reads += 1
            try:
                found = read_small(str(path), LIMIT)
                outcomes.add(b"" if found is None else found[0])
            except FeatureError:
                outcomes.add(b"refused")
    assert b"SECRET" not in outcomes
    assert outcomes <= {b"8\n", b"refused", b""}


def test_a_fifo_swapped_in_a_loop_never_makes_the_reader_wait(tmp_path: Path, attack: Attack) -> None:
    """HOSTILE 2, 5: a FIFO that comes between the look and the opening."""
    path = tmp_path / "key"
    path.write_text("8\n")

    def swap(count: int) -> None:
        other = tmp_path / f"swap{count % 2}"
        if count % 2:
            os.mkfifo(other)
        else:
            other.write_text("8\n")
        os.rename(other, path)

    def read() -> int:
        refusals, reads = 0, 0
        while refusals < 20 or reads - refusals < 20 or reads < 2000:
            reads += 1
            try:
                read_small(str(path), LIMIT)
            except FeatureError:
                refusals += 1
        return refusals

    with attack.looping(swap):
        assert attack.run_as(None, read), "nobody ever writes to that FIFO: who waits for it does not come back"


def test_a_message_shows_names_in_printable_ascii_only() -> None:
    """HOSTILE 15, 41."""
    name = shown("/some/where/key\n\x1b[31m\udcff" + "x" * 300)
    assert name.isprintable()
    assert name.isascii()
    assert name.startswith("key\\n\\x1b")
    assert len(name) <= 60


@pytest.mark.parametrize(
    ("path", "parts"),
    [("/a/b", ("/a", "b")), ("/b", ("/", "b")), ("b", (".", "b")), ("a/b", ("a", "b"))],
)
def test_a_path_is_split_at_its_last_slash(path: str, parts: tuple[str, str]) -> None:
    assert split_path(path) == parts


def test_a_file_is_created_readable_by_all_or_not_at_all(tmp_path: Path, attack: Attack) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)

    def create() -> None:
        os.umask(0o777)
        create_file("key", b"8\n", directory, durable=True)

    attack.run_as(None, create)
    assert (tmp_path / "key").read_bytes() == b"8\n"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o644
    with pytest.raises(FileExistsError):
        create_file("key", b"9\n", directory)
    assert (tmp_path / "key").read_bytes() == b"8\n"
    os.close(directory)


def test_replacing_leaves_no_temporary_file_and_no_descriptor(tmp_path: Path, fds: Callable[[], int]) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    before = fds()
    replace_file("key", b"8\n", directory)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("the user's")
    with pytest.raises(OSError, match="not empty"):
        replace_file("full", b"8\n", directory)
    assert fds() == before
    assert sorted(os.listdir(tmp_path)) == ["full", "key"]
    os.close(directory)


def test_a_file_is_replaced_in_a_directory_given_by_its_path(tmp_path: Path, fds: Callable[[], int]) -> None:
    before = fds()
    replace_file("key", b"8\n", str(tmp_path))
    assert small_text(str(tmp_path / "key"), LIMIT) == "8"
    with pytest.raises(FileNotFoundError):
        replace_file("key", b"8\n", str(tmp_path / "absent"))
    assert fds() == before


@pytest.mark.parametrize("content", [b"{", b"[" * LIMIT, b"\xff"])
def test_what_is_no_json_is_told_from_no_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    assert read_json(str(file), LIMIT) is None
    file.write_bytes(b'{"a": [1]}')
    assert read_json(str(file), LIMIT) == {"a": [1]}
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_json(str(file), LIMIT)
    file.write_bytes(b" " * (LIMIT + 1))
    with pytest.raises(FeatureError, match="longer than"):
        read_json(str(file), LIMIT)
    assert small_text(str(file), LIMIT) is None

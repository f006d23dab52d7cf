"""A tree in which somebody else may write: what it takes up, and all of it removed, nothing else, in a bounded time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.foreign_tree import Removal, remove_tree, sizes
from made_up_node import public_directory

NAME, USER = ".gone.17.1.0", 54321
MEMORY = "/dev/shm"  # where a node's runtime directory usually lies: in memory


def as_user(step: Callable[[], object]) -> int:
    """The exit code of a process of another user that does this."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            step()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def node(tmp_path: Path) -> Iterator[int]:
    """The open directory of a node."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def remove(node: int, seconds: float = 10.0) -> None:
    """Remove the tree in time."""
    Removal(time.monotonic() + seconds).remove(node, NAME)


shapes: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from("abcd"), st.none() | inner, max_size=4), max_leaves=12
)


def lay_out(place: str, shape: dict[str, Any]) -> None:
    """Directories (dicts) and files (None) as given."""
    os.mkdir(place, 0o000)
    for name, inner in shape.items():
        if isinstance(inner, dict):
            lay_out(f"{place}/{name}", inner)
        else:
            os.close(os.open(f"{place}/{name}", os.O_CREAT, 0o000))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to enter directories of mode 000")
@given(shapes)
def test_every_shape_of_tree_is_removed(shape: dict[str, Any]) -> None:
    """Whatever is nested in whatever, and closed to everybody."""
    with public_directory() as base:
        node = os.open(base, os.O_RDONLY)
        try:
            lay_out(f"{base}/{NAME}", shape)
            remove(node)
            assert os.listdir(node) == []
        finally:
            os.close(node)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@given(shapes)
def test_a_user_removes_what_he_closed_to_himself(shape: dict[str, Any]) -> None:
    """HOSTILE 10, not as root: mode 000 on every level."""
    with public_directory() as base:
        tree = f"{base}/{NAME}"
        lay_out(tree, shape)
        subprocess.run(["chown", "-R", "--no-dereference", f"{USER}:{USER}", base], check=True)
        assert as_user(lambda: remove_tree(tree, time.monotonic() + 10)) == 0
        assert os.listdir(base) == []


def test_a_tree_deeper_than_any_path() -> None:
    """1,000 directories in each other: with one descriptor for all of them."""
    with public_directory(MEMORY if os.path.isdir(MEMORY) else None) as base:
        node = os.open(base, os.O_RDONLY)
        os.mkdir(NAME, dir_fd=node)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=node)
        for _ in range(1000):
            os.mkdir("directory", dir_fd=inner)
            below = os.open("directory", os.O_RDONLY, dir_fd=inner)
            os.close(inner)
            inner = below
        os.close(inner)
        before = len(os.listdir("/proc/self/fd"))
        remove(node)
        assert os.listdir(node) == []
        assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests
        os.close(node)


@pytest.mark.parametrize("kind", ["nothing", "file", "link", "FIFO"])
def test_what_is_no_tree_is_removed_like_one(node: int, tmp_path: Path, kind: str) -> None:
    """Under a hidden name anything may stand; where a link leads is left alone."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").touch()
    if kind == "file":
        (tmp_path / NAME).touch()
    elif kind == "link":
        (tmp_path / NAME).symlink_to(tmp_path / "victim")
    elif kind == "FIFO":
        os.mkfifo(tmp_path / NAME)
    remove(node)
    assert os.listdir(node) == ["victim"]
    assert (tmp_path / "victim" / "precious").exists()


def test_what_is_not_removed_in_time_is_removed_next_time(node: int, tmp_path: Path) -> None:
    """HOSTILE 26: the time is up in the middle; each further turn goes on."""
    (tmp_path / NAME / "a" / "b").mkdir(parents=True)
    for number in range(500):
        (tmp_path / NAME / "a" / f"{number}").touch()
    turns = 0
    while os.listdir(node):
        turns += 1
        assert turns < 20
        try:
            remove(node, 0)
        except TimeoutError:
            continue
    assert turns > 3


def test_a_place_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """HOSTILE 1, 3: neither the tree's own name nor the directory it lies in."""
    (tmp_path / "victim" / "tree").mkdir(parents=True)
    (tmp_path / "victim" / "tree" / "precious").write_bytes(b"x" * 10_000)
    (tmp_path / "place").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="Not a directory"):
        remove_tree(f"{tmp_path}/place/tree", time.monotonic() + 10)
    (tmp_path / "tree").symlink_to(tmp_path / "victim" / "tree")
    assert sum(sizes(f"{tmp_path}/tree")) == 0
    remove_tree(f"{tmp_path}/tree", time.monotonic() + 10)
    assert os.listdir(tmp_path / "victim" / "tree") == ["precious"] and not (tmp_path / "tree").is_symlink()


def test_what_a_tree_takes_up_is_what_du_says(tmp_path: Path) -> None:
    """Blocks, so that holes do not count, on every level; nothing outside."""
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "a" / "b" / "c" / "other").write_bytes(b"x" * 5_000)
    with open(tmp_path / "a" / "sparse", "wb") as sparse:
        sparse.truncate(1 << 40)
    (tmp_path / "a" / "link").symlink_to("/usr")
    said = subprocess.run(["du", "-s", "-B1", tmp_path], capture_output=True, text=True, check=True).stdout
    assert sum(sizes(str(tmp_path))) == int(said.split()[0]) - os.stat(tmp_path).st_blocks * 512

"""Removing a job's tree: all of it, nothing else, in a bounded time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.slurm.tree_removal import Removal, leftovers
from made_up_node import public_directory

NAME = ".gone.17.1.0"
MEMORY = "/dev/shm"  # where a node's runtime directory usually lies: in memory


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
@settings(max_examples=40)
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
        assert len(os.listdir("/proc/self/fd")) == before
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


def test_only_what_nobody_works_on_is_left_over(node: int, tmp_path: Path) -> None:
    """Trees to be removed, and those whose making was given up more than a minute ago."""
    now = time.time()
    for name in ("17", ".gone.18.1.0", ".new.19.1.0", ".new.20.1.0", ".node"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / ".new.20.1.0", (now - 100, now - 100))
    assert sorted(leftovers(node, now)) == [".gone.18.1.0", ".new.20.1.0"]

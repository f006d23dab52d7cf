"""Where a job's directories lie: whole under the job's name or not there, and root's alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.facts.errors import FeatureError
from drainwise.slurm import COMPLETE
from drainwise.slurm.node.job_tree import (
    jobs,
    leftovers,
    mark_complete,
    new_tree,
    open_node,
    open_tree,
    put_in_place,
    set_aside,
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[int]:
    """The open directory of a node that had none yet."""
    descriptor = open_node(str(tmp_path / "run"), "n1", create=True)
    assert descriptor is not None
    yield descriptor
    os.close(descriptor)


def test_both_directories_are_made_for_everybody_to_enter(node: int, tmp_path: Path) -> None:
    """Whatever the umask is; a second time they are the same."""
    old = os.umask(0o077)
    try:
        second = open_node(str(tmp_path / "run"), "n2", create=True)
    finally:
        os.umask(old)
    assert second is not None
    os.close(second)
    for path in ("run", "run/n1", "run/n2"):
        assert os.stat(tmp_path / path).st_mode & 0o7777 == 0o755
    again = open_node(str(tmp_path / "run"), "n1")
    assert again is not None
    assert os.path.samestat(os.fstat(again), os.fstat(node))
    os.close(again)


def test_what_is_not_there_is_not_made_unasked(tmp_path: Path) -> None:
    """An epilog where no prolog ever ran leaves nothing behind."""
    assert open_node(str(tmp_path / "run"), "n1") is None
    (tmp_path / "run").mkdir(mode=0o755)
    assert open_node(str(tmp_path / "run"), "n1") is None
    assert os.listdir(tmp_path / "run") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("place", ["run", "run/n1"])
@pytest.mark.parametrize(("mode", "uid"), [(0o777, 0), (0o1777, 0), (0o775, 0), (0o755, 54321), (0o700, 54321)])
def test_a_directory_that_others_may_write_is_refused(tmp_path: Path, place: str, mode: int, uid: int) -> None:
    """HOSTILE 47: nothing is made where a user may have prepared something."""
    os.makedirs(tmp_path / "run" / "n1", mode=0o755)
    os.chmod(tmp_path / place, mode)
    os.chown(tmp_path / place, uid, uid)
    with pytest.raises(FeatureError, match="others may write"):
        open_node(str(tmp_path / "run"), "n1", create=True)


@pytest.mark.parametrize("place", ["run", "run/n1"])
def test_a_link_in_their_place_is_not_followed(tmp_path: Path, place: str) -> None:
    """HOSTILE 1, 3: not even to a directory of root's."""
    (tmp_path / "elsewhere" / "n1").mkdir(parents=True)
    if place == "run/n1":
        (tmp_path / "run").mkdir()
    (tmp_path / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        open_node(str(tmp_path / "run"), "n1", create=True)


def test_a_tree_is_roots_alone_until_it_has_its_name(node: int) -> None:
    """Hidden and closed while it is made; then everybody may look into it."""
    name, tree = new_tree(node, "17")
    assert name.startswith(".new.17.")
    assert os.fstat(tree).st_mode & 0o777 == 0o700
    assert jobs(node) == []
    assert put_in_place(node, name, tree, "17") is None
    assert os.fstat(tree).st_mode & 0o777 == 0o755
    assert jobs(node) == ["17"]
    os.close(tree)


def test_the_new_tree_takes_the_place_of_an_old_one(node: int) -> None:
    """HOSTILE 48: nothing of the old one is in it; the old one is set aside."""
    for content in ("old", "new"):
        name, tree = new_tree(node, "17")
        os.close(os.open(content, os.O_CREAT, dir_fd=tree))
        aside = put_in_place(node, name, tree, "17")
        os.close(tree)
    assert aside is not None
    found = open_tree(node, "17")
    assert found is not None
    assert os.listdir(found) == ["new"]
    os.close(found)
    assert sorted(os.listdir(node)) == [aside, "17"]


@pytest.mark.parametrize("kind", ["file", "link", "FIFO"])
def test_something_else_under_a_jobs_name_is_set_aside(node: int, kind: str) -> None:
    """It is never followed nor opened."""
    if kind == "file":
        os.close(os.open("17", os.O_CREAT, dir_fd=node))
    elif kind == "link":
        os.symlink("/etc", "17", dir_fd=node)
    else:
        os.mkfifo("17", dir_fd=node)
    name, tree = new_tree(node, "17")
    aside = put_in_place(node, name, tree, "17")
    os.close(tree)
    assert aside is not None
    assert sorted(os.listdir(node)) == [aside, "17"]


def test_names_left_by_a_killed_hook_do_not_disturb(node: int) -> None:
    """HOSTILE 51: our own number may come back."""
    first, tree = new_tree(node, "17")
    os.close(tree)
    second, tree = new_tree(node, "17")
    put_in_place(node, second, tree, "17")
    os.close(tree)
    assert first != second
    aside = set_aside(node, "17")
    os.mkdir("17", dir_fd=node)
    assert set_aside(node, "17") not in {aside, None}
    assert set_aside(node, "17") is None


def test_only_jobs_are_listed(node: int) -> None:
    """Neither hidden names nor the node's own record."""
    for name in ("17", "18", ".new.19.1.0", ".gone.20.1.0", ".node", "x"):
        os.mkdir(name, dir_fd=node)
    assert sorted(jobs(node)) == ["17", "18"]


def test_a_tree_is_marked_once(node: int) -> None:
    """The agent and the prolog may both do it."""
    _, tree = new_tree(node, "17")
    mark_complete(tree)
    mark_complete(tree)
    assert os.listdir(tree) == [COMPLETE]
    os.close(tree)
    assert open_tree(node, "17") is None


def test_only_what_nobody_works_on_is_left_over(node: int, tmp_path: Path) -> None:
    """Trees to be removed, and those whose making was given up more than a minute ago."""
    now = time.time()
    for name in ("17", ".gone.18.1.0", ".new.19.1.0", ".new.20.1.0", ".node"):
        (tmp_path / "run" / "n1" / name).mkdir()
    os.utime(tmp_path / "run" / "n1" / ".new.20.1.0", (now - 100, now - 100))
    assert sorted(leftovers(node, now)) == [".gone.18.1.0", ".new.20.1.0"]

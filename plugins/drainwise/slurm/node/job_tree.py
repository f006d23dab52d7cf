"""The directories of a job on its node: <runtime_dir>/<node>/<job>/, made by the prolog, root's alone.

A tree is filled under a hidden name, where no user gets in, and renamed into place; it is taken away by renaming it to
another hidden name and removing it there. So a job's name leads to a whole tree or to nothing, and whatever a killed
hook leaves behind is known by its name. Nobody but root can write to any directory down to the job's own $JOBSTATUS.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import errno
import posix

from drainwise.common.local_file import create_file, shown
from drainwise.facts.errors import FeatureError
from drainwise.node.hook import status_of
from drainwise.slurm import COMPLETE

NEW, GONE = ".new.", ".gone."
"""The two hidden names: of a tree that is being made, and of one that is to be removed."""

_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_MODE = 0o755
_TRIES = 8
_ABANDONED = 60
"""Seconds after which a tree that is still being made belongs to a hook that was killed: hooks have less time."""
_IN_THE_WAY = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


def open_node(runtime_dir: str, node: str, create: bool = False) -> int | None:
    """Return a descriptor of the directory of a node's jobs; None when it is not there and is not to be made.

    Raises FeatureError when one of the two directories is not root's alone, OSError when one cannot be made or opened.
    """
    runtime = _open_own(runtime_dir, None, create)
    if runtime is None:
        return None
    try:
        return _open_own(node, runtime, create)
    finally:
        posix.close(runtime)


def _open_own(name: str, below: int | None, create: bool) -> int | None:
    try:
        directory = posix.open(name, _DIRECTORY, dir_fd=below)
    except FileNotFoundError:
        if not create:
            return None
        try:
            posix.mkdir(name, _MODE, dir_fd=below)
            is_ours = True
        except FileExistsError:
            is_ours = False  # another prolog was faster
        directory = posix.open(name, _DIRECTORY, dir_fd=below)
        if is_ours:
            posix.fchmod(directory, _MODE)
    status = posix.fstat(directory)
    if status.st_uid == posix.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return directory
    posix.close(directory)
    raise FeatureError(f"{shown(name)}: others may write there; expected root's directory with mode 0755")


def open_tree(node: int, name: str) -> int | None:
    """Return a descriptor of a tree below the open directory of a node; None when there is none. Raises OSError."""
    try:
        return posix.open(name, _DIRECTORY, dir_fd=node)
    except FileNotFoundError:
        return None


def new_tree(node: int, job: str) -> tuple[str, int]:
    """Return an empty tree under a hidden name, for root alone: its name and a descriptor. Raises OSError."""
    name = _free_name(node, f"{NEW}{job}")  # a hook that was killed may have left another, and had our number
    posix.mkdir(name, 0o700, dir_fd=node)
    return name, posix.open(name, _DIRECTORY, dir_fd=node)


def _free_name(node: int, stem: str) -> str:
    for attempt in range(_TRIES):
        name = f"{stem}.{posix.getpid()}.{attempt}"
        if status_of(name, node) is None:
            return name
    raise FileExistsError(errno.EEXIST, f"no free name {stem}.{posix.getpid()}.N")


def put_in_place(node: int, name: str, tree: int, job: str) -> str | None:
    """Give a finished tree its job's name. What stands there is set aside: its hidden name, or None. Raises OSError."""
    posix.fchmod(tree, _MODE)
    aside = None
    for attempt in range(_TRIES):
        try:
            posix.rename(name, job, src_dir_fd=node, dst_dir_fd=node)
        except OSError as error:
            if error.errno not in _IN_THE_WAY or attempt == _TRIES - 1:
                raise
            aside = set_aside(node, job) or aside
        else:
            break
    return aside


def set_aside(node: int, tree: str) -> str | None:
    """Leave a tree, or whatever has this name, to the epilogs: its new name, None when there is nothing.

    `tree`: the job's own name, or the hidden one of a tree that could not be finished. Raises OSError.
    """
    name = _free_name(node, f"{GONE}{tree.lstrip('.')}")
    try:
        posix.rename(tree, name, src_dir_fd=node, dst_dir_fd=node)
    except FileNotFoundError:
        return None
    return name


def mark_complete(tree: int) -> None:
    """Say in the open tree of a job that nothing more is to be waited for. Raises OSError."""
    try:
        create_file(COMPLETE, b"", tree)
    except FileExistsError:
        return


def jobs(node: int) -> list[str]:
    """Return the jobs that have a tree below the open directory of a node, in no order. Raises OSError."""
    return [name for name in posix.listdir(node) if name.isdigit() and name.isascii()]


def leftovers(node: int, now: float) -> list[str]:
    """Return the hidden names below the open directory of a node that nobody works on any more; `now` in UNIX s."""
    found = []
    for name in posix.listdir(node):
        made = status_of(name, node) if name.startswith(NEW) else None
        if name.startswith(GONE) or (made is not None and now - made.st_mtime > _ABANDONED):
            found.append(name)
    return found

"""Removing a job's tree, with all that the user put into $JOBSTATUS, as root, in a bounded time.

Root has to do it: a user can make directories that he himself cannot remove any more, and files may be another user's.
So everything goes by descriptors and by names of a single component that are never followed, each directory is closed
to its user before it is emptied, and what is mounted there is left alone. A directory found inside is first moved up
into the tree itself, which is root's: however deep they are nested, no more than one of the user's is open at a time.
"""

from __future__ import annotations

import errno
import posix
import time

from drainwise.errors import FeatureError
from drainwise.features.local_file import shown
from drainwise.pilotad.mounts import mounts_below, same_mount
from drainwise.slurm.job_tree import GONE, NEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
_MOVED = ".moved."
_LOOK_AT_CLOCK = 64
_ABANDONED = 60
"""Seconds after which a tree that is still being made belongs to a hook that was killed: hooks have less time."""


class Removal:
    """One removal, or several one after the other, in the time until `end` (monotonic clock, seconds)."""

    __slots__ = ("_done", "_end", "_fault", "_steps")

    def __init__(self, end: float) -> None:
        self._end = end
        self._steps = self._done = 0
        self._fault: OSError | None = None

    def remove(self, node: int, name: str) -> None:
        """Remove the tree `name`, or whatever has its name, below the open directory of a node.

        Raises TimeoutError when the time is up, and another OSError or FeatureError when something resists, after
        having removed all the rest.
        """
        try:
            self._remove(node, name)
        except FileNotFoundError:
            return  # another epilog was faster

    def _remove(self, node: int, name: str) -> None:
        if mounts_below(f"{posix.readlink(f'/proc/self/fd/{node}')}/{name}"):
            raise FeatureError(f"{shown(name)}: something is mounted in it; left alone until it is not")
        try:
            posix.unlink(name, dir_fd=node)
            return
        except IsADirectoryError:
            tree = posix.open(name, _DIRECTORY, dir_fd=node)
        try:
            self._empty(tree)
        finally:
            posix.close(tree)
        posix.rmdir(name, dir_fd=node)

    def _empty(self, tree: int) -> None:
        """Pass over the tree until nothing is left; a pass that gets nothing done is the last."""
        while True:
            done, self._fault = self._done, None
            seen = self._pass_over(tree, lambda name: self._remove_directory(tree, name))
            if not seen:
                return
            if self._done == done and self._fault is not None:
                raise self._fault

    def _remove_directory(self, tree: int, name: str) -> None:
        """Remove a directory in the tree; the directories in it become the tree's own."""
        directory = posix.open(name, _DIRECTORY, dir_fd=tree)
        try:
            if not same_mount(directory, tree):
                raise OSError(errno.EXDEV, posix.strerror(errno.EXDEV))
            posix.fchown(directory, posix.geteuid(), -1)
            posix.fchmod(directory, 0o700)
            self._pass_over(directory, lambda inner: self._move_up(directory, inner, tree))
        finally:
            posix.close(directory)
        posix.rmdir(name, dir_fd=tree)

    def _move_up(self, directory: int, name: str, tree: int) -> None:
        moved = f"{_MOVED}{posix.getpid()}.{self._steps}"
        posix.rename(name, moved, src_dir_fd=directory, dst_dir_fd=tree)

    def _pass_over(self, directory: int, take: Callable[[str], None]) -> bool:
        """Unlink what is in the open directory and is none itself, `take` the directories; whether there was any."""
        seen = False
        with posix.scandir(directory) as entries:
            for entry in entries:
                seen = True
                if entry.is_dir(follow_symlinks=False):
                    self._try(take, entry.name)
                else:
                    self._try(lambda name: posix.unlink(name, dir_fd=directory), entry.name)
        return seen

    def _try(self, step: Callable[[str], None], name: str) -> None:
        """Count what is done, keep the first fault, and look at the clock now and then. Raises TimeoutError."""
        self._steps += 1
        if self._steps % _LOOK_AT_CLOCK == 0 and time.monotonic() > self._end:
            raise TimeoutError(errno.ETIMEDOUT, "not removed in time; the next epilog goes on")
        try:
            step(name)
            self._done += 1
        except TimeoutError:
            raise
        except FileNotFoundError:
            self._done += 1  # another epilog removes it, too
        except OSError as error:
            self._fault = self._fault or error


def leftovers(node: int, now: float) -> list[str]:
    """The hidden names below the open directory of a node that nobody works on any more; `now` in UNIX s."""
    found = []
    for name in posix.listdir(node):
        if name.startswith(GONE) or (name.startswith(NEW) and _age(node, name, now) > _ABANDONED):
            found.append(name)
    return found


def _age(node: int, name: str, now: float) -> float:
    try:
        return now - posix.stat(name, dir_fd=node, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0

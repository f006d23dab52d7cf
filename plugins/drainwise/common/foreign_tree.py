"""A tree in which somebody else may still write: its size on disk, and its removal in a bounded time.

Everything goes by descriptors and by names of a single component that are never followed, and what is mounted there is
left alone. To be removed, each directory is closed to its user before it is emptied, and a directory found inside is
first moved up into the tree itself: however deep they are nested, no more than one of the user's is open at a time.
Root can remove what its user made and cannot remove any more; a user himself what he only took his own rights from.
"""

from __future__ import annotations

import errno
import posix
import time

from drainwise.common.local_file import Held, shown
from drainwise.common.mounts import mounts_below, same_mount
from drainwise.facts.errors import FeatureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
_PLACE = posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_MOVED = ".moved."
_LOOK_AT_CLOCK = 64
_BLOCK = 512  # bytes, what st_blocks counts


class Removal:
    """One removal, or several one after the other, in the time until `end` (monotonic clock, seconds)."""

    __slots__ = ("_done", "_end", "_fault", "_steps")

    def __init__(self, end: float) -> None:
        self._end = end
        self._steps = self._done = 0
        self._fault: OSError | None = None

    def remove(self, node: int, name: str) -> None:
        """Remove the tree `name`, or whatever has its name, below the open directory `node`.

        Raises TimeoutError when the time is up, and another OSError or FeatureError when something resists, after
        having removed all the rest.
        """
        try:
            self._remove(node, name)
        except FileNotFoundError:
            return  # somebody else was faster

    def _remove(self, node: int, name: str) -> None:
        if mounts_below(f"{posix.readlink(f'/proc/self/fd/{node}')}/{name}"):
            raise FeatureError(f"{shown(name)}: something is mounted in it; left alone until it is not")
        try:
            posix.unlink(name, dir_fd=node)
            return
        except IsADirectoryError:
            with Held(_opened(name, node)) as tree:
                self._empty(tree)
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
        with Held(_opened(name, tree)) as directory:
            if not same_mount(directory, tree):
                raise OSError(errno.EXDEV, posix.strerror(errno.EXDEV))
            posix.fchown(directory, posix.geteuid(), -1)
            posix.fchmod(directory, 0o700)
            self._pass_over(directory, lambda inner: self._move_up(directory, inner, tree))
        posix.rmdir(name, dir_fd=tree)

    def _move_up(self, directory: int, name: str, tree: int) -> None:
        moved = f"{_MOVED}{posix.getpid()}.{self._steps}"
        try:
            posix.rename(name, moved, src_dir_fd=directory, dst_dir_fd=tree)
        except PermissionError:  # moving a directory writes to it
            _give_back_rights(name, directory)
            posix.rename(name, moved, src_dir_fd=directory, dst_dir_fd=tree)

    def _pass_over(self, directory: int, take: Callable[[str], None]) -> bool:
        """Unlink the files in the open directory, `take` the directories; return whether there was any entry."""
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
            raise TimeoutError(errno.ETIMEDOUT, "not removed in time; the next attempt goes on")
        try:
            step(name)
            self._done += 1
        except TimeoutError:
            raise
        except FileNotFoundError:
            self._done += 1  # somebody else removes it, too
        except OSError as error:
            self._fault = self._fault or error


def remove_tree(path: str, end: float) -> None:
    """Remove the tree at a path, as `Removal.remove`; neither its last component nor the one before it is followed."""
    above, _, name = path.rstrip("/").rpartition("/")
    with Held(posix.open(above or "/", _PLACE)) as node:
        Removal(end).remove(node, name)


def _opened(name: str, node: int) -> int:
    """Open a directory that its owner, who may be us, has perhaps closed to himself. Raises OSError."""
    try:
        tree = posix.open(name, _DIRECTORY, dir_fd=node)
    except PermissionError:
        _give_back_rights(name, node)
        return posix.open(name, _DIRECTORY, dir_fd=node)
    status = posix.fstat(tree)
    if status.st_mode & 0o700 != 0o700 and status.st_uid == posix.geteuid():
        posix.fchmod(tree, 0o700)
    return tree


def _give_back_rights(name: str, node: int) -> None:
    """Do as chmod 700; O_PATH asks for no right, and its descriptor is the directory itself, whoever renames what."""
    with Held(posix.open(name, _PLACE, dir_fd=node)) as place:
        posix.chmod(f"/proc/self/fd/{place}", 0o700)


def is_as_made(directory: str, mode: int) -> bool:
    """Decide whether a directory is empty, has this mode and is one still, with nothing mounted there."""
    if mounts_below(directory):
        return False
    try:
        with Held(posix.open(directory, _DIRECTORY)) as opened, posix.scandir(opened) as entries:
            return next(entries, None) is None and posix.fstat(opened).st_mode & 0o7777 == mode
    except OSError:
        return False


def sizes(directory: str) -> Iterator[int]:
    """Yield the bytes on disk of each thing below a directory, as it is found: the caller may take his time.

    Nothing is looked at as long as something is mounted there: a FUSE server that never answers would hold us for ever.
    """
    places = [] if mounts_below(directory) else [directory]
    while places:
        place = places.pop()
        try:
            with Held(posix.open(place, _DIRECTORY)) as opened, posix.scandir(opened) as entries:
                for entry in entries:
                    try:
                        taken = entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    except OSError:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        places.append(f"{place}/{entry.name}")
                    yield taken
        except OSError:
            continue

"""Find the local directories of glideins in a job's directory: an `execute` and a `log` side by side, two levels deep.

The update hook looks here in every job that reports nothing: one without a glidein must cost next to nothing.
"""

from __future__ import annotations

import posix

from drainwise.facts.errors import RefusedFile
from drainwise.node import DIRECTORIES
from drainwise.pilotad.safe_open import open_dir, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

EXECUTE, LOG = "execute", "log"

MOST_DIRECTORIES = 64
"""Directories of one job that are looked at."""
_OURS = frozenset(DIRECTORIES.values())
_LEVELS = 2
_MOST_ENTRIES = 1024
_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC


def names_of_directories(directory: int) -> list[str]:
    """Return the names of the directories in an open one, among its first thousand entries. Raises RefusedFile."""
    try:
        opened = posix.open(".", _DIRECTORY, dir_fd=directory)
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error
    try:
        with posix.scandir(opened) as entries:
            first = zip(range(_MOST_ENTRIES), entries)
            return [entry.name for _, entry in first if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error
    finally:
        posix.close(opened)


def has_local_directory(sandbox: int, uid: int) -> bool:
    """Decide whether there is a glidein below the job's open directory."""
    places = local_directories(sandbox, uid)
    try:
        return next(places, None) is not None
    finally:
        places.close()


def local_directories(sandbox: int, uid: int) -> Generator[int, None, None]:
    """Yield the local directory of each glidein below the job's open directory, open until the next is asked for.

    uid: the job's user, who must own each directory. What is below a glidein is its own.
    """
    left = [MOST_DIRECTORIES]
    if _is_local_directory(sandbox):
        yield sandbox
        return
    yield from _below(sandbox, uid, _LEVELS, left)


def _below(directory: int, uid: int, levels: int, left: list[int]) -> Generator[int, None, None]:
    try:
        names = [name for name in names_of_directories(directory) if name not in _OURS]
    except RefusedFile:
        return
    deeper = []
    for name in names:
        if not left[0]:
            return
        left[0] -= 1
        try:
            place = open_dir(name, directory, uid)
        except RefusedFile:
            continue
        try:
            if _is_local_directory(place):
                yield place
            else:
                deeper.append(name)
        finally:
            posix.close(place)
    for name in deeper if levels > 1 else ():
        try:
            place = open_dir(name, directory, uid)
        except RefusedFile:
            continue
        try:
            yield from _below(place, uid, levels - 1, left)
        finally:
            posix.close(place)


def _is_local_directory(place: int) -> bool:
    try:
        for name in (EXECUTE, LOG):
            posix.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return True

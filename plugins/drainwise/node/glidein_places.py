"""Find the local directories of glideins in a job's directory: an `execute` and a `log` side by side, two levels deep.

The update hook looks here in every job that reports nothing: one without a glidein must cost next to nothing.
"""

from __future__ import annotations

import posix

from drainwise.common.local_file import Held
from drainwise.common.mounts import fuse_mounts_below
from drainwise.facts.errors import RefusedFile
from drainwise.node import DIRECTORIES
from drainwise.node.hook import status_of
from drainwise.pilotad.safe_open import open_dir, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

EXECUTE, LOG = "execute", "log"

MOST_DIRECTORIES = 64
"""Directories of one job that are looked into."""
_MOST_BELOW = 128
_OURS = frozenset(DIRECTORIES.values())
_MOST_ENTRIES = 1024
_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC


def names_of_directories(directory: int, name: str = ".") -> list[str]:
    """Return the names of the directories in one, among its first thousand entries. Raises RefusedFile."""
    try:
        with Held(posix.open(name, _DIRECTORY, dir_fd=directory)) as opened, posix.scandir(opened) as entries:
            first = zip(range(_MOST_ENTRIES), entries)
            return [entry.name for _, entry in first if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error


def has_glidein(scratch: str) -> bool:
    """Decide whether something in the job's directory, a path, looks like a glidein."""
    try:
        with Held(open_dir(scratch)) as sandbox:
            return bool(places_of_glideins(sandbox))
    except RefusedFile:
        return False


def places_of_glideins(sandbox: int) -> list[str]:
    """Return the paths, below the open directory of a job, of what looks like the local directory of a glidein.

    What is below a glidein is its own. Raises RefusedFile when the job's directory cannot be read.
    """
    names = names_of_directories(sandbox)
    if EXECUTE in names and LOG in names:
        return ["."]
    found: list[str] = []
    left = _MOST_BELOW
    names = [name for name in names if name not in _OURS][:MOST_DIRECTORIES]
    # A file system served by the user can hold whoever looks into it.
    blocked = _fuse_mounts(sandbox) if names else frozenset()
    for name in names:
        if name in blocked:
            continue
        try:
            inside = names_of_directories(sandbox, name)
        except RefusedFile:
            continue
        if EXECUTE in inside and LOG in inside:
            found.append(name)
        else:
            below = [f"{name}/{each}" for each in inside[:left]]
            left -= len(below)
            found += [path for path in below if path not in blocked and _has_both(sandbox, path)]
    return found


def local_directories(sandbox: int, uid: int) -> Generator[int, None, None]:
    """Yield each of those that is the job's user's (`uid`), open until the next is asked for. Raises RefusedFile."""
    for path in places_of_glideins(sandbox):
        try:
            place = _opened(sandbox, path, uid)
        except RefusedFile:
            continue
        with Held(place):
            yield place


def _fuse_mounts(sandbox: int) -> frozenset[str]:
    base = posix.readlink(f"/proc/self/fd/{sandbox}")
    return frozenset(point[len(base) + 1 :] for point in fuse_mounts_below(base))


def _opened(sandbox: int, path: str, uid: int) -> int:
    place = posix.dup(sandbox)
    for name in path.split("/") if path != "." else ():
        with Held(place):
            place = open_dir(name, place, uid)
    return place


def _has_both(sandbox: int, path: str) -> bool:
    return all(status_of(f"{path}/{name}", sandbox) is not None for name in (EXECUTE, LOG))

"""The rendered files of a machine, written as a whole: half of them would stop the jobs.

Units that had another name in earlier releases go on by the new one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace

from drainwise.common.local_file import make_public
from drainwise.facts.errors import UsageError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class RenderedFile:
    """One file of a machine: its absolute `path` there, its text and its mode."""

    path: str
    text: str
    mode: int = 0o644


def open_above(path: str, root: str = "") -> tuple[str, ...]:
    """Return the directories above a file, and above what it leads to, in which others than root may put another file.

    The nearest first; a sticky one is none of them. root: where the file's machine has its own root; what leads out of
    that is not followed. Raises OSError.
    """
    found: list[str] = []
    for leaf in (root + path, os.path.realpath(root + path)):
        place = leaf if leaf.startswith(root) else root
        while place not in {"/", root}:
            place = os.path.dirname(place)
            status = os.stat(place)
            if status.st_uid != 0 or (status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX):
                found.append(place.removeprefix(root) or "/")
    return tuple(dict.fromkeys(found))


def read_tree(directory: str) -> tuple[RenderedFile, ...]:
    """Read the files of a tree that `write_tree` wrote and a person carried here, in the order of installation.

    What batch systems and systemd read lies below /etc and comes last, after drainwise's own settings. Modes are those
    of `RenderedFile`, whatever umask the tree was copied under. Raises UsageError for a tree that is not there, is
    empty, or holds something else than text.
    """
    found = []
    for place, _, names in os.walk(directory):
        for name in (one for one in names if not one.startswith(".")):  # written beside what somebody has edited
            source = os.path.join(place, name)
            found.append(_read(source, f"/{os.path.relpath(source, directory)}"))
    if not found:
        raise UsageError(f"{directory}: no files; expected the directory that `drainwise config … --out` wrote")
    return tuple(sorted(found, key=lambda file: (_turn(file.path), file.path)))


def _turn(path: str) -> int:
    return 0 if not path.startswith("/etc/") else 1 if path.startswith("/etc/drainwise/") else 2


def _read(source: str, path: str) -> RenderedFile:
    try:
        with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="ascii", newline="") as stream:
            executable = os.fstat(stream.fileno()).st_mode & 0o100
            return RenderedFile(path, stream.read(), 0o755 if executable else 0o644)
    except OSError as fault:
        raise UsageError(f"{source}: cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{source}: expected a file as `drainwise config` writes them, in ASCII") from None


def write_tree(files: Iterable[RenderedFile], out: str) -> frozenset[str]:
    """Write the files below the directory `out` (`/` installs them), each by rename and in their order.

    All of them lie complete beside their places before the first one is renamed. What stands there already as it would
    be written is left alone. Returns the paths of those that were written. Raises UsageError when one cannot be
    written; the tree is then as it was.
    """
    staged: list[tuple[str, str]] = []
    begun: list[str] = []
    written: set[str] = set()
    try:
        for file in {file.path: file for file in files}.values():  # a machine of two roles has some files twice
            place = os.path.join(out, file.path.lstrip("/"))
            make_public(os.path.dirname(place))
            if os.path.isdir(place):
                raise UsageError(f"{place}: a directory stands where a file must be written")
            temporary = f"{os.path.dirname(place)}/.{os.path.basename(place)}.new"  # batch systems pass over dot files
            begun.append(temporary)
            if _stands(file, place):
                continue
            staged.append((temporary, place))
            written.add(file.path)
            _write(temporary, file)
        for temporary, place in staged:
            os.rename(temporary, place)
    except OSError as fault:
        raise UsageError(f"{fault.filename or out}: cannot be written: {fault.strerror}") from None
    finally:
        for temporary in begun:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    return frozenset(written)


def _stands(file: RenderedFile, place: str) -> bool:
    """Return whether a regular file of this text, mode and owner stands there."""
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="ascii", newline="") as stream:
            found = os.fstat(stream.fileno())
            own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            return own and stat.S_IMODE(found.st_mode) == file.mode and stream.read(len(file.text) + 1) == file.text
    except (OSError, UnicodeDecodeError):
        return False


def _write(temporary: str, file: RenderedFile) -> None:
    if os.path.lexists(temporary):
        os.unlink(temporary)  # left by a run that was killed
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(file.text)
        os.fchmod(descriptor, file.mode)
        stream.flush()
        os.fsync(descriptor)


_UNITS = "/etc/systemd/system"
RENAMED = {f"{_UNITS}/drainwise-slurm-agent.service": f"{_UNITS}/drainwise-node-agent.service"}


def with_new_names(files: Iterable[RenderedFile]) -> tuple[RenderedFile, ...]:
    """Return the files of a tree, which an earlier release may have rendered, by the names of this one."""
    return tuple(replace(file, path=RENAMED.get(file.path, file.path)) for file in files)


def rename_units(root: str) -> None:
    """Give units below `root` their new names, edits and all, and leave links at the old ones, by which they go on.

    The links are those that `systemctl enable` writes for an alias and `systemctl disable` removes.
    """
    for old, new in RENAMED.items():
        place = os.path.join(root, old.lstrip("/"))
        if os.path.isfile(place) and not os.path.islink(place):
            os.replace(place, os.path.join(root, new.lstrip("/")))
            os.symlink(new, place)

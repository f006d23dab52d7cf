"""The rendered files of a machine, written as a whole: half of them would stop the jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.errors import UsageError


@dataclass(frozen=True)
class RenderedFile:
    """One file of a machine: its absolute `path` there, its text and its mode."""

    path: str
    text: str
    mode: int = 0o644


def write_tree(files: Iterable[RenderedFile], out: str) -> None:
    """Write the files below the directory `out` (`/` installs them), each by rename and in their order.

    All of them lie complete beside their places before the first one is renamed. Raises UsageError when one cannot be
    written; the tree is then as it was.
    """
    staged: list[tuple[str, str]] = []
    try:
        for file in {file.path: file for file in files}.values():  # a machine of two roles has some files twice
            place = os.path.join(out, file.path.lstrip("/"))
            _make_directories(os.path.dirname(place))
            if os.path.isdir(place):
                raise UsageError(f"{place}: a directory stands where a file must be written")
            temporary = f"{os.path.dirname(place)}/.{os.path.basename(place)}.new"  # batch systems pass over dot files
            staged.append((temporary, place))
            _write(temporary, file)
        for temporary, place in staged:
            os.rename(temporary, place)
    except OSError as fault:
        raise UsageError(f"{fault.filename or out}: cannot be written: {fault.strerror}") from None
    finally:
        for temporary, _ in staged:
            if os.path.lexists(temporary):
                os.unlink(temporary)


def _make_directories(path: str) -> None:
    """Like os.makedirs, readable by everyone whatever the umask is: jobs' users must get to the hooks."""
    if path and not os.path.isdir(path):
        _make_directories(os.path.dirname(path))
        os.mkdir(path)
        os.chmod(path, 0o755)  # noqa: S103 - nothing secret lies there


def _write(temporary: str, file: RenderedFile) -> None:
    if os.path.lexists(temporary):
        os.unlink(temporary)  # left by a run that was killed
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(file.text)
        os.fchmod(descriptor, file.mode)
        stream.flush()
        os.fsync(descriptor)

"""`$JOBSTATUS`, written: for pilots that state their status in the draft's way.

Files are overwritten in place: the lock keeps readers out, and the seal tells a finished report from one cut short.
"""

from __future__ import annotations

import errno
import posix

from drainwise.errors import RefusedFile
from drainwise.pilotad.attributes import ATTRIBUTES, CORES, FLAG
from drainwise.pilotad.job_directory import JobDirectory, not_written
from drainwise.pilotad.jobstatus import KEY_LIMIT, SEAL
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import READ_FLAGS, check_file
from drainwise.pilotad.status_lock import is_at, lock
from drainwise.pilotad.values import decimal_text

_WRITE_FLAGS = (READ_FLAGS & ~posix.O_ACCMODE) | posix.O_RDWR | posix.O_CREAT
_MODE = 0o644
_BLANK = b"\n" * KEY_LIMIT


def write_jobstatus(directory: int | str, report: PilotReport, timeout: float = 2.0) -> None:
    """Write what `report` knows into `directory` (a descriptor or a path) under the exclusive lock.

    The files of unknown values are removed. timeout: s to wait for the lock. Sums are rounded to whole core-seconds,
    as the draft has them. Raises FeatureError; a reader finds the old report then, or none, never a mix.
    """
    if report.used_cpu is None:
        raise not_written(SEAL.status_name, "used_cpu is not known: state how many cores are in use")
    opened: list[tuple[int, bytes]] = []
    with JobDirectory(directory) as dir_fd:
        try:
            seal = _open(dir_fd, SEAL.status_name)
            opened.append((seal, _text(CORES, report.used_cpu)))
            lock(seal, exclusive=True, timeout=timeout)
            if not is_at(seal, dir_fd, SEAL.status_name):
                raise RefusedFile("replaced while it was being locked")
            unknown = _open_others(dir_fd, report, opened)
            _write_sealed(dir_fd, opened, unknown)
        except RefusedFile as refused:
            raise not_written(SEAL.status_name, refused.reason) from refused
        except OSError as error:
            raise not_written(SEAL.status_name, error) from error
        finally:
            for fd, _ in opened:
                posix.close(fd)


def _open_others(dir_fd: int, report: PilotReport, opened: list[tuple[int, bytes]]) -> list[str]:
    """Add the files of known values to `opened`, each with a block of its own already; return the names of the others.

    Whatever can lack space, inodes or descriptors does so here, before the seal is broken.
    """
    unknown = []
    for row in ATTRIBUTES:
        value = getattr(report, row.field)
        if value is None:
            unknown.append(row.status_name)
        elif row is not SEAL:
            fd = _open(dir_fd, row.status_name)
            opened.append((fd, _text(row.kind, value)))
            if posix.fstat(fd).st_size == 0:
                posix.write(fd, b"\n")
    return unknown


def _write_sealed(dir_fd: int, opened: list[tuple[int, bytes]], unknown: list[str]) -> None:
    seal, last = opened[0]
    _overwrite(seal, _BLANK)
    for fd, content in opened[1:]:
        _overwrite(fd, content)
    for name in unknown:
        try:
            posix.unlink(name, dir_fd=dir_fd)
        except FileNotFoundError:
            continue
    _overwrite(seal, last)


def _open(dir_fd: int, name: str) -> int:
    """The pilot's own small file, made if need be, which the site can read whatever the pilot's umask is."""
    fd = posix.open(name, _WRITE_FLAGS, _MODE, dir_fd=dir_fd)
    try:
        if check_file(fd, dir_fd, posix.geteuid(), KEY_LIMIT).st_mode & 0o777 != _MODE:
            posix.fchmod(fd, _MODE)
    except (OSError, RefusedFile):
        posix.close(fd)
        raise
    return fd


def _overwrite(fd: int, content: bytes) -> None:
    """In place, so that the lock stays on the file; written before it is cut, so that no half value is ever left."""
    if posix.pwrite(fd, content, 0) != len(content):
        raise OSError(errno.ENOSPC, "not written in whole")
    posix.ftruncate(fd, len(content))


def _text(kind: str, value: float) -> bytes:
    if kind == FLAG:
        return b"True\n" if value else b"False\n"
    if kind == CORES:
        return decimal_text(value).encode() + b"\n"
    return b"%d\n" % round(value)

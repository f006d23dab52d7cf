"""`$JOBSTATUS`: nine files in a directory of the job's user, and one for each optional attribute that the pilot states.

Its node reads them, the pilot writes them.

Values are absolute: cores and core-seconds. The draft (section 3) guards them by a lock on `used_CPU` and does not say
which: flock() and fcntl() locks do not see each other, so both are taken, and never waited for without end.

Files are overwritten in place. `used_CPU` is also the seal: our writer blanks it first and fills it last, so that one
killed in between leaves a directory that says nothing instead of a mix of old and new.
"""

from __future__ import annotations

import errno
import fcntl
import posix
import time

from drainwise.common.local_file import OPEN, Held, is_at
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.attributes import ATTRIBUTES, CORES, CURVE, JOBSTATUS
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import (
    JobDirectory,
    Patience,
    check_file,
    not_written,
    open_file,
    read_file,
    read_settled,
    reason_of,
)
from drainwise.pilotad.values import READ, TEXT_LIMIT, decimal_text

_PAUSE = 0.001
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def lock(fd: int, exclusive: bool, timeout: float, patience: Patience | None = None) -> None:
    """Lock `fd` in both kinds; the locks go with the descriptor (fcntl's with *any* descriptor of that file).

    exclusive: a writer; else readers may share. timeout: s to keep trying, as far as `patience` (None: enough) goes.
    Raises RefusedFile("locked").
    """
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    budget, end = patience or Patience(timeout), time.monotonic() + timeout
    while not _both(fd, kind):
        if time.monotonic() + _PAUSE > end or not budget.pause(_PAUSE):
            raise RefusedFile("locked")


def _both(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind)
        fcntl.lockf(fd, kind)
    except OSError as error:
        if error.errno not in _HELD:
            raise RefusedFile(reason_of(error)) from error
        # Holding one while waiting for the other could stop two honest ones for good.
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    return True


KEY_LIMIT = 64
"""Bytes one of the files may hold; that of the curve more."""
LOCK_TIMEOUT = 0.05
"""Seconds a reader tries to get the lock."""

SEAL = next(row for row in ATTRIBUTES if row.kind == CORES)
"""The row of `used_CPU`."""


def read_jobstatus(dir_fd: int, uid: int, patience: Patience | None = None) -> tuple[PilotReport, tuple[str, ...]]:
    """Read the report in the directory `dir_fd`, and the file names whose content was not sound.

    uid: the owner every file must have. patience: what waiting may take in all (None: 50 ms for the lock).
    The heartbeat is the newest mtime of the files.
    Raises RefusedFile: "absent" (no `used_CPU`: the pilot says nothing here), "locked" (held for more than 50 ms),
    "unfinished" (a writer is at its first report, or died), or a reason of `safe_open.read_file`.
    """
    with Held(open_file(dir_fd, SEAL.status_name)) as fd:
        # Kind and owner first: nothing is locked that is not the user's plain file.
        check_file(fd, dir_fd, uid, KEY_LIMIT)
        lock(fd, exclusive=False, timeout=LOCK_TIMEOUT, patience=patience)
        sealed = read_settled(fd, dir_fd, uid, KEY_LIMIT)
        if sealed is None or not is_at(fd, SEAL.status_name, dir_fd):
            raise RefusedFile("torn")
        if not sealed[0].strip():
            raise RefusedFile("unfinished")
        return _nine(dir_fd, uid, sealed, patience or Patience(LOCK_TIMEOUT))


def _nine(dir_fd: int, uid: int, sealed: tuple[bytes, int], patience: Patience) -> tuple[PilotReport, tuple[str, ...]]:
    heartbeat = sealed[1]
    values: dict[str, float | int | str | None] = {}
    rejected = []
    for row in ATTRIBUTES:
        try:
            # Opening and closing the seal a second time would drop its fcntl lock.
            text, mtime = sealed if row is SEAL else read_file(dir_fd, row.status_name, uid, _limit(row.kind), patience)
        except RefusedFile as refused:
            if refused.reason != "absent":
                rejected.append(row.status_name)
            continue
        heartbeat = max(heartbeat, mtime)
        value = READ[row.kind](text.strip())
        if value is None:
            rejected.append(row.status_name)
        else:
            values[row.field] = value
    return PilotReport.from_values(heartbeat, JOBSTATUS, values), tuple(rejected)


_WRITE_FLAGS = (OPEN & ~posix.O_ACCMODE) | posix.O_RDWR | posix.O_CREAT
_MODE = 0o644
_BLANK = b"\n" * KEY_LIMIT


def write_jobstatus(directory: int | str, report: PilotReport, timeout: float = 2.0) -> None:
    """Write the known values of `report` into `directory` (a descriptor or a path) under the exclusive lock.

    The files of unknown values are removed. timeout: s to wait for the lock. Sums are rounded to whole core-seconds,
    as the draft has them. Raises FeatureError; a reader finds the old report then, or none, never a mix.
    """
    if report.used_cpu is None:
        raise not_written(SEAL.status_name, "used_cpu is not known: state how many cores are in use")
    opened: list[tuple[int, bytes]] = []
    with JobDirectory(directory, SEAL.status_name) as dir_fd:
        try:
            seal = _open(dir_fd, SEAL.status_name)
            opened.append((seal, _text(CORES, report.used_cpu)))
            lock(seal, exclusive=True, timeout=timeout)
            if not is_at(seal, SEAL.status_name, dir_fd):
                raise RefusedFile("replaced while it was being locked")
            unknown = _open_others(dir_fd, report, opened)
            _overwrite(seal, _BLANK)
            for fd, content in opened[1:]:
                _overwrite(fd, content)
            for name in unknown:
                try:
                    posix.unlink(name, dir_fd=dir_fd)
                except FileNotFoundError:
                    continue
            _overwrite(*opened[0])
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
            fd = _open(dir_fd, row.status_name, _limit(row.kind))
            opened.append((fd, _text(row.kind, value)))
            if posix.fstat(fd).st_size == 0:
                posix.write(fd, b"\n")
    return unknown


def _limit(kind: str) -> int:
    return TEXT_LIMIT + 1 if kind == CURVE else KEY_LIMIT


def _open(dir_fd: int, name: str, limit: int = KEY_LIMIT) -> int:
    """Open the pilot's own small file, made if need be; the site can read it whatever the pilot's umask is."""
    fd = posix.open(name, _WRITE_FLAGS, _MODE, dir_fd=dir_fd)
    try:
        if check_file(fd, dir_fd, posix.geteuid(), limit).st_mode & 0o777 != _MODE:
            posix.fchmod(fd, _MODE)
    except (OSError, RefusedFile):
        posix.close(fd)
        raise
    return fd


def _overwrite(fd: int, content: bytes) -> None:
    """Write in place, so that the lock stays on the file; cut it afterwards, so that no partial value is ever left."""
    if posix.pwrite(fd, content, 0) != len(content):
        raise OSError(errno.ENOSPC, "not written in whole")
    posix.ftruncate(fd, len(content))


def _text(kind: str, value: float | str) -> bytes:
    if not isinstance(value, (bool, str)):
        value = decimal_text(value) if kind == CORES else round(value)
    return f"{value}\n".encode("ascii")

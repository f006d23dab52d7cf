"""`$JOBSTATUS`, read: nine files in a directory of the job's user, guarded by a lock on `used_CPU` (draft, section 3).

Values are absolute: cores and core-seconds. `used_CPU` is also the seal: our writer blanks it first and fills it last,
so that one killed in between leaves a directory that says nothing instead of a mix of old and new.
"""

from __future__ import annotations

import posix

from drainwise.errors import RefusedFile
from drainwise.pilotad.attributes import ATTRIBUTES, CORE_SECONDS, CORES, FLAG, JOBSTATUS, PRIORITY, TIME
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import check_file, open_file, read_file, read_settled
from drainwise.pilotad.status_lock import is_at, lock
from drainwise.pilotad.values import decimal, flag, priority, unix_time

KEY_LIMIT = 64
"""Bytes one of the nine files may hold."""
LOCK_TIMEOUT = 0.05
"""Seconds a reader tries to get the lock."""

SEAL = next(row for row in ATTRIBUTES if row.kind == CORES)
"""The row of `used_CPU`."""

_READ = {TIME: unix_time, PRIORITY: priority, FLAG: flag, CORES: decimal, CORE_SECONDS: decimal}


def read_jobstatus(dir_fd: int, uid: int, patience: Patience | None = None) -> tuple[PilotReport, tuple[str, ...]]:
    """The report in the directory `dir_fd`, and the file names whose content was not sound.

    uid: the owner every file must have. patience: what waiting may take in all (None: 50 ms for the lock).
    The heartbeat is the newest mtime of the nine.
    Raises RefusedFile: "absent" (no `used_CPU`: the pilot says nothing here), "locked" (held for more than 50 ms),
    "unfinished" (a writer is at its first report, or died), or a reason of `safe_open.read_file`.
    """
    fd = open_file(dir_fd, SEAL.status_name)
    try:
        # Kind and owner first: nothing is locked that is not the user's plain file.
        check_file(fd, dir_fd, uid, KEY_LIMIT)
        lock(fd, exclusive=False, timeout=LOCK_TIMEOUT, patience=patience)
        sealed = read_settled(fd, dir_fd, uid, KEY_LIMIT)
        if sealed is None or not is_at(fd, dir_fd, SEAL.status_name):
            raise RefusedFile("torn")
        if not sealed[0].strip():
            raise RefusedFile("unfinished")
        return _nine(dir_fd, uid, sealed, patience or Patience(LOCK_TIMEOUT))
    finally:
        posix.close(fd)


def _nine(dir_fd: int, uid: int, sealed: tuple[bytes, int], patience: Patience) -> tuple[PilotReport, tuple[str, ...]]:
    heartbeat = sealed[1]
    values: dict[str, float | int | None] = {}
    rejected = []
    for row in ATTRIBUTES:
        try:
            # Opening and closing the seal a second time would drop its fcntl lock.
            text, mtime = sealed if row is SEAL else read_file(dir_fd, row.status_name, uid, KEY_LIMIT, patience)
        except RefusedFile as refused:
            if refused.reason != "absent":
                rejected.append(row.status_name)
            continue
        heartbeat = max(heartbeat, mtime)
        value = _READ[row.kind](text.strip())
        if value is None:
            rejected.append(row.status_name)
        else:
            values[row.field] = value
    return PilotReport.from_values(heartbeat, JOBSTATUS, values), tuple(rejected)

"""The files of a lease: where they lie, which process keeps the lease, and how its job ended.

Below the lease's directory, `work/` is the job's own: its working directory with the features and `out` and `err`.
`lease/` holds the records of the lease supervisor. The job runs as the same user: it can kill its supervisor, or write
what it likes once that is dead. It cannot make another process be taken for its supervisor, or an outcome be believed
while its supervisor lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import struct
from dataclasses import dataclass

from drainwise.common.foreign_tree import remove_tree
from drainwise.common.local_file import OPEN, Held, read_small
from drainwise.facts.errors import FeatureError
from drainwise.local.lease.records import OUTCOME, RECORD, RECORDS, WORK
from drainwise.processes.process import Process, ancestors, birth_of, has_argument, is_alive

_OUTCOME_LIMIT = 4096  # bytes
_LATEST = 1e12  # UNIX s
_TAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FLOCK = "hhqqi"  # struct flock


@dataclass(frozen=True)
class LeaseOutcome:
    """The end of a job: with an exit code or by a signal, the other is None; `ended` is UNIX seconds.

    cpu_seconds: CPU time of all its processes; None when the supervisor did not say. What a parent that ignored SIGCHLD
    started is not in it: the kernel has forgotten that.
    """

    code: int | None
    signal: int | None
    ended: float
    cpu_seconds: float | None = None


def work_directory(directory: str) -> str:
    """Return where the job of the lease in `directory` works: its reports and site notices lie there."""
    return f"{directory.rstrip('/')}/{WORK}"


def records_directory(directory: str) -> str:
    """Return where the supervisor of the lease in `directory` has its records."""
    return f"{directory.rstrip('/')}/{RECORDS}"


def remove_lease(directory: str) -> None:
    """Remove a lease that has ended, also where the job took the right to look into a directory from its user."""
    with contextlib.suppress(OSError, FeatureError):  # what resists stays
        remove_tree(directory, math.inf)


def find_lease(directory: str) -> Process | None:
    """Find the supervisor of the lease in `directory`, whoever started it; None when there is none (any more).

    The kernel says which process holds the lock on the supervisor's record, so that a record that the job has changed
    names no other process. If the job made a record of its own and locked that, its supervisor is found above it.
    """
    directory = os.path.abspath(directory)
    try:
        record = os.open(f"{records_directory(directory)}/{RECORD}", OPEN)
    except OSError:
        return None
    with Held(record):
        holder = _lock_holder(record)
    supervisors = [pid for pid in (holder, *ancestors(holder)) if has_argument(pid, os.fsencode(directory))]
    birth = birth_of(supervisors[-1]) if holder > 0 and supervisors else None
    return None if birth is None else Process(supervisors[-1], birth)


def is_supervisor(process: Process, directory: str) -> bool:
    """Return whether this very process lives and keeps the lease: after a reboot its pid may be another's."""
    return is_alive(process) and has_argument(process.pid, os.fsencode(os.path.abspath(directory)))


def abandon(directory: str) -> bool:
    """Make sure that nothing ever starts in `directory`; False when a supervisor was there first.

    For a start of which it is not known how far it came: a supervisor that comes late finds its place taken and ends.
    Raises OSError when the place cannot be taken.
    """
    for path in (directory, records_directory(directory)):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    try:
        os.close(os.open(f"{records_directory(directory)}/{RECORD}", _TAKE, 0o600))
    except FileExistsError:
        return False
    return True


def outcome_of(directory: str, process: Process | None = None) -> LeaseOutcome | None:
    """Return how the job ended; None while the lease is not empty, and when its supervisor vanished first.

    process: the supervisor, where it is known; it is asked for even if the job removed the record that names it.
    """
    if find_lease(directory) is not None or (process is not None and is_alive(process)):
        return None
    try:
        found = read_small(f"{records_directory(directory)}/{OUTCOME}", _OUTCOME_LIMIT)
        return None if found is None else _outcome_in(found[0])
    except FeatureError:
        return None


def _lock_holder(record: int) -> int:
    """Return the pid of the process that holds a lock on an open file; 0 when none does."""
    found = fcntl.fcntl(record, fcntl.F_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    kind, _, _, _, pid = struct.unpack(_FLOCK, found)
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def _outcome_in(content: bytes) -> LeaseOutcome | None:
    """Parse the outcome that a supervisor recorded; None for anything that it does not write."""
    try:
        said = json.loads(content)
        code, by_signal, ended, cpu = said["code"], said["signal"], said["ended"], said.get("cpu")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    numbers = [value for value in (code, by_signal) if value is not None]
    if len(numbers) != 1 or type(numbers[0]) is not int or not 0 <= numbers[0] <= 255 or not _is_time(ended):
        return None
    return LeaseOutcome(code, by_signal, float(ended), float(cpu) if _is_time(cpu) else None)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LATEST

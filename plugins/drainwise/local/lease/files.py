"""A lease from outside: its files, which process keeps it, how its job ended; asked to end, or killed as a whole.

Below the lease's directory, `work/` is the job's own: its working directory with the features and `out` and `err`.
`lease/` holds the records of the lease supervisor. The job runs as the same user: it can kill its supervisor, or write
what it likes once that is dead. It cannot make another process be taken for its supervisor, or an outcome be believed
while its supervisor lives. Whoever kills a lease kills all of it, wherever its processes hid, and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import signal
import struct
import time
from dataclasses import dataclass

from drainwise.common.foreign_tree import remove_tree
from drainwise.common.local_file import OPEN, Held, read_small
from drainwise.facts.errors import FeatureError
from drainwise.local.lease.records import OUTCOME, RECORD, RECORDS, WORK
from drainwise.local.lease.supervisor import KILL_ALL
from drainwise.processes.process import (
    Process,
    ancestors,
    birth_of,
    descendants,
    each_bearer,
    has_argument,
    is_alive,
    send,
    send_with_group,
)

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


MARK = "DRAINWISE_LEASE"
"""The variable in the environment of a lease's processes: its directory, in case its lease supervisor was killed."""

_PAUSE = 0.005
_QUIET_LOOKS = 2  # that find nothing: a process that just becomes another program shows no environment
_POLITE_SHARE = 0.5  # of the time for a kill is left to the supervisor before others do its work


def terminate(process: Process, directory: str) -> bool:
    """Ask the job to end: SIGTERM to its main process, through the supervisor, which kills the lease after `kill_wait`.

    False when this process is not (any more) the supervisor of the lease in `directory`; then nothing was done.
    """
    return _ask(process, directory, signal.SIGTERM)


def kill(process: Process | None, directory: str, wait: float = 1.0) -> bool:
    """End everything in the lease; True when all of it is known to be gone.

    process: the supervisor, or None where it is not known; it does the work. When it does not in half of the time (the
    job may have stopped it), or is dead, this process does: it kills what lies below the supervisor, and what carries
    the lease's mark in its environment. wait: seconds; 0 only asks the supervisor and returns at once.
    """
    directory = os.path.abspath(directory)
    ends = time.monotonic() + wait
    asked = process is not None and _ask(process, directory, KILL_ALL)
    if wait <= 0:
        return outcome_of(directory, process) is not None
    if asked and process is not None and _gone(process, wait * _POLITE_SHARE) and outcome_of(directory) is not None:
        return True
    quiet = 0
    while quiet < _QUIET_LOOKS:
        quiet = 0 if _kill_from_outside(process, directory) else quiet + 1
        if quiet == 0 and time.monotonic() > ends:
            return _kill_supervisor(process, directory)
        if quiet < _QUIET_LOOKS:
            time.sleep(_PAUSE)
    return True


def _ask(process: Process, directory: str, number: int) -> bool:
    """Send a signal to the supervisor, and wake it should somebody have stopped it."""
    if not is_supervisor(process, directory):
        return False
    asked = send(process, number)
    send(process, signal.SIGCONT)
    return asked


def _gone(process: Process, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > ends:
            return False
        time.sleep(_PAUSE)
    return True


def _kill_from_outside(process: Process | None, directory: str) -> bool:
    """Kill once what is found of the lease; True when anything was."""
    if process is not None and is_supervisor(process, directory):
        for member in descendants(process.pid):
            send_with_group(member, signal.SIGKILL)
        send(process, signal.SIGCONT)
        return True
    found = False
    for member in each_bearer(MARK, os.fsencode(directory).__eq__):
        found = True
        send_with_group(member, signal.SIGSTOP)  # so that its descendants can be found at leisure
        for below in descendants(member.pid):
            send_with_group(below, signal.SIGKILL)
        send_with_group(member, signal.SIGKILL)
    return found


def _kill_supervisor(process: Process | None, directory: str) -> bool:
    """Kill a supervisor that has nothing left to keep and does not go; whether that was all that was left."""
    if process is None or not is_supervisor(process, directory) or descendants(process.pid):
        return False
    send(process, signal.SIGKILL)
    return _gone(process, _PAUSE) and not _kill_from_outside(process, directory)

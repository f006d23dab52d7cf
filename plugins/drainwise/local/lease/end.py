"""Ends a lease: asks its job, or kills all of it, wherever its processes hid; nothing else is ever touched."""

from __future__ import annotations

import os
import signal
import time

from drainwise.local.lease.files import is_supervisor, outcome_of
from drainwise.local.lease.supervisor import KILL_ALL
from drainwise.processes.process import Process, descendants, each_bearer, is_alive, send, send_with_group

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

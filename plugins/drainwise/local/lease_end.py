"""Ending a lease: asking its job, or killing all of it, wherever its processes hid; nothing else is ever touched."""

from __future__ import annotations

import os
import signal
import time

from drainwise.local import processes
from drainwise.local.keeper import KILL_ALL
from drainwise.local.lease_files import outcome_of
from drainwise.local.processes import Process, is_alive

MARK = "DRAINWISE_LEASE"
"""The variable by which the processes of a lease are known even when its keeper was killed: the lease's directory."""

_PAUSE = 0.005
_QUIET_LOOKS = 2  # that find nothing: a process that just becomes another program shows no environment
_POLITE_SHARE = 0.5  # of the time for a kill is left to the keeper before others do its work


def terminate(process: Process, directory: str) -> bool:
    """Ask the job to end: SIGTERM to its main process, through the keeper, which kills the lease after `kill_wait`.

    False when this process is not (any more) the keeper of the lease in `directory`; then nothing was done.
    """
    return _ask(process, directory, signal.SIGTERM)


def kill(process: Process | None, directory: str, wait: float = 1.0) -> bool:
    """End everything in the lease; True when all of it is known to be gone.

    process: the keeper, or None where it is not known. wait: seconds; 0 only asks the keeper and returns at once. The
    keeper does the work. When it does not in half of the time (the job may have stopped it), or is dead, it is done
    from here: what lies below the keeper, and what bears the lease's mark in its environment. Nothing else is touched.
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
            return _kill_keeper(process, directory)
        if quiet < _QUIET_LOOKS:
            time.sleep(_PAUSE)
    return True


def _ask(process: Process, directory: str, number: int) -> bool:
    """Send a signal to the keeper, and wake it should somebody have stopped it."""
    if not _keeps(process, directory):
        return False
    asked = processes.send(process, number)
    processes.send(process, signal.SIGCONT)
    return asked


def _keeps(process: Process, directory: str) -> bool:
    """Whether this very process lives and is the keeper of this directory: after a reboot it could be a stranger."""
    return is_alive(process) and processes.has_argument(process.pid, os.fsencode(os.path.abspath(directory)))


def _gone(process: Process, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > ends:
            return False
        time.sleep(_PAUSE)
    return True


def _kill_from_outside(process: Process | None, directory: str) -> bool:
    """Kill once what is found of the lease; True when anything was."""
    if process is not None and _keeps(process, directory):
        for member in processes.descendants(process.pid):
            _send_with_group(member, signal.SIGKILL)
        processes.send(process, signal.SIGCONT)
        return True
    found = False
    for member in processes.each_bearer(f"{MARK}={directory}".encode("utf-8", "surrogateescape")):
        found = True
        _send_with_group(member, signal.SIGSTOP)  # so that its descendants can be found at leisure
        for below in processes.descendants(member.pid):
            _send_with_group(below, signal.SIGKILL)
        _send_with_group(member, signal.SIGKILL)
    return found


def _send_with_group(member: Process, number: int) -> None:
    processes.send_to_group(member, number)
    processes.send(member, number)


def _kill_keeper(process: Process | None, directory: str) -> bool:
    """The last resort: a keeper that has nothing left to keep and does not go. Whether that was all that was left."""
    if process is None or not _keeps(process, directory) or processes.descendants(process.pid):
        return False
    processes.send(process, signal.SIGKILL)
    return _gone(process, _PAUSE) and not _kill_from_outside(process, directory)

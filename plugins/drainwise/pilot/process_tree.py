"""Processes below this one, as the kernel tells: who they are, and an end for those that escaped their payload's group.

A payload may start what leaves its process group (a daemon). The pilot asks the kernel to hand such orphans to it
instead of to init, so that it sees them and ends them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE = 0.01


def _prctl() -> Callable[[int, int], int]:
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    return lambda option, value: int(call(option, value, 0, 0, 0))


prctl = _prctl()


def adopt_orphans() -> bool:
    """Make this process the parent of orphans below it; whether the kernel agreed."""
    return prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def die_with_parent() -> None:
    """In a child before exec: a pilot that is killed takes the payload's main process with it."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def children(pid: int | None = None) -> list[int]:
    """The pids whose parent is `pid` (None: this process)."""
    own = os.getpid() if pid is None else pid
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as stream:
            return [int(word) for word in stream.read().split()]
    except OSError:
        return [other for other in _all_pids() if _parent(other) == own]


def _all_pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The command's name may hold blanks and parentheses: what follows its last one is ours.
            return int(stream.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def environment_of(pid: int) -> dict[bytes, bytes]:
    """The variables a process was started with; empty where they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            content = stream.read(1 << 20)
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    return {name: value for name, _, value in pairs}


def kill_group(group: int, number: int) -> bool:
    """Send signal `number` to a process group; whether anybody of it was there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_all_below(seconds: float) -> list[int]:
    """Kill every process below this one within `seconds`; those that are left (the kernel does not let go of them)."""
    deadline = time.monotonic() + seconds
    while True:
        left = children()
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        # Whoever lost its parent just now is our child in the next round.
        if not children() or time.monotonic() >= deadline:
            return children()
        time.sleep(_PAUSE)

"""Processes that have left their job, known by the tag in their environment, whoever their parent is by now."""

from __future__ import annotations

import os
import signal
from collections.abc import Container
from contextlib import suppress

TAG = "DRAINWISE_LAUNCH_TAG"
"""The variable of a job's process that holds its tag."""

_ROUNDS, _SURE = 10, 2
"""Looks at most, and in a row that find none: a process that just executes another program has no environment."""


def end_strays(state: str, spared: Container[str] = ()) -> int:
    """Kill every process of this user whose tag is of this launch, and what they start meanwhile; how many there were.

    state: what all tags of the launch begin with, before a `-`; never empty, which would be every launch's.
    spared: tags of jobs that still run. What has thrown away its environment is not found.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _end(pid, f"{state}-", spared)]
        if not found:
            break
        ended.update(found)
    return len(ended)


def _end(pid: int, begin: str, spared: Container[str]) -> bool:
    if pid == os.getpid() or not _is_stray(pid, begin, spared):
        return False
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # no such call here: a moment remains in which the pid may become another's
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        return True
    try:
        if not _is_stray(pid, begin, spared):  # asked again now that nobody else can get this pid
            return False
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
    return True


def _is_stray(pid: int, begin: str, spared: Container[str]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as stream:
            content = b"\0" + stream.read()  # all of it: a job may have a megabyte of variables before this one
    except OSError:
        return False
    _, found, rest = content.partition(b"\0" + TAG.encode() + b"=")
    tag = rest.partition(b"\0")[0].decode("ascii", "replace")
    return bool(found) and tag.startswith(begin) and tag not in spared

"""Processes that a launcher left behind, known by the tag in their environment, whoever their parent is by now."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

TAG = "DRAINWISE_LAUNCH_TAG"
"""The variable of a job's process that holds its tag."""

_ROUNDS = 10


def end_strays(begin: str) -> int:
    """Kill every process of this user whose tag begins so, and what they start meanwhile; how many there were.

    What has thrown away its environment is not found.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _end(pid, begin)]
        if not found:
            break
        ended.update(found)
    return len(ended)


def _end(pid: int, begin: str) -> bool:
    if pid == os.getpid() or not _is_tagged(pid, begin):
        return False
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if not _is_tagged(pid, begin):  # asked again now that nobody else can get this pid
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
        return True
    return False


def _is_tagged(pid: int, begin: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            content = stream.read(1 << 20)
    except OSError:
        return False
    wanted = f"{TAG}={begin}".encode()
    return content.startswith(wanted) or b"\0" + wanted in content

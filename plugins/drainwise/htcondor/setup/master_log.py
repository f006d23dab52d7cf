"""Count how often condor_master saw the agent end, by its log: one that dies at each start looks alive in between."""

from __future__ import annotations

import os
import re
import time

_ENDED = re.compile(
    r"^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) The DRAINWISE_AGENT \(pid \d+\) (?:exited|died|was)[^\d]*(\d+)", re.MULTILINE
)
_TAIL = 1 << 20
_NAME = "DRAINWISE_AGENT"


def is_below_master(daemon_list: str) -> bool:
    """Decide whether condor_master keeps the agent, by the value of DAEMON_LIST."""
    return _NAME in re.split(r"[\s,]+", daemon_list.upper())


def endings_in(log: str, since: float) -> list[str]:
    """List the agent's ends after `since` (UNIX s) in the text of a MasterLog, as the code or signal of each."""
    return [status for when, status in _ENDED.findall(log) if _moment(when) > since]


def tail_of(path: str) -> str:
    """Read the end of a log; "" where there is none or it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _moment(written: str) -> float:
    """Read a daemon's time stamp, which is local time."""
    try:
        return time.mktime(time.strptime(written, "%m/%d/%y %H:%M:%S"))
    except (ValueError, OverflowError):
        return 0.0

"""A job's nice value for the date at which it should start. Pure. Source: SPEC §5 (open-lmake's use_nice).

The sooner a job should start, the smaller its nice value, in this launcher's jobs and in those of all others that
count from the same origin. Slurm takes the nice value off the job's priority and stops at 1: only where the priorities
(PriorityWeight…) are larger than the nice values does it change the order. A site sets `time_origin` and `nice_factor`
in PriorityParameters so that they are.
"""

from __future__ import annotations

import calendar
import math
import re
import time
from dataclasses import dataclass

WRAP = 1 << 31
LARGEST = WRAP - 3
"""The largest nice value that Slurm takes."""
DEFAULT_ORIGIN = "2023-01-01 00:00:00"

_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?(?: ?([+-])([0-9]{2}):([0-9]{2}))?"
)
_LINE = re.compile(r"^PriorityParameters\s*=\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class NiceScale:
    """Where nice values count from (UNIX s), and how much they grow each second."""

    origin: float
    factor: float = 1.0

    def nice(self, priority: float) -> int:
        """The nice value of a job that should start at `priority` (UNIX s)."""
        return min(LARGEST, int((priority - self.origin) * self.factor) % WRAP)


def nice_scale(configuration: str) -> NiceScale:
    """The scale that PriorityParameters in the output of `scontrol show config` sets; what is no date or no number
    there is passed over, as Slurm does with the words it does not know."""
    line = _LINE.search(configuration)
    words = dict(word.strip().partition("=")[::2] for word in line[1].split(",")) if line else {}
    origin = unix_time(words.get("time_origin", ""))
    if origin is None:
        origin = unix_time(DEFAULT_ORIGIN) or 0.0
    try:
        factor = float(words.get("nice_factor", "1"))
    except ValueError:
        factor = 1.0
    return NiceScale(origin, factor if math.isfinite(factor) and factor > 0 else 1.0)


def unix_time(text: str) -> float | None:
    """`YYYY-MM-DD HH:MM[:SS][ +HH:MM]` as UNIX s, in local time where no zone is named; None for another text."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute = (int(word) for word in match.groups()[:5])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60):
        return None
    moment = (year, month, day, hour, minute, int(match[6] or 0), 0, 0, -1)
    if match[7] is None:
        return time.mktime(moment)
    ahead = (int(match[8]) * 60 + int(match[9])) * 60
    return calendar.timegm(moment) - (ahead if match[7] == "+" else -ahead)

"""A job's nice value for the date at which it should start. Pure. Source: SPEC §5 (open-lmake's use_nice).

The sooner a job should start, the smaller its nice value, in this launcher's jobs and in those of all others that
count from the same origin. Slurm takes the nice value off the job's priority and stops at 1: only where the priorities
(PriorityWeight…) are larger than the nice values does it change the order. A site sets `time_origin` and `nice_factor`
in PriorityParameters so that they are.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime

from drainwise.slurm.jobs.commands import settings_in

WRAP = 1 << 31
LARGEST = WRAP - 3
"""The largest nice value that Slurm takes."""
DEFAULT_ORIGIN = "2023-01-01 00:00:00"

_BEFORE_ZONE = re.compile(r" (?=[+-])")


@dataclass(frozen=True)
class NiceScale:
    """The origin of nice values (UNIX s), and how much they grow each second."""

    origin: float
    factor: float = 1.0

    def nice(self, priority: float) -> int:
        """Return the nice value of a job that should start at `priority` (UNIX s)."""
        steps = (priority - self.origin) * self.factor
        return min(LARGEST, int(steps) % WRAP) if math.isfinite(steps) else LARGEST


def nice_scale(configuration: str) -> NiceScale:
    """Read the scale in the PriorityParameters of `scontrol show config`.

    As Slurm does, pass over what is no date or no number there, and words that are not known.
    """
    parameters = settings_in(configuration).get("priorityparameters", "")
    words = dict(word.strip().partition("=")[::2] for word in parameters.split(","))
    origin = unix_time(words.get("time_origin", ""))
    if origin is None:
        origin = unix_time(DEFAULT_ORIGIN) or 0.0
    try:
        factor = float(words.get("nice_factor", "1"))
    except ValueError:
        factor = 1.0
    return NiceScale(origin, factor if math.isfinite(factor) and factor > 0 else 1.0)


def unix_time(text: str) -> float | None:
    """Read `YYYY-MM-DD HH:MM[:SS][ +HH:MM]` as UNIX s, in local time where no zone is named; None for another text."""
    try:
        return datetime.fromisoformat(_BEFORE_ZONE.sub("", text.strip())).timestamp()
    except (ValueError, OverflowError):
        return None

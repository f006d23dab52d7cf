"""How long a job is expected to take (ETE): its last success, else what others of its rule took.

Source: SPEC §5; open-lmake: "a moving average of the execution times of the jobs sharing the same rule".
"""

from __future__ import annotations

WEIGHT = 100
"""The average is of all up to so many; from then on each new time moves it by a 101st of the difference."""
UNKNOWN = 1.0
"""Seconds of what nobody knows anything of: all such are alike, and the longest chain is that of most jobs."""
SHORTEST = 0.001
"""Seconds that anything takes at least, so that who stands before another always has the higher pressure."""


class MovingAverage:
    """The average of a rule's times in seconds; `weight`: of how many, WEIGHT at most."""

    __slots__ = ("seconds", "weight")

    def __init__(self, seconds: float = 0.0, weight: int = 0) -> None:
        self.seconds, self.weight = seconds, weight

    def add(self, seconds: float) -> None:
        """One more has succeeded, after so long."""
        self.seconds += (seconds - self.seconds) / (self.weight + 1)
        self.weight = min(self.weight + 1, WEIGHT)


def expected_time(last_success: float | None, rule: MovingAverage | None, stated: float | None) -> float:
    """ETE in seconds: the last success, else the rule's average, else what the job's author stated, else UNKNOWN."""
    if last_success is not None:
        seconds = last_success
    elif rule is not None and rule.weight:
        seconds = rule.seconds
    else:
        seconds = UNKNOWN if stated is None else stated
    return max(seconds, SHORTEST)

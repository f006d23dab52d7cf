"""When the next cycle begins: each period, and later and later while the batch system does not answer. Pure."""

from __future__ import annotations

_LEAST_REST = 0.1  # of the period, also when a cycle took longer than that
_MOST_DOUBLINGS = 30


def rest(period: float, longest_pause: float, failures: int, seconds: float) -> float:
    """Seconds from the end of a cycle, which took `seconds`, to the next.

    failures: how many cycles in a row have failed, this one included. Without one, the next begins a `period` after
    this one did. After the first the pause is a period, and it doubles with each further one, up to `longest_pause`.
    """
    if failures:
        return min(period * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), max(longest_pause, period))
    return max(period - seconds, period * _LEAST_REST)

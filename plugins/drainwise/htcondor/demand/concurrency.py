"""Concurrency limits: how many more jobs the negotiator may start of those that share a limit of the pool.

A job names limits and how much of each it takes (`ConcurrencyLimits = "db:2, sw.license"`). The negotiator's
configuration has the largest sum of each (`DB_LIMIT`), and each slot shows what its job takes. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?", re.ASCII)
_DEFAULT = "CONCURRENCY_LIMIT_DEFAULT"
_LONGEST = 4096  # characters of an attribute
_ROUNDING = 1e-6


def limits_taken(value: object) -> dict[str, float]:
    """Return what a job takes of each limit, by its name in lower case; value: of ConcurrencyLimits.

    An amount that is none or not positive is 1, as the negotiator reads it.
    """
    taken: dict[str, float] = {}
    for word in re.split(r"[\s,]+", value[:_LONGEST].lower()) if isinstance(value, str) else ():
        name, _, amount = word.partition(":")
        if _NAME.fullmatch(name):
            number = _number(amount)
            taken[name] = number if number is not None and number > 0 else 1.0
    return taken


def largest_sum(name: str, knob: Callable[[str], str | None]) -> float:
    """Return the largest sum of a limit by the negotiator's configuration; endless where it has none that is a number.

    knob: the value of a knob, None where it is not set. A limit `a.b` without a knob of its own has that of its group,
    CONCURRENCY_LIMIT_DEFAULT_A.
    """
    group = name.rpartition(".")[0]
    for one in (f"{name}_LIMIT", *((f"{_DEFAULT}_{group}",) if group else ()), _DEFAULT):
        number = _number(knob(one) or "")
        if number is not None:
            return number
    return math.inf


def jobs_within(jobs: int, taken: Mapping[str, float], left: Mapping[str, float]) -> tuple[int, str]:
    """Return how many of some like jobs the limits let start, and the limit that lets the fewest start, or "".

    taken: what each of them takes; left: what is left of each limit, endless where it is not there.
    """
    most, which = jobs, ""
    for name, amount in taken.items():
        room = left.get(name, math.inf)
        if room < amount * most - _ROUNDING:
            most, which = max(0, math.floor(room / amount + _ROUNDING)), name
    return most, which


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

"""One event of the journal as plain values, its kinds, and typed values out of it.

What is missing or of another kind is a ValueError that names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

Event = Mapping[str, object]

VERSION = 1

DECISION, ORDER, CANCEL, TENDED, ENDED, STATE = "decision", "order", "cancel", "tended", "ended", "state"
DEMAND = "demand"
DONE, SKIPPED, FAILED = "done", "skipped", "failed"
"""What became of an order or a cancel."""


def text(event: Event, name: str) -> str:
    """A text."""
    value = event.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text")
    return value


def number(event: Event, name: str) -> float:
    """A finite number."""
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name}: expected a number")
    return value


def whole(event: Event, name: str) -> int:
    """A whole number that a clock or an array can hold."""
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 62:
        raise ValueError(f"{name}: expected a whole number")
    return value


def truth(event: Event, name: str) -> bool:
    """True or false."""
    value = event.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false")
    return value


def objects(event: Event, name: str) -> list[dict[str, object]]:
    """A list of objects."""
    value = event.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{name}: expected a list of objects")
    return cast("list[dict[str, object]]", value)


def texts(event: Event, name: str) -> list[str]:
    """A list of texts."""
    value: Any = event.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name}: expected a list of texts")
    return value

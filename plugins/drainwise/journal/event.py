"""One event of the journal as plain values, its kinds, and typed values out of it.

What is missing or of another kind is a ValueError that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Event = Mapping[str, object]

VERSION = 2

DECISION, ORDER, WITHDRAWAL, FOLLOWUP, ENDED, STATE = "decision", "order", "withdrawal", "followup", "ended", "state"
DEMAND = "demand"
UNTAKEN = "untaken"
NEED = "need"
PAYLOADS = "payloads"
PILOTS = "pilots"
PART = "part"
RETURNED = "returned"
OK, DRY_RUN, PAUSED, BACKING_OFF = "ok", "dry run", "paused by kill switch", "backing off"
"""The states of the agent."""
DONE, SKIPPED, REFUSED = "done", "skipped", "refused"
"""What became of an order or a withdrawal: taken; its reason had gone; the batch system refuses it for this run."""
DENIED, UNREACHABLE, UNANSWERED = "denied", "unreachable", "unanswered"
"""No fault of the run: whoever gives orders is refused; nothing could be sent; it was sent and nobody answered."""
NOT_DONE = "not done"
"""An order that was not answered and, by what the batch system has shown since, was not carried out."""
FAILED = "failed"
"""Of older journals: any of these but the first two."""


def text(event: Event, name: str) -> str:
    """Return a text."""
    value = event.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a text")
    return value


_LARGEST = 1 << 62  # that arrays hold
_LATEST = 253_402_300_799  # the end of the year 9999, the last that has a date


def number(event: Event, name: str) -> float:
    """Return a number that can be an amount."""
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST < value < _LARGEST:
        raise ValueError(f"{name}: expected a number")
    return value


def whole(event: Event, name: str) -> int:
    """Return a whole number that an array can hold."""
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST < value < _LARGEST:
        raise ValueError(f"{name}: expected a whole number")
    return value


def moment(event: Event, name: str) -> int:
    """Return a UNIX time in s that has a date."""
    value = whole(event, name)
    if not 0 <= value <= _LATEST:
        raise ValueError(f"{name}: expected a UNIX time in s")
    return value


def truth(event: Event, name: str) -> bool:
    """Return True or False."""
    value = event.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false")
    return value


def objects(event: Event, name: str) -> list[dict[str, object]]:
    """Return a list of objects."""
    value = event.get(name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{name}: expected a list of objects")
    return cast("list[dict[str, object]]", value)


def texts(event: Event, name: str) -> list[str]:
    """Return a list of texts."""
    value: Any = event.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name}: expected a list of texts")
    return value

"""One event of the journal as plain values, its kinds, and typed values out of it.

What is missing or of another kind is a ValueError that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast

Event = Mapping[str, object]

VERSION = 2


class Kind:
    """The kinds of events."""

    DECISION, ORDER, WITHDRAWAL, PART, FOLLOWUP = "decision", "order", "withdrawal", "part", "followup"
    ENDED, STATE, DEMAND, UNTAKEN, NEED = "ended", "state", "demand", "untaken", "need"
    PAYLOADS, PILOTS, RETURNED = "payloads", "pilots", "returned"


class State:
    """The states of the agent."""

    OK, DRY_RUN, PAUSED, BACKING_OFF = "ok", "dry run", "paused by kill switch", "backing off"


class Outcome:
    """What became of an order, a withdrawal or a wish.

    DONE: taken. SKIPPED: its reason had gone. REFUSED: the batch system refuses it for this run. No fault of the run
    are DENIED: whoever gives orders is refused; UNREACHABLE: nothing could be sent; UNANSWERED: it was sent and nobody
    answered. NOT_DONE: it was not answered and, by what the batch system has shown since, not carried out. FAILED: of
    older journals, any of these but the first two.
    """

    DONE, SKIPPED, REFUSED, DENIED = "done", "skipped", "refused", "denied"
    UNREACHABLE, UNANSWERED, NOT_DONE, FAILED = "unreachable", "unanswered", "not done", "failed"


_LARGEST = 1 << 62  # that arrays hold
_LATEST = 253_402_300_799  # the end of the year 9999, the last that has a date


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST


def _all_are(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


_SORTS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda value: isinstance(value, str)),
    "float": ("a number", _is_amount),
    "int": ("a whole number", lambda value: isinstance(value, int) and _is_amount(value)),
    "moment": ("a UNIX time in s", lambda value: type(value) is int and 0 <= value <= _LATEST),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "objects": ("a list of objects", lambda value: _all_are(dict, value)),
    "tuple[str, ...]": ("a list of texts", lambda value: _all_are(str, value)),
}
"""By sort of value, as fields of facts name it: what is expected, and what is one."""
_MOMENTS = {"started", "deadline", "ended"}


def _value(event: Event, name: str, sort: str) -> Any:
    value = event.get(name)
    expected, is_right = _SORTS[sort]
    if not is_right(value):
        raise ValueError(f"{name}: expected {expected}")
    return value


def text(event: Event, name: str) -> str:
    """Return a text."""
    return cast("str", _value(event, name, "str"))


def number(event: Event, name: str) -> float:
    """Return a number that can be an amount."""
    return cast("float", _value(event, name, "float"))


def whole(event: Event, name: str) -> int:
    """Return a whole number that an array can hold."""
    return cast("int", _value(event, name, "int"))


def moment(event: Event, name: str) -> int:
    """Return a UNIX time in s that has a date."""
    return cast("int", _value(event, name, "moment"))


def truth(event: Event, name: str) -> bool:
    """Return True or False."""
    return cast("bool", _value(event, name, "bool"))


def objects(event: Event, name: str) -> list[dict[str, object]]:
    """Return a list of objects."""
    return cast("list[dict[str, object]]", _value(event, name, "objects"))


def texts(event: Event, name: str) -> list[str]:
    """Return a list of texts."""
    return cast("list[str]", _value(event, name, "tuple[str, ...]"))


def values_in(event: Event, fact: type[Any], *names: str) -> dict[str, Any]:
    """Return the values of fields of a fact, a dataclass, that an event has under the same names, by name."""
    sorts = {field.name: str(field.type) for field in fields(fact)}
    return {name: _value(event, name, "moment" if name in _MOMENTS else sorts[name]) for name in names}

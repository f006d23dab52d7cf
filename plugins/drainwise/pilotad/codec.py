"""A pilot's report between programs: which foreign values are believed, and plain values for JSON without loss.

Foreign values come in a slot's ad or in a job's AdminComment. Plain values go from a child to its parent, into the
local batch system's store and into a snapshot.
"""

from __future__ import annotations

from drainwise.pilotad.attributes import ATTRIBUTES, CORE_SECONDS, CORES, COUNT, CURVE, FLAG, PRIORITY, TIME
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import COUNT_LIMIT, EARLIEST, LATEST, PRIORITY_LIMIT
from drainwise.pilotad.waste_curve import sound_curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

LARGEST = 1e15
"""Core-seconds that are believed; a pool of a million cores makes them in thirty years."""
_LARGEST_PLAIN = 1e30  # more than a file of a pilot can state

# Kinds are compared exactly: a bool is no number here, nor is the bindings' Undefined, which is a kind of int.


def unix_time(value: object) -> int | None:
    """Return a UNIX time in s of this century, None for anything else."""
    return value if type(value) is int and EARLIEST <= value <= LATEST else None


def _amount(value: object) -> float | None:
    return value if (type(value) is float or type(value) is int) and 0 <= value <= LARGEST else None


def _flag(value: object) -> bool | None:
    return value if type(value) is bool else None


def _priority(value: object) -> int | None:
    return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT - 1, value)) if type(value) is int else None


def _count(value: object) -> int | None:
    return min(value, COUNT_LIMIT) if type(value) is int and value >= 0 else None


BELIEVED: dict[str, Callable[[object], float | str | None]] = {
    TIME: unix_time,
    CORES: _amount,
    CORE_SECONDS: _amount,
    FLAG: _flag,
    PRIORITY: _priority,
    CURVE: sound_curve,
    COUNT: _count,
}
"""For each kind, what returns a foreign value of that kind and its range, and None for any other."""

_PLAIN = {
    TIME: "int?",
    CORES: "number?",
    CORE_SECONDS: "number?",
    FLAG: "bool?",
    PRIORITY: "int?",
    CURVE: "text?",
    COUNT: "int?",
}
_KINDS = {"heartbeat": "int", "source": "text", **{row.field: _PLAIN[row.kind] for row in ATTRIBUTES}}
PLAIN_KINDS: Mapping[str, str] = {field: _KINDS[field] for field in PilotReport.__match_args__}
"""The kind of each field as a plain value; `?`: or None."""
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "number": (int, float), "bool": (bool,), "text": (str,)}
_TYPES_OF = {
    field: _TYPES[kind.rstrip("?")] + ((type(None),) if kind[-1] == "?" else ()) for field, kind in PLAIN_KINDS.items()
}

_CURVES = [PilotReport.__match_args__.index(row.field) for row in ATTRIBUTES if row.kind == CURVE]
"""The places of curves among the fields."""


def as_plain(report: PilotReport) -> dict[str, object]:
    """Return all fields of a report by name."""
    return {field: getattr(report, field) for field in PLAIN_KINDS}


def from_plain(values: Mapping[str, Any]) -> PilotReport:
    """Return the report that `as_plain` wrote. Raises ValueError for what it cannot have written."""
    found: list[Any] = [*map(values.get, PLAIN_KINDS)]
    for (field, types), value in zip(_TYPES_OF.items(), found):
        kind = type(value)
        if kind not in types or ((kind is int or kind is float) and not -_LARGEST_PLAIN < value < _LARGEST_PLAIN):
            raise ValueError(f"no report: {field} is no {PLAIN_KINDS[field]}")
    return from_checked(found)


def from_checked(values: Sequence[Any]) -> PilotReport:
    """Return the report of values that have the kinds of PLAIN_KINDS, in its order. Raises ValueError for no curve."""
    for place in _CURVES:
        if values[place] is not None and sound_curve(values[place]) is None:
            raise ValueError(f"no report: {PilotReport.__match_args__[place]} is no curve")
    return PilotReport(*values)

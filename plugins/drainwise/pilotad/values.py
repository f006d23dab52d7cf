"""One value by its kind: what is believed of a foreign value, and its text in a file: strict, ASCII only, ranged.

Foreign values come in a slot's ad or in a job's AdminComment. What does not fit is None (unknown).

The tenth, optional attribute of a report is a curve: what ending the pilot should waste at up to five future times.

    EXP_WASTE_CURVE = 1795250800:5400:60000,1795252600:7200:41000

Each point is a UNIX time in s, the core-seconds that should idle until then if the pilot starts nothing more from its
report on, and those that should be lost when it is ended then: both expectations over when its payloads may end. Times
rise, and what idles never falls. The text is made of digits and marks alone, so it goes as it is into a ClassAd string
and a line of JSON.
"""

from __future__ import annotations

from drainwise.pilotad.attributes import CORE_SECONDS, CORES, COUNT, CURVE, FLAG, PRIORITY, TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    CurvePoint = tuple[int, int, int]
    """UNIX s, idle core-seconds, lost core-seconds."""

EARLIEST = 946684800
"""2000-01-01 00:00:00 UTC; no payload started or ends before."""
LATEST = 4102444800
"""2100-01-01 00:00:00 UTC."""
MAX_DIGITS = 19
PRIORITY_LIMIT = 2**31
COUNT_LIMIT = 2**31 - 1
"""Cores or MiB; more is read as this."""
LARGEST = 1e15
"""Core-seconds that are believed; a pool of a million cores makes them in thirty years."""
MOST_POINTS = 5
TEXT_LIMIT = 256
"""Characters of the longest text of a curve that is read."""
_MOST_DIGITS = 15
_PARTS = 3

# Kinds are compared exactly: a bool is no number here, nor is the bindings' Undefined, which is a kind of int.


def unix_time(value: object) -> int | None:
    """Return a UNIX time in s between 2000-01-01 and 2100-01-01, both included; None for anything else."""
    return value if type(value) is int and EARLIEST <= value <= LATEST else None


def _amount(value: object) -> float | None:
    return value if (type(value) is float or type(value) is int) and 0 <= value <= LARGEST else None


def _flag(value: object) -> bool | None:
    return value if type(value) is bool else None


def _priority(value: object) -> int | None:
    """Return a whole number, clamped to −2³¹ … 2³¹ − 1, what every reader of a ClassAd integer can hold."""
    return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT - 1, value)) if type(value) is int else None


def _count(value: object) -> int | None:
    """Return a whole number, 0 or more; above 2³¹ − 1 it counts as that."""
    return min(value, COUNT_LIMIT) if type(value) is int and value >= 0 else None


def sound_curve(value: object) -> str | None:
    """Return a foreign value when it is the text of a curve, in its one form; None for anything else."""
    points = curve_points(value) if type(value) is str else None
    return None if points is None else curve_text(points)


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


def whole(text: bytes) -> int | None:
    """Parse an optional '-' and 1 to 19 ASCII digits, nothing else."""
    if text.isdigit():  # of bytes: ASCII digits only
        return int(text) if len(text) <= MAX_DIGITS else None
    if text[:1] == b"-" and text[1:].isdigit() and len(text) <= MAX_DIGITS + 1:
        return int(text)
    return None


def decimal(text: bytes) -> float | None:
    """Parse as `whole`, with an optional '.' and 1 to 19 more digits."""
    before, point, after = text.partition(b".")
    if whole(before) is None or (point and not (after.isdigit() and len(after) <= MAX_DIGITS)):
        return None
    return float(text)


READ: dict[str, Callable[[bytes], float | str | None]] = {
    TIME: lambda text: unix_time(whole(text)),
    CORES: decimal,
    CORE_SECONDS: decimal,
    FLAG: lambda text: {b"true": True, b"false": False}.get(text.lower()),
    PRIORITY: lambda text: _priority(whole(text)),
    CURVE: lambda text: sound_curve(text.decode("ascii", "replace")),
    COUNT: lambda text: _count(whole(text)),
}
"""For each kind, what reads the text of a value: True and False in any case; None for what is not sound."""


PLAIN = {
    TIME: "int?",
    CORES: "number?",
    CORE_SECONDS: "number?",
    FLAG: "bool?",
    PRIORITY: "int?",
    CURVE: "text?",
    COUNT: "int?",
}
"""For each kind, that of its plain value in JSON; `?`: or null."""


def decimal_text(value: float) -> str:
    """Write `value` without exponent, with six decimals at most, none for a whole number."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def curve_text(points: Sequence[CurvePoint]) -> str:
    """Write points (UNIX s, idle core-seconds, lost core-seconds)."""
    return ",".join(f"{moment}:{idle}:{lost}" for moment, idle, lost in points)


def curve_points(text: str) -> tuple[CurvePoint, ...] | None:
    """Read the points of a text that `curve_text` can have written; None for any other."""
    if not 0 < len(text) <= TEXT_LIMIT or not text.isascii():
        return None
    words = text.split(",")
    if len(words) > MOST_POINTS:
        return None
    found: list[CurvePoint] = []
    before, idle_before = EARLIEST - 1, 0
    for word in words:
        parts = word.split(":")
        if len(parts) != _PARTS or not all(part.isdigit() and len(part) <= _MOST_DIGITS for part in parts):
            return None
        moment, idle, lost = map(int, parts)
        if not before < moment <= LATEST or idle < idle_before:
            return None
        found.append((moment, idle, lost))
        before, idle_before = moment, idle
    return tuple(found)

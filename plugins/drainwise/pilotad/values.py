"""One value's text ↔ its typed value: strict, ASCII only, ranged; what does not fit is None (unknown)."""

from __future__ import annotations

EARLIEST = 946684800
"""2000-01-01 00:00:00 UTC; no payload started or ends before."""
LATEST = 4102444800
"""2100-01-01 00:00:00 UTC."""
MAX_DIGITS = 19
PRIORITY_LIMIT = 2**31
COUNT_LIMIT = 2**31 - 1
"""Cores or MiB; more is read as this."""


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


def unix_time(text: bytes) -> int | None:
    """Parse a UNIX time in s between 2000-01-01 and 2100-01-01, both included."""
    if text.isdigit() and len(text) <= MAX_DIGITS:
        value = int(text)
        return value if EARLIEST <= value <= LATEST else None
    return None


def priority(text: bytes) -> int | None:
    """Parse a whole number, clamped to −2³¹ … 2³¹ − 1, what every reader of a ClassAd integer can hold."""
    value = whole(text)
    if value is None or -PRIORITY_LIMIT <= value < PRIORITY_LIMIT:
        return value
    return -PRIORITY_LIMIT if value < 0 else PRIORITY_LIMIT - 1


def count(text: bytes) -> int | None:
    """Parse a whole number, 0 or more; above 2³¹ − 1 it counts as that."""
    return min(int(text), COUNT_LIMIT) if text.isdigit() and len(text) <= MAX_DIGITS else None


def flag(text: bytes) -> bool | None:
    """Parse True or False in any case."""
    word = text.lower()
    if word == b"true":
        return True
    return False if word == b"false" else None


def decimal_text(value: float) -> str:
    """Write `value` without exponent, with six decimals at most, none for a whole number."""
    return f"{value:.6f}".rstrip("0").rstrip(".")

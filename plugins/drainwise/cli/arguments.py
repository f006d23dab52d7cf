"""Numbers and times on the command line: the types of argparse, each with a message that says what was expected."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from drainwise.facts.written_units import format_duration, parse_duration

LONGEST = 3650 * 86400
"""The longest time that an option takes, in seconds: ten years."""
TIME_FORMS = "seconds, or a time such as 90s, 30m, 2h or 1d12h"


def seconds(least: int = 0, most: int = LONGEST) -> Callable[[str], int]:
    """Return a type for times from `least` to `most` seconds: `90`, `90s`, `30m`, `2h` or `1d12h`."""

    def read(text: str) -> int:
        value = _time(text)
        if not least <= value <= most or value != int(value):
            raise _no_time(text, format_duration(least), format_duration(most), " in whole seconds")
        return int(value)

    return read


def fine_seconds(least: float = 0, most: float = LONGEST) -> Callable[[str], float]:
    """Return a type for such times, of which seconds without a unit may have a fraction: `0.5`."""

    def read(text: str) -> float:
        value = _time(text)
        if not least <= value <= most:
            raise _no_time(text, f"{least:g}s", format_duration(int(most)))
        return value

    return read


def _time(text: str) -> float:
    try:
        return float(parse_duration(text))
    except ValueError:
        return _float(text)


def _no_time(text: str, least: str, most: str, more: str = "") -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{text[:80]!r}: expected {TIME_FORMS}, from {least} to {most}{more}")


def whole(least: int | None = None, most: int = 10**11) -> Callable[[str], int]:
    """Return a type for whole numbers from `least` to `most`; without bounds, whoever uses the number checks it."""

    def read(text: str) -> int:
        digits = text[1:] if text[:1] == "-" else text
        if digits.isascii() and digits.isdigit() and len(digits) < 12 and (least is None or least <= int(text) <= most):
            return int(text)
        bounds = "" if least is None else f" from {least} to {most}"
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a whole number{bounds}")

    return read


def number(least: float | None = None, most: float = math.inf) -> Callable[[str], float]:
    """Return a type for numbers from `least` to `most`; without bounds, whoever uses the number checks it."""

    def read(text: str) -> float:
        value = _float(text)
        if math.isnan(value) or (least is not None and not least <= value <= most):
            bounds = "" if least is None else f" from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a number{bounds}")
        return value

    return read


def _float(text: str) -> float:
    try:
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan

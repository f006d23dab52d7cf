"""Numbers and times on the command line: the types of argparse, each with a message that says what was expected."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def seconds(text: str) -> int:
    """Return the seconds of `90`, `90s`, `30m` or `1h30m`; for argparse. Raises ArgumentTypeError."""
    from drainwise.siteconfig.units import parse_duration

    try:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected seconds, or a duration such as 30m or 2h") from None


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
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan

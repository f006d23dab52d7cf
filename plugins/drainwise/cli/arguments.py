"""Numbers and times on the command line: the types of argparse, each with a message that says what was expected.

And the filters that several commands have alike.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from drainwise.cli.command_line.options import Option, option
from drainwise.cli.screen.wanted import STATES, PilotFilter
from drainwise.facts.errors import UsageError
from drainwise.facts.units import format_duration, parse_duration

_FILTERS = ("user", "account", "node", "state")

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


def name_filters(more: str = "") -> tuple[Option, ...]:
    """Return --user, --account and --node; more: what the help of the first two says besides."""
    return (
        option("--user U", f"only pilots of this user; repeatable{more}", action="append"),
        option("--account A", f"only pilots of this account; repeatable{more}", action="append"),
        option(
            "--node N",
            "only pilots on this node, or on 'wn[001-120]', 'rack7-*'; repeatable",
            action="append",
        ),
    )


def filters(limit: str, more: str = "") -> tuple[Option, ...]:
    """Return all filters; limit: what --limit bounds."""
    state = option("--state", "only pilots in this state now; repeatable", choices=STATES, action="append")
    return *name_filters(more), state, at_most(limit)


def at_most(limit: str) -> Option:
    """Return --limit; limit: what it bounds."""
    return option("--limit N", f"show no more than N {limit}", whole(1, 999_999_999))


def wanted_of(args: argparse.Namespace) -> PilotFilter:
    """Return what the options of a command ask for."""
    users, accounts, nodes, states = (tuple(getattr(args, name, None) or ()) for name in _FILTERS)
    return PilotFilter(users, accounts, nodes, states, args.limit)


def only_one(args: argparse.Namespace, name: str) -> str | None:
    """Return the one value of an option that may be repeated elsewhere. Raises UsageError where there are more."""
    values = getattr(args, name, None) or [None]
    if len(values) > 1:
        raise UsageError(f"--{name} with --cores: expected one of {', '.join(map(repr, values))}")
    found: str | None = values[0]
    return found


def require_no_filter(args: argparse.Namespace, why: str, *besides: str) -> None:
    """Raise UsageError where a filter is given, but for those of `besides`; why: it cannot be."""
    given = [name for name in (*_FILTERS, "limit") if name not in besides and getattr(args, name) is not None]
    if given:
        raise UsageError(f"{', '.join(f'--{name}' for name in given)}: {why}")

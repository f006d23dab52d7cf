"""The kinds of value a site file knows: how each is read, shown, and described when it is wrong.

Every value ends up in a batch system's configuration, in a worker node's settings or in a script. So a kind
admits only characters that mean nothing there: no quotes, `$`, backticks, blanks or control characters in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

from drainwise.siteconfig.units import format_duration, format_size, parse_duration, parse_size

T = TypeVar("T")

_INTEGER = re.compile("[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_PATH = re.compile(r"(/[A-Za-z0-9_.+-]+)+")
_WORD = re.compile("[A-Za-z][A-Za-z0-9_]{0,31}")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of value: `parse` raises ValueError on what is not `expected`; `show` is its inverse.

    `name` and `limits` say the same in short, for a table.
    """

    name: str
    limits: str
    expected: str
    parse: Callable[[str], T]
    show: Callable[[T], str]


def duration(least: str, most: str) -> Kind[int]:
    """Seconds, written with units, within [least, most]."""
    return Kind(
        "duration",
        f"{least} to {most}",
        f"a duration from {least} to {most} with its unit (d, h, m, s), such as 90s, 30m, 1h30m or 7d",
        _within(parse_duration, parse_duration(least), parse_duration(most)),
        format_duration,
    )


def size(least: str, most: str) -> Kind[int]:
    """Bytes, written with units, within [least, most]."""
    return Kind(
        "size",
        f"{least} to {most}",
        f"a size from {least} to {most} with its unit, such as 20GB (1000-based) or 16GiB (1024-based)",
        _within(parse_size, parse_size(least), parse_size(most)),
        format_size,
    )


def integer(least: int, most: int) -> Kind[int]:
    """A whole number within [least, most]."""
    return Kind(
        "integer",
        f"{least} to {most}",
        f"a whole number from {least} to {most}",
        _within(_parse_integer, least, most),
        str,
    )


def decimal(least: str, most: str) -> Kind[Decimal]:
    """A decimal number within [least, most], kept exactly as it was written."""
    return Kind(
        "decimal",
        f"{least} to {most}",
        f"a number from {least} to {most}, such as 10 or 10.5",
        _within(_parse_decimal, Decimal(least), Decimal(most)),
        lambda number: format(number, "f"),
    )


def choice(*names: str) -> Kind[str]:
    """One of a few words."""
    return Kind("choice", ", ".join(names), f"one of {', '.join(names)}", lambda text: names[names.index(text)], str)


def path(longest: int = 200) -> Kind[str]:
    """An absolute path in normal form."""

    def parse(text: str) -> str:
        if _PATH.fullmatch(text) is None or len(text) > longest or {".", ".."} & set(text.split("/")):
            raise ValueError(text)
        return text

    expected = f"an absolute path of letters, digits and _ . + - without . or .. parts, at most {longest} characters"
    return Kind("path", "absolute", expected, parse, str)


def word() -> Kind[str]:
    """A name that HTCondor can put into the names of its configuration macros."""

    def parse(text: str) -> str:
        if _WORD.fullmatch(text) is None:
            raise ValueError(text)
        return text

    return Kind("word", "letters, digits, _", "a letter and then at most 31 letters, digits or _", parse, str)


N = TypeVar("N", int, Decimal)


def _within(parse: Callable[[str], N], least: N, most: N) -> Callable[[str], N]:
    def bounded(text: str) -> N:
        number = parse(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return bounded


def _parse_integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _parse_decimal(text: str) -> Decimal:
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    return Decimal(text)

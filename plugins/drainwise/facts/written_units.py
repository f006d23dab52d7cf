"""Durations and sizes as an admin writes them: a number never stands without its unit."""

from __future__ import annotations

import re

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
BYTES = {
    "B": 1,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}

_DURATION = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in SECONDS))
_SIZE = re.compile(f"([0-9]{{1,18}})({'|'.join(BYTES)})")


def parse_duration(text: str) -> int:
    """Parse `90s`, `30m`, `2h`, `7d` or a combination from large to small such as `1h30m`; return seconds.

    Raises ValueError for everything else: a number without a unit, a sign, a fraction, blanks.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError(text)
    return sum(int(number) * seconds for number, seconds in zip(match.groups("0"), SECONDS.values()))


def format_duration(seconds: int) -> str:
    """Write the shortest text that `parse_duration` reads as `seconds` (0 or more)."""
    parts = []
    for unit, length in SECONDS.items():
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def parse_size(text: str) -> int:
    """Parse `20GB` (1000-based) or `16GiB` (1024-based) into bytes; `B`, `k`, `M`, `G` and `T` exist.

    Raises ValueError for everything else.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) * BYTES[match[2]]


def format_size(size: int) -> str:
    """Write `size` bytes in the largest unit that divides it, as `parse_size` reads it."""
    fitting = [(length, unit) for unit, length in BYTES.items() if size % length == 0 and size >= length]
    length, unit = max(fitting, default=(1, "B"))
    return f"{size // length}{unit}"

"""Durations, sizes, core-hours and times: as an admin writes them, as batch systems do, and as we write them."""

from __future__ import annotations

import re
import time

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
BYTES: dict[str, int] = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}

_DURATION = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in SECONDS))
_SIZE = re.compile(f"([0-9]{{1,18}})({'|'.join(BYTES)})")
_CLOCK = re.compile(r"(?:(?:(?:([0-9]{1,9})[-:])?([0-9]{1,9}):)?([0-9]{1,9}):)?([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGTPE]?)(?:i?B|bytes|w)?", re.IGNORECASE)


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


def parse_clock(text: str) -> float | None:
    """Return the seconds of what batch systems write as `1-02:03:04`, `1:02:03:04`, `02:03:04`, `03:04.5` or `17`.

    None for anything else.
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return 86400 * days + 3600 * hours + 60 * minutes + float(found[4])


def parse_amount(text: str, unit: int = 1) -> float | None:
    """Return what batch systems write as `1.5G`, `512 M` or `16777216kb`, 1024-based; None for anything else.

    unit: of a number that has none.
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return None
    letter = found[2].upper()
    return float(found[1]) * (1024 ** " KMGTPE".index(letter) if letter else unit)


def duration(seconds: int) -> str:
    """Write a duration in its two largest units, rounded down: 13000 → `3h36m`; a negative one has its sign."""
    if seconds < 0:
        return "-" + duration(-seconds)
    units = list(SECONDS.items())
    for (unit, length), (lesser, part) in zip(units, units[1:]):
        if seconds >= length:
            rest = seconds % length // part
            return f"{seconds // length}{unit}" + (f"{rest}{lesser}" if rest else "")
    return f"{seconds}s"


CORE_H, BILLING_H = "core-h", "billing-h"
"""The units of what is wasted: cores × hours, or hours of what a site bills."""


def core_hours(core_seconds: int, unit: str = CORE_H) -> str:
    """Write core-seconds as core-hours, to three places: 74000 → `20.6 core-h`, 104 → `0.029 core-h`.

    unit: another one, of seconds of which so many are given.
    """
    hours = core_seconds / 3600
    places = next(places for places, above in ((0, 100), (1, 10), (2, 1), (3, 0)) if abs(hours) >= above)
    return f"{hours:.{places}f} {unit}"


def clock(moment: int) -> str:
    """Write a UNIX time as a UTC time of day with its date: `2026-11-20 08:56:40Z`; a number beyond all calendars."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(moment))
    except (OSError, OverflowError, ValueError):
        return f"UNIX time {moment}"

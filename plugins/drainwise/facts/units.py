"""Durations, core-hours and times as a plan's explanations say them."""

from __future__ import annotations

import time

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: int) -> str:
    """Write a duration in its two largest units, rounded down: 13000 → `3h36m`; a negative one has its sign."""
    if seconds < 0:
        return "-" + duration(-seconds)
    for (unit, length), (lesser, part) in zip(_UNITS, _UNITS[1:]):
        if seconds >= length:
            rest = seconds % length // part
            return f"{seconds // length}{unit}" + (f"{rest}{lesser}" if rest else "")
    return f"{seconds}s"


def core_hours(core_seconds: int) -> str:
    """Write core-seconds as core-hours, to three places: 74000 → `20.6 core-h`, 104 → `0.029 core-h`."""
    hours = core_seconds / 3600
    places = next(places for places, above in ((0, 100), (1, 10), (2, 1), (3, 0)) if abs(hours) >= above)
    return f"{hours:.{places}f} core-h"


def clock(moment: int) -> str:
    """Write a UNIX time as a UTC time of day with its date: `2026-11-20 08:56:40Z`; a number beyond all calendars."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(moment))
    except (OSError, OverflowError, ValueError):
        return f"UNIX time {moment}"

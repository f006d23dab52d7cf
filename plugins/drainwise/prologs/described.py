"""The facts of a job that starts, by the names of the feature keys; and the amounts that batch systems print."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Union

Fact = Optional[Union[int, float, str]]
Questions = dict[str, list[str]]
"""Commands by a name of ours."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]?)(?:i?b|bytes|w)?", re.IGNORECASE)
_POWERS = " kmgtpe"
_CLOCK = (1, 60, 3600, 86400)
"""Seconds of the parts of a time, the last one first."""


class DescribedJob(NamedTuple):
    """Facts of a job and of its machine by their keys; owner: its user's name or number where that is told."""

    job: dict[str, Fact]
    machine: dict[str, Fact]
    owner: str | None = None


def size(text: str | None, unit: int = 1) -> int | None:
    """Return the bytes of `4gb`, `512 M` or `2 Gbytes`, 1024-based; unit: bytes of a number that has none."""
    found = _SIZE.fullmatch((text or "").strip())
    if found is None:
        return None
    letter = found[2].lower()
    return int(float(found[1]) * (1024 ** _POWERS.index(letter) if letter else unit))


def seconds(text: str | None) -> int | None:
    """Return the seconds of `86400`, `24:00:00` or `1:00:00:00`, of which the first are days."""
    parts = (text or "").strip().split(":")
    if len(parts) > len(_CLOCK):
        return None
    numbers = [count(part) for part in parts]
    known = [number * unit for number, unit in zip(reversed(numbers), _CLOCK) if number is not None]
    return sum(known) if len(known) == len(parts) else None


def count(text: str | None) -> int | None:
    """Return a plain whole number; None for anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def is_this_host(name: str, host: str) -> bool:
    """Say whether two names, with their domains or without, are one host's."""
    return name.partition(".")[0] == host.partition(".")[0]


def least(*limits: int | None) -> int | None:
    """Return the tightest limit there is."""
    return min((one for one in limits if one), default=None)

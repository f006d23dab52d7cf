"""Cores that came back, against time: from the moment of the decision on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Freed:
    """So many cores came back so many seconds after the decision."""

    after: float
    cores: int


def cumulative(freed: Iterable[Freed]) -> list[tuple[float, int]]:
    """(seconds, cores back until then), in the order of time."""
    total, points = 0, []
    for one in sorted(freed, key=lambda one: one.after):
        total += one.cores
        points.append((one.after, total))
    return points


def freed_at(freed: Iterable[Freed], after: float) -> int:
    """Cores that are back so many seconds after the decision."""
    return sum(one.cores for one in freed if one.after <= after)


def all_back(freed: Iterable[Freed], cores: int) -> float | None:
    """Seconds until so many cores were back; None while they are not."""
    return next((after for after, total in cumulative(freed) if total >= cores), None)


def sparkline(freed: Sequence[Freed], cores: int, now: float, until: float, width: int) -> str:
    """One sign for each of `width` parts of the time up to `until` (s); blank for what lies after `now`."""
    signs = []
    for place in range(width):
        moment = (place + 1) * until / width
        if moment > now:
            signs.append(" ")
            continue
        share = min(1.0, freed_at(freed, moment) / cores) if cores else 1.0
        signs.append(_BLOCKS[round(share * (len(_BLOCKS) - 2)) + 1])
    return "".join(signs)


def bar(part: float, whole: float, width: int) -> str:
    """A horizontal bar of `width` characters."""
    full = 0 if whole <= 0 else round(width * min(1.0, max(0.0, part / whole)))
    return "█" * full + "·" * (width - full)

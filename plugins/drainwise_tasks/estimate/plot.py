"""Expected against real run times as one drawing that needs nothing else: a point per job, both axes by powers."""

from __future__ import annotations

from collections.abc import Sequence

from drainwise.page.svg import COLOURS, Axis, Dot, Line, Plot, drawn

_TICKS = ((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (36000, "10 h"), (864000, "10 d"))
_HEIGHT = 480
_SHORTEST, _LEAST_SPAN, _ROOM = 1.0, 10.0, 1.25

Point = tuple[str, float, float]
"""Task, expected and real run time in seconds."""


def scatter(points: Sequence[Point], title: str = "Expected and real run times") -> str:
    """Return the plot as SVG; on the line both are equal. Names are a user's word: escaped, and printable."""
    values = [max(_SHORTEST, value) for point in points for value in point[1:]] or [_SHORTEST]
    low = min(values) / _ROOM
    high = max(max(values) * _ROOM, low * _LEAST_SPAN)
    ticks = [(seconds, words) for seconds, words in _TICKS if low <= seconds <= high]
    x, y = (Axis(name, low, high, ticks, log=True) for name in ("expected", "real"))
    styles = {name: f"c{place % COLOURS}" for place, name in enumerate(sorted({name for name, _, _ in points}))}
    dots = [
        Dot(expected, real, styles[name], f"{name}: expected {expected:.0f} s, ran {real:.0f} s")
        for name, expected, real in points
    ]
    line = Line([(low, low), (high, high)], "even")
    return drawn(Plot(f"{title}: {len(points)} jobs", x, y, [line, *dots], height=_HEIGHT), alone=True)


def page(points: Sequence[Point], title: str = "Expected and real run times") -> str:
    """Return the same inside a page of HTML."""
    head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>\n'
    return f"{head}{scatter(points, title)}</body></html>\n"

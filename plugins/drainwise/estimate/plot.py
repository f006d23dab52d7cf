"""Expected against real run times as one SVG that needs nothing else: a point per job, both axes by powers of ten."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

WIDTH, HEIGHT = 640, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 16, 34, 46
_SECONDS = ((1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (36000, "10 h"), (864000, "10 d"))
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")
_FONT = 'font-family="sans-serif" font-size="11"'
_SHORTEST, _LEAST_SPAN = 1.0, 10.0

Point = tuple[str, float, float]
"""Task, expected and real run time in seconds."""


def scatter(points: Sequence[Point], title: str = "Expected and real run times") -> str:
    """The plot; on the line both are equal. Names are a user's word: escaped, and without control characters."""
    values = [max(_SHORTEST, value) for point in points for value in point[1:]] or [_SHORTEST]
    low = math.log10(min(values)) - 0.1
    high = max(math.log10(max(values)) + 0.1, low + math.log10(_LEAST_SPAN))

    def x(seconds: float) -> float:
        return _LEFT + _share(seconds, low, high) * (WIDTH - _LEFT - _RIGHT)

    def y(seconds: float) -> float:
        return HEIGHT - _BOTTOM - _share(seconds, low, high) * (HEIGHT - _TOP - _BOTTOM)

    ticks = [(seconds, text) for seconds, text in _SECONDS if low <= math.log10(seconds) <= high]
    names = sorted({name for name, _, _ in points})
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {_FONT}>',
        f"<title>{_text(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="13">{_text(title)}: {len(points)} jobs</text>',
        *(_grid(x(seconds), y(seconds), text) for seconds, text in ticks),
        f'<path d="M{x(10**low):.1f} {y(10**low):.1f}L{x(10**high):.1f} {y(10**high):.1f}" stroke="#888"/>',
        *(_dot(x(expected), y(real), colours[name], name, expected, real) for name, expected, real in points),
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">expected</text>',
        f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">real</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def page(points: Sequence[Point], title: str = "Expected and real run times") -> str:
    """The same inside a page of HTML."""
    head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title></head><body>\n'
    return f"{head}{scatter(points, title)}</body></html>\n"


def _share(seconds: float, low: float, high: float) -> float:
    return (math.log10(max(_SHORTEST, seconds)) - low) / (high - low)


def _grid(x: float, y: float, text: str) -> str:
    return (
        f'<path d="M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="#ddd"/>'
        f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle">{text}</text>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )


def _dot(x: float, y: float, colour: str, name: str, expected: float, real: float) -> str:
    title = f"{_text(name)}: expected {expected:.0f} s, ran {real:.0f} s"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}" fill-opacity="0.5"><title>{title}</title></circle>'
    )


def _text(text: str) -> str:
    return html.escape("".join(letter for letter in text if letter.isprintable()))

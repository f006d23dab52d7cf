"""Plots as SVG: axes with ticks, bars, points and lines in the data's own units. Nothing is fetched, text stays text.

`STYLE` is the one style sheet, light and dark, of pages with plots; a drawing that stands alone holds its light half.
"""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Union

from drainwise.common.printable import printable

COLOURS = 8
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "plot.css"), encoding="utf-8") as _file:
    STYLE = _file.read().rstrip("\n")
"""Fill and stroke of `c0` to `c7`, at least 3:1 on the card in both modes; `ink` is the text's colour."""
_VARIABLE = re.compile(r"--(\w+): ([^;]+);")


def _in_light() -> str:
    """Write the rules without variables, which not every viewer of drawings knows."""
    light, _, rules = STYLE.split("\n", 2)
    values = dict(_VARIABLE.findall(light))
    return re.sub(r"var\(--(\w+)\)", lambda match: values[match[1]], rules)


_TOP, _BOTTOM, _RIGHT = 10, 40, 16
_LETTER = 6.0  # width of one, in about
_MOST_LABELS = 10
_SHAPES: dict[str, str] = {
    "square": "M-3-3H3V3H-3Z",
    "up": "M0-4L4 3H-4Z",
    "down": "M0 4L4-3H-4Z",
    "diamond": "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
    "cross": "M-3-3L3 3M-3 3L3-3",
    "plus": "M-4 0H4M0-4V4",
}
"""The marks of points beside the round one, about their place."""


@dataclass(frozen=True)
class Axis:
    """From `low`, left or below, to `high`; ticks: value and text. log: by powers, where less than `low` lies at it."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False
    grid: bool = True

    def share(self, value: float) -> float:
        """Return the place of a value: 0 at low, 1 at high."""
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(title: str, largest: float) -> Axis:
    """Make an axis from 0 to a round number that `largest` fits below, with some four round ticks."""
    rough = max(largest, 1e-9) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9)) if largest > 0 else 1.0
    count = max(1, math.ceil(largest / step - 1e-9))
    return Axis(title, 0.0, count * step, [(place * step, f"{place * step:g}") for place in range(count + 1)])


def decades(title: str, low: float, largest: float, least: int = 2) -> Axis:
    """Make an axis by powers of ten from `low`, at least `least` of them; what is less than `low` is drawn there."""
    count = max(least, math.ceil(math.log10(max(largest, low) / low) - 1e-9))
    ticks = [(low * 10**place, f"{'' if place else '≤ '}{low * 10**place:g}") for place in range(count + 1)]
    return Axis(title, low, low * 10**count, ticks, log=True)


def places(title: str, names: Sequence[str], downwards: bool = False) -> Axis:
    """Make an axis with a place for each name, at 0, 1, 2 …; at most ten of them are written beside each other."""
    every = 1 if downwards else max(1, math.ceil(len(names) / _MOST_LABELS))
    ticks = [(float(place), name) for place, name in enumerate(names) if place % every == 0]
    low, high = -0.5, max(0.5, len(names) - 0.5)
    return Axis(title, high if downwards else low, low if downwards else high, ticks, grid=False)


class Bar(NamedTuple):
    """From one corner to the other; style: its class; tip: what it says when it is pointed at."""

    x: tuple[float, float]
    y: tuple[float, float]
    style: str
    tip: str = ""


class Dot(NamedTuple):
    """A point; shape: `round` or one of `_SHAPES`."""

    x: float
    y: float
    style: str
    tip: str = ""
    shape: str = "round"


class Line(NamedTuple):
    """A line through some points."""

    points: Sequence[tuple[float, float]]
    style: str


class Note(NamedTuple):
    """A short text right of a place."""

    x: float
    y: float
    text: str


Mark = Union[Bar, Dot, Line, Note]


@dataclass(frozen=True)
class Plot:
    """One drawing. legend: (class, shape or "bar" or "line", text)."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    legend: Sequence[tuple[str, str, str]] = ()
    height: int = 250


WIDTH = 640


def stacked(
    title: str,
    names: Sequence[str],
    bars: Iterable[Sequence[tuple[float, str, str]]],
    x_title: str,
    y_title: str,
    legend: Sequence[tuple[str, str, str]] = (),
) -> Plot:
    """Stack columns of parts (size, style, tip), one above the other."""
    marks, largest = [], 0.0
    for place, bar in enumerate(bars):
        below = 0.0
        for size, style, tip in bar:
            if size:
                marks.append(Bar((place - 0.39, place + 0.39), (below, below + size), style, tip))
            below += size
        largest = max(largest, below)
    return Plot(title, places(x_title, names), linear(y_title, largest), marks, legend)


def drawn(plot: Plot, alone: bool = False) -> str:
    """Draw the SVG element. alone: with the style in it, for a file of its own."""
    left = 30 + _LETTER * max((len(text) for _, text in plot.y.ticks), default=0)
    right, bottom = WIDTH - _RIGHT, plot.height - _BOTTOM
    row, at = int(alone), left
    legend = []
    for style, shape, words in plot.legend:
        width = 30 + _LETTER * len(words)
        if at + width > WIDTH and at > left:
            row, at = row + 1, left
        legend += [_swatch(at, _TOP + 18 * row, style, shape), _text(at + 16, _TOP + 18 * row + 4, words, "l")]
        at += width
    top = _TOP + 18 * (row + 1 if plot.legend else alone)

    def x(value: float) -> float:
        return left + plot.x.share(value) * (right - left)

    def y(value: float) -> float:
        return bottom - plot.y.share(value) * (bottom - top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {plot.height}" role="img"'
        f' aria-label="{_escaped(f"{plot.title}: {plot.y.title} by {plot.x.title}")}">'
    ]
    if alone:
        parts += [f"<style>{_in_light()}</style>", f'<rect class="card" width="{WIDTH}" height="{plot.height}"/>']
        parts.append(_text(left, 17, plot.title, "l"))
    parts += legend
    for value, words in plot.y.ticks:
        if plot.y.grid:
            parts.append(f'<path class="grid" d="M{left:.1f} {y(value):.1f}H{right}"/>')
        parts.append(_text(left - 6, y(value) + 4, words, "r"))
    for value, words in plot.x.ticks:
        if plot.x.grid:
            parts.append(f'<path class="grid" d="M{x(value):.1f} {top}V{bottom}"/>')
        parts.append(_text(min(x(value), WIDTH - _LETTER * len(words) / 2), bottom + 15, words))
    parts += [_mark(mark, x, y) for mark in plot.marks]
    parts += [
        f'<path class="axis" d="M{left:.1f} {bottom}H{right}"/>',
        _text((left + right) / 2, plot.height - 7, plot.x.title),
        f'<text transform="translate(12 {(top + bottom) / 2:.1f}) rotate(-90)">{_escaped(plot.y.title)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _escaped(words: str) -> str:
    """Escape a user's text, and take out what is not printable."""
    return html.escape(printable(words))


def _text(x: float, y: float, words: str, side: str = "") -> str:
    """Write words at a place: in its middle, or beginning ("l") or ending ("r") there."""
    style = f'class="{side}" ' if side else ""
    return f'<text {style}x="{x:.1f}" y="{y:.1f}">{_escaped(words)}</text>'


def _mark(mark: Mark, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    if isinstance(mark, Bar):
        (low, high), (one, other) = sorted(map(x, mark.x)), sorted(map(y, mark.y))
        place = f'x="{low:.1f}" y="{one:.1f}" width="{high - low:.1f}" height="{other - one:.1f}"'
        return _tipped("rect", f'class="{mark.style}" {place}', mark.tip)
    if isinstance(mark, Dot):
        return _dot(x(mark.x), y(mark.y), mark.style, mark.shape, mark.tip)
    if isinstance(mark, Line):
        way = "L".join(f"{x(one):.1f} {y(other):.1f}" for one, other in mark.points)
        return f'<path class="line {mark.style}" d="M{way}"/>' if way else ""
    return _text(x(mark.x) + 6, y(mark.y) + 4, mark.text, "l")


def _dot(x: float, y: float, style: str, shape: str, tip: str = "") -> str:
    if shape == "round":
        return _tipped("circle", f'class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"', tip)
    return _tipped("path", f'class="dot {style}" d="{_SHAPES[shape]}" transform="translate({x:.1f} {y:.1f})"', tip)


def _tipped(name: str, attributes: str, tip: str) -> str:
    return f"<{name} {attributes}><title>{_escaped(tip)}</title></{name}>" if tip else f"<{name} {attributes}/>"


def _swatch(x: float, y: float, style: str, shape: str) -> str:
    if shape == "bar":
        return f'<rect class="{style}" x="{x:.1f}" y="{y - 5}" width="10" height="10" rx="2"/>'
    if shape == "line":
        return f'<path class="line {style}" d="M{x:.1f} {y}h12"/>'
    return _dot(x + 5, y, style, shape)

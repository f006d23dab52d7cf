"""Plots as SVG: axes with ticks, bars, points and lines in the data's own units. Nothing is fetched, text stays text.

A drawing that stands alone holds the light half of the style sheet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Union

from drainwise.page.html_page import STYLE, template_beside

COLOURS = 8
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
        legend.append((at, _TOP + 18 * row, style, shape, words))
        at += width
    top = _TOP + 18 * (row + 1 if plot.legend else alone)
    drawing = template_beside(__file__, "plot.svg.j2").render(
        plot=plot,
        legend=legend,
        x=lambda value: left + plot.x.share(value) * (right - left),
        y=lambda value: bottom - plot.y.share(value) * (bottom - top),
        width=WIDTH,
        letter=_LETTER,
        shapes=_SHAPES,
        style_alone=_in_light() if alone else "",
        left=left,
        right=right,
        top=top,
        bottom=bottom,
    )
    return f"{drawing}\n"

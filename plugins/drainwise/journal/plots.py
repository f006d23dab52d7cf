"""Where everything of a plot lies: bars, points, ticks, in the units of an SVG. Pure; the template draws it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from drainwise.journal.history import ENDS, Asking
from drainwise.journal.report import Sums
from drainwise.reclaim.words import core_hours, duration

WIDTH, HEIGHT = 640, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 40
_MOST_LABELS = 10
_MOST_POINTS = 3000
_HOUR = 3600
_FROM, _DECADES = 0.01, 2  # core-hours: the scatter plot begins here, and shows so many decades at least
_BINS = (5, 10, 20, 30, 60, 120, 240, 480, 1440)  # minutes


@dataclass(frozen=True)
class Mark:
    """One bar, or a point where `width` is 0; `style` is its class, `title` what it says when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    style: str
    title: str


@dataclass(frozen=True)
class Tick:
    """One mark of an axis, at an x or y of the SVG."""

    at: float
    text: str


@dataclass(frozen=True)
class Plot:
    """One plot: what it shows in words, its marks, and its axes with their titles. diagonal: y = x is drawn."""

    title: str
    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_title: str
    y_title: str
    legend: tuple[tuple[str, str], ...] = ()
    diagonal: bool = False


def ends_by_day(days: Sequence[tuple[str, Sums]]) -> Plot:
    """How the pilots that were asked on each day ended."""
    bars = [
        [(sums.ends[place], style_of(end), f"{day}: {sums.ends[place]} {end}") for place, end in enumerate(ENDS)]
        for day, sums in days
    ]
    legend = tuple((style_of(end), end) for end in ENDS)
    return _stacks("How the pilots ended", [day[5:] for day, _ in days], bars, "day", "pilots asked", legend)


def waste_by_day(days: Sequence[tuple[str, Sums]]) -> Plot:
    """What the pilots that were asked on each day promised to waste, and what they did."""
    labels = [day[5:] for day, _ in days]
    pairs = [(day, sums.predicted / _HOUR, sums.realised / _HOUR) for day, sums in days]
    y_ticks, height = _scale(max((max(pair[1:]) for pair in pairs), default=0.0))
    left, step = _columns(len(pairs))
    marks = []
    for place, (day, *both) in enumerate(pairs):
        for side, (waste, style) in enumerate(zip(both, ("promised", "wasted"))):
            x, wide = left(place) + side * step * 0.4, step * 0.38
            title = f"{day}: {core_hours(round(waste * _HOUR))} {style}"
            marks.append(Mark(x, height(waste), wide, height(0) - height(waste), style, title))
    legend = (("promised", "promised"), ("wasted", "wasted"))
    return Plot("Waste", tuple(marks), _labels(labels, left, step), y_ticks, "day", "core-hours", legend)


def times_to_free(seconds: Iterable[int]) -> Plot:
    """How many pilots were gone how soon after they had been asked."""
    counts = [0] * (len(_BINS) + 1)
    for one in seconds:
        counts[next((place for place, minutes in enumerate(_BINS) if one <= minutes * 60), len(_BINS))] += 1
    names = [f"≤ {duration(minutes * 60)}" for minutes in _BINS] + ["more"]
    bars = [[(count, "freed", f"{count} pilots: {name}")] for count, name in zip(counts, names)]
    return _stacks("Time to free", names, bars, "from the order to the end", "pilots")


def promise_and_truth(pilots: Sequence[Asking]) -> Plot:
    """Each pilot that promised something, and whose end is known: the newest, where they are very many."""
    known = [one for one in pilots if one.realised is not None and one.believed][-_MOST_POINTS:]
    pairs = [(one, one.predicted / _HOUR, (one.realised or 0) / _HOUR) for one in known]
    largest = max([_FROM * 10**_DECADES, *(max(pair[1:]) for pair in pairs)])
    decades = math.ceil(math.log10(largest / _FROM) - 1e-9)

    def share(waste: float) -> float:
        return math.log10(max(waste, _FROM) / _FROM) / decades

    def x(waste: float) -> float:
        return LEFT + share(waste) * (WIDTH - LEFT - RIGHT)

    def y(waste: float) -> float:
        return HEIGHT - BOTTOM - share(waste) * (HEIGHT - TOP - BOTTOM)

    marks = tuple(
        Mark(
            x(promised),
            y(wasted),
            0,
            0,
            style_of(one.end),
            f"{one.name} of {one.user}: {core_hours(one.predicted)} promised, {core_hours(one.realised or 0)} wasted",
        )
        for one, promised, wasted in pairs
    )
    ticks = [_FROM * 10**place for place in range(decades + 1)]
    names = [f"{'≤ ' if place == 0 else ''}{tick:g}" for place, tick in enumerate(ticks)]
    return Plot(
        "Promise and truth",
        marks,
        tuple(Tick(x(tick), name) for tick, name in zip(ticks, names)),
        tuple(Tick(y(tick), name) for tick, name in zip(ticks, names)),
        "core-hours promised",
        "core-hours wasted",
        tuple((style_of(end), end) for end in ENDS[:3]),
        diagonal=True,
    )


def style_of(end: str) -> str:
    """The class of what ended so."""
    return end.replace(" ", "-")


Bars = Sequence[Sequence[tuple[float, str, str]]]


def _stacks(
    title: str,
    labels: Sequence[str],
    bars: Bars,
    x_title: str,
    y_title: str,
    legend: tuple[tuple[str, str], ...] = (),
) -> Plot:
    """Columns of parts (size, style, title), one above the other."""
    y_ticks, height = _scale(max((sum(part[0] for part in bar) for bar in bars), default=0))
    left, step = _columns(len(bars))
    marks = []
    for place, bar in enumerate(bars):
        below = 0.0
        for size, style, words in bar:
            if size:
                top = height(below + size)
                marks.append(Mark(left(place), top, step * 0.78, height(below) - top, style, words))
            below += size
    return Plot(title, tuple(marks), _labels(labels, left, step), y_ticks, x_title, y_title, legend)


def _columns(count: int) -> tuple[Callable[[int], float], float]:
    """Where each of so many columns begins, and the width of one with its gap."""
    step = (WIDTH - LEFT - RIGHT) / max(1, count)
    return (lambda place: LEFT + (place + 0.11) * step), step


def _labels(labels: Sequence[str], left: Callable[[int], float], step: float) -> tuple[Tick, ...]:
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    return tuple(Tick(left(place) + step * 0.39, label) for place, label in enumerate(labels) if place % every == 0)


def _scale(largest: float) -> tuple[tuple[Tick, ...], Callable[[float], float]]:
    """The round ticks of an axis from 0, and where a value lies."""
    rough = max(largest, 1e-9) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))
    if largest <= 0:
        step = 1.0
    count = max(1, math.ceil(largest / step - 1e-9))

    def height(value: float) -> float:
        return HEIGHT - BOTTOM - value / (count * step) * (HEIGHT - TOP - BOTTOM)

    ticks = tuple(Tick(height(place * step), f"{place * step:g}") for place in range(count + 1))
    return ticks, height

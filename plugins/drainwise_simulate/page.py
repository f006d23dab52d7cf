"""A study as one self-contained page: what was asked, tables, plots as inline SVG; no script, nothing is fetched.

The plots: waste and times by policy, what plans promised, and waste where one thing is varied.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from drainwise.page.html_page import template_beside
from drainwise.page.svg import Axis, Bar, Dot, Line, Mark, Note, Plot, decades, drawn, linear, places
from drainwise_simulate.outcome import HOUR
from drainwise_simulate.policies.meanings import CLAIRVOYANT
from drainwise_simulate.study import ERROR_SWEEP, ESTIMATE_SWEEP, HORIZON_SWEEP, LIAR_SWEEP, Part, Point, Study
from drainwise_simulate.summary import YOUNGEST_FIRST
from drainwise_simulate.text import HEADINGS, cells, legend, notes, scenario_in_words, title

_LOOKS = {
    CLAIRVOYANT: ("ink", "cross"),
    "least-waste": ("c0", "round"),
    "paper": ("c2", "square"),
    YOUNGEST_FIRST: ("c1", "up"),
    "nebraska": ("c4", "down"),
    "condor-graceful": ("c3", "diamond"),
    "least-kill": ("c5", "plus"),
}
"""Colour and mark of the policies whose waste is shown where something is varied.

The others would not change but for the horizon, and waste so much that nothing else could be seen.
"""
_PROMISING = (YOUNGEST_FIRST, "paper", "least-waste")
_KILLED, _DRAINED = ("c1", "bar", "destroyed with payloads that were killed"), ("c0", "bar", "idle while draining")
_HALF, _MOST = ("ink", "round", "half of the cores"), ("ink", "diamond", "95 % of them")
_PER_CORE = "core-hours wasted for each core given back"
_HIGH, _ROW = 340, 24
_LEAST = 0.01  # core-hours: less is drawn as this much where scales are logarithmic


def plots_of(study: Study) -> list[tuple[str, str]]:
    """Return title and SVG of each plot, with those of the sweeps where they were run."""
    part, sweeps = study.parts[0], {sweep.name: sweep.points for sweep in study.sweeps}
    found = [_waste(part), _times(part), _promises(part)]
    if ERROR_SWEEP in sweeps:
        axis = "sigma of the log-normal factor by which run times are known wrongly; what a site can know"
        title = "Waste against how bad the estimates are"
        found.append(_swept(title, sweeps[ERROR_SWEEP], axis, sweeps.get(ESTIMATE_SWEEP, ())))
    for name, title, axis in (
        (LIAR_SWEEP, "Waste against the share of liars", "share of pilots that claim to lose everything when they end"),
        (HORIZON_SWEEP, "Waste against the horizon", "within which the cores must be back"),
    ):
        if name in sweeps:
            found.append(_swept(title, sweeps[name], axis))
    return [(plot.title, drawn(plot)) for plot in found]


def _waste(part: Part) -> Plot:
    marks: list[Mark] = []
    largest = 0.0
    for row, line in enumerate(part.lines):
        killed, whole, half = line.killed.value, line.core_hours_per_core.value, line.core_hours_per_core.half or 0.0
        across = (row - 0.33, row + 0.33)
        marks.append(Bar((0, killed), across, "c1", f"{line.policy}: {killed:.3g} core-h destroyed"))
        marks.append(Bar((killed, whole), across, "c0", f"{line.policy}: {line.drained.value:.3g} core-h idle"))
        if half:
            marks.append(Line([(max(0.0, whole - half), row), (whole + half, row)], "bound"))
        largest = max(largest, whole + half)
    return Plot(
        "Waste by policy", linear(_PER_CORE, largest), _policies(part), marks, (_KILLED, _DRAINED), _height(part)
    )


def _times(part: Part) -> Plot:
    finite = [one for line in part.lines for one in (line.time_p50, line.time_p95) if math.isfinite(one)]
    x = linear("hours after they were asked for", max([*finite, 60.0]) / HOUR * 1.08)
    marks: list[Mark] = []
    for row, line in enumerate(part.lines):
        times = (line.time_p50, line.time_p95)
        half, most = (seconds / HOUR if math.isfinite(seconds) else x.high * 0.93 for seconds in times)
        marks += [Line([(half, row), (most, row)], "c0"), Dot(half, row, "ink"), Dot(most, row, "ink", shape="diamond")]
        if not math.isfinite(line.time_p95):
            marks.append(Note(most, row, "never"))
    return Plot("Time until the cores were free", x, _policies(part), marks, (_HALF, _MOST), _height(part))


def _promises(part: Part) -> Plot:
    decisions = [one for one in part.outcomes if one.policy in _PROMISING]
    wastes = [value / HOUR for one in decisions for value in (one.predicted, one.waste)]
    least = max(_LEAST, min((value for value in wastes if value > 0), default=_LEAST))
    low, high = 10.0 ** math.floor(math.log10(least)), max(wastes, default=least)
    x = decades("core-hours that the plan said it would waste, each decision a point", low, high)
    y = decades("core-hours wasted", low, high)
    policies = [policy for policy in _PROMISING if any(one.policy == policy for one in part.lines)]
    dots = [
        Dot(one.predicted / HOUR, one.waste / HOUR, _LOOKS[policy][0], shape=_LOOKS[policy][1])
        for policy in policies
        for one in decisions
        if one.policy == policy
    ]
    even = Line([(x.low, y.low), (x.high, y.high)], "even")
    return Plot("Promise and truth", x, y, [even, *dots], [(*_LOOKS[policy], policy) for policy in policies], _HIGH)


def _swept(title: str, points: Sequence[Point], axis: str, apart: Sequence[Point] = ()) -> Plot:
    """Draw each policy's waste at each point; `apart`: further points that no line joins to the others."""
    every = [*points, *apart]
    shown = [line.policy for line in reversed(points[0].lines) if line.policy in _LOOKS]
    marks: list[Mark] = []
    largest = 0.0
    for policy in shown:
        style, shape = _LOOKS[policy]
        values = [
            next((line.core_hours_per_core.value for line in point.lines if line.policy == policy), 0.0)
            for point in every
        ]
        marks.append(Line(list(enumerate(values[: len(points)])), style))
        marks += [Dot(place, value, style, f"{policy}: {value:.3g}", shape) for place, value in enumerate(values)]
        largest = max([largest, *values])
    x = places(axis, [point.label for point in every])
    return Plot(title, x, linear(_PER_CORE, largest), marks, [(*_LOOKS[policy], policy) for policy in shown], _HIGH)


def _policies(part: Part) -> Axis:
    return places("", [line.policy for line in part.lines], downwards=True)


def _height(part: Part) -> int:
    return 70 + _ROW * len(part.lines)


_TEMPLATE = "page.html.j2"


def page(study: Study, command: str, made: int) -> str:
    """Return the whole page as HTML, made at `made` (UNIX s); `command` makes it again. What files say is escaped."""
    return template_beside(__file__, _TEMPLATE).render(
        made=made,
        name=os.path.basename(study.trace.name),
        computer=study.trace.said("Computer"),
        acknowledge=study.trace.said("Acknowledge"),
        command=command,
        scenario=scenario_in_words(study),
        notes=notes(study),
        headings=HEADINGS,
        tables=[(title(part), [cells(line) for line in part.lines]) for part in study.parts],
        legend=legend(study),
        plots=plots_of(study),
    )


def lease_page(
    said: str,
    scenario: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    legend: Sequence[str],
    plots: Mapping[str, Mapping[str, float]],
    command: str,
    made: int,
) -> str:
    """Return the page of a log whose jobs are leases of their own: a bar for each policy in each of the `plots`."""
    drawings = []
    for axis, values in plots.items():
        bars = [Bar((0, one), (row - 0.33, row + 0.33), "c0", f"{one:.4g}") for row, one in enumerate(values.values())]
        policies = places("", list(values), downwards=True)
        plot = Plot(axis, linear(axis, max(values.values())), policies, bars, (), 70 + _ROW * len(values))
        drawings.append((axis, drawn(plot)))
    return template_beside(__file__, _TEMPLATE).render(
        made=made,
        name=said,
        computer="",
        acknowledge="",
        command=command,
        scenario=scenario,
        notes=(),
        headings=headings,
        tables=[("what each way wastes", rows)],
        legend=legend,
        plots=drawings,
    )

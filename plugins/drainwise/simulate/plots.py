"""The plots of a study as SVG, drawn by matplotlib; the one module that needs it, imported when a plot is wanted."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from functools import partial

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drainwise.simulate.outcome import HOUR
from drainwise.simulate.policies import CLAIRVOYANT
from drainwise.simulate.study import BELIEF_SWEEP, ERROR_SWEEP, HORIZON_SWEEP, LIAR_SWEEP, Part, Point, Study
from drainwise.simulate.summary import YOUNGEST_FIRST, Line

LEAST_WASTE = "least-waste"
_LOOKS = {
    CLAIRVOYANT: ("#1c2126", ":", "x"),
    LEAST_WASTE: ("#1f5fa8", "-", "o"),
    "paper": ("#168f6b", "-", "s"),
    YOUNGEST_FIRST: ("#cf4f14", "-", "^"),
    "nebraska": ("#d99a00", "-", "v"),
    "condor-graceful": ("#8a4fb0", "-", "D"),
    "least-kill": ("#4bb3c3", "-", "P"),
}
"""Colour, line and mark of the policies whose waste is shown where something is varied.

The others would not change but for the horizon, and waste so much that nothing else could be seen.
"""
_KILLED, _DRAINED, _INK, _GRID = "#cf6a3c", "#5b8fc7", "#3a4148", "#dfe2e4"
_PER_CORE = "core-hours wasted for each core given back"
_WIDE, _HIGH = 6.6, 3.7  # inches
_LEAST = 0.01  # core-hours: less is drawn as this much where scales are logarithmic


def plots_of(study: Study) -> list[tuple[str, str]]:
    """Title and SVG of each plot, with those of the sweeps where they were run."""
    part = study.parts[0]
    found = [
        ("Waste by policy", _drawn("waste", partial(_waste, part=part))),
        ("Time until the cores were free", _drawn("time", partial(_times, part=part))),
        ("Promise and truth", _drawn("promise", partial(_promises, part=part))),
    ]
    sweeps = {sweep.name: sweep.points for sweep in study.sweeps}
    if ERROR_SWEEP in sweeps:
        draw = partial(_error, points=sweeps[ERROR_SWEEP], beliefs=sweeps.get(BELIEF_SWEEP, ()))
        found.append(("Waste against how bad the estimates are", _drawn("error", draw)))
    for name, title, axis in (
        (LIAR_SWEEP, "Waste against the share of liars", "share of pilots that claim to lose everything when they end"),
        (HORIZON_SWEEP, "Waste against the horizon", "within which the cores must be back"),
    ):
        if name in sweeps:
            found.append((title, _drawn(name, partial(_swept, points=sweeps[name], axis=axis))))
    return found


def _drawn(name: str, draw: Callable[[Figure], None]) -> str:
    """What `draw` draws, as an SVG element; the same figures give the same bytes."""
    # Text stays text, and identifiers differ between the plots of one page.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9, "text.color": _INK}):
        figure = Figure(figsize=(_WIDE, _HIGH), layout="constrained")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _waste(figure: Figure, part: Part) -> None:
    axes = _axes(figure)
    lines = part.lines
    rows = range(len(lines))
    killed, drained = [line.killed.value for line in lines], [line.drained.value for line in lines]
    axes.barh(rows, killed, color=_KILLED, label="destroyed with payloads that were killed", height=0.66)
    axes.barh(rows, drained, left=killed, color=_DRAINED, label="idle while draining", height=0.66)
    halves = [line.per_core.half or 0.0 for line in lines]
    if any(halves):
        wastes = [line.per_core.value for line in lines]
        axes.errorbar(wastes, rows, xerr=halves, fmt="none", ecolor=_INK, elinewidth=1, capsize=2)
    axes.set_yticks(rows, [line.policy for line in lines])
    axes.invert_yaxis()
    axes.grid(axis="x", color=_GRID)
    axes.set_xlabel(_PER_CORE)
    figure.legend(frameon=False, loc="outside upper center", ncols=2, fontsize=8)


def _times(figure: Figure, part: Part) -> None:
    axes = _axes(figure)
    finite = [one for line in part.lines for one in (line.half, line.most) if math.isfinite(one)]
    edge = max([*finite, 60.0]) / HOUR * 1.08
    for row, line in enumerate(part.lines):
        half, most = (seconds / HOUR if math.isfinite(seconds) else edge for seconds in (line.half, line.most))
        axes.plot([half, most], [row, row], color=_DRAINED, linewidth=2)
        axes.plot(half, row, "o", color=_INK, label="half of the cores" if not row else None)
        axes.plot(most, row, "|", color=_INK, markersize=12, label="95 % of them" if not row else None)
        if not math.isfinite(line.most):
            axes.annotate("never", (edge, row), xytext=(4, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(part.lines)), [line.policy for line in part.lines])
    axes.invert_yaxis()
    axes.set_xlim(left=-0.02 * edge)
    axes.grid(axis="x", color=_GRID)
    axes.set_xlabel("hours after they were asked for")
    figure.legend(frameon=False, loc="outside upper center", ncols=2, fontsize=8)


def _promises(figure: Figure, part: Part) -> None:
    axes = _axes(figure)
    wastes = [value / HOUR for one in part.outcomes for value in (one.predicted, one.waste)]
    least = max(_LEAST, min((value for value in wastes if value > 0), default=_LEAST))
    for policy in (YOUNGEST_FIRST, "paper", LEAST_WASTE):
        pairs = [(one.predicted / HOUR, one.waste / HOUR) for one in part.outcomes if one.policy == policy]
        if pairs:
            promised, true = ([max(least, value) for value in values] for values in zip(*pairs))
            colour, _, mark = _LOOKS[policy]
            axes.plot(promised, true, mark, color=colour, label=policy, alpha=0.6, markersize=4)
    ends = (least, max(least * 100, *wastes))
    axes.plot(ends, ends, color=_INK, linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(color=_GRID)
    axes.set_xlabel("core-hours that the plan said it would waste, each decision a point")
    axes.set_ylabel("core-hours wasted")
    axes.legend(frameon=False)


def _error(figure: Figure, points: Sequence[Point], beliefs: Sequence[Point]) -> None:
    """Run times known but for a factor; and beside it what a site can have: requests, and what scouts tell."""
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1)) if beliefs else (figure.subplots(), None)
    _curves(_dressed(left), points, [point.value for point in points])
    left.set_xlabel("sigma of the log-normal factor by which\nrun times are known wrongly")
    left.set_ylabel(_PER_CORE)
    if right is not None:
        places = list(range(len(beliefs)))
        _curves(_dressed(right), beliefs, places, line=False)
        right.set_xticks(places, [point.label for point in beliefs])
        right.set_xlim(-0.6, len(beliefs) - 0.4)
        right.set_xlabel("as the trace's own\nestimates have it")
    _legend(figure, left)


def _swept(figure: Figure, points: Sequence[Point], axis: str) -> None:
    axes = _axes(figure)
    places = list(range(len(points)))
    _curves(axes, points, places)
    axes.set_xticks(places, [point.label for point in points])
    axes.set_xlabel(axis)
    axes.set_ylabel(_PER_CORE)
    _legend(figure, axes)


def _curves(axes: Axes, points: Sequence[Point], places: Sequence[float], line: bool = True) -> None:
    """Each policy's waste at each point."""
    for policy in [one.policy for one in reversed(points[0].lines) if one.policy in _LOOKS]:
        colour, style, mark = _LOOKS[policy]
        values = [_of(policy, point.lines) for point in points]
        style = style if line else "none"
        axes.plot(places, values, linestyle=style, marker=mark, color=colour, label=policy, markersize=4.5)
    axes.grid(color=_GRID)
    axes.set_ylim(bottom=0)


def _of(policy: str, lines: Sequence[Line]) -> float:
    return next((line.per_core.value for line in lines if line.policy == policy), math.nan)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside right upper", fontsize=8)


def _axes(figure: Figure) -> Axes:
    return _dressed(figure.subplots())


def _dressed(axes: Axes) -> Axes:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)
    return axes

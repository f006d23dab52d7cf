"""The report as one self-contained page: tables, and four plots as inline SVG; no script, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drainwise.facts.units import core_hours, duration
from drainwise.journal.report import ENDS, IN_TIME, LATE, OPEN, VACATED, WITHDRAWN, Report, ReportedOrder, Sums
from drainwise.page.html_page import template_beside
from drainwise.page.svg import Bar, Dot, Line, Plot, decades, drawn, linear, places, stacked

_TEMPLATE = "report.html.j2"
_SUMS = ("not ordered", "cores ordered", "cores freed", "promised, core-h", "wasted, core-h", "time to free", "longest")
_HEADINGS = ("ordered", *ENDS, *_SUMS)
_PART_HEADINGS = ("wishes", "pilots", "cores returned", "returned, core-h", "wasted, core-h")
_STYLES = {IN_TIME: "c2", LATE: "c4", VACATED: "c1", WITHDRAWN: "c7", OPEN: "c0"}
_PROMISED, _WASTED = ("c4", "promised"), ("c0", "wasted")
_MOST_POINTS = 3000
_HOUR = 3600
_FROM = 0.01  # core-hours: less is drawn as this much where scales are logarithmic
_BINS = (5, 10, 20, 30, 60, 120, 240, 480, 1440)  # minutes


def page(report: Report, made: int, journal: str = "", machine: str = "") -> str:
    """Return the whole page as HTML. Names are a user's word: escaped, and without control characters.

    made: now, UNIX s. journal: the file that was read, on `machine`; it names the pool.
    """
    return template_beside(__file__, _TEMPLATE).render(
        report=report,
        plots=[(plot.title, drawn(plot)) for plot in plots_of(report)],
        headings=_HEADINGS,
        part_headings=_PART_HEADINGS,
        in_time=IN_TIME,
        vacated=VACATED,
        policies=sorted({one.policy for one in report.pilots if one.policy}),
        made=made,
        journal=journal,
        machine=machine,
    )


def plots_of(report: Report) -> tuple[Plot, ...]:
    """Return all plots of a report, in their order on the page."""
    return (
        ends_by_day(report.days),
        waste_by_day(report.days),
        times_to_free(report.total.times_to_free),
        promise_and_truth(report.pilots),
    )


def ends_by_day(days: Sequence[tuple[str, Sums]]) -> Plot:
    """Show how the pilots with an order of each day ended."""
    bars = [[(count, _STYLES[end], f"{day}: {count} {end}") for end, count in sums.ends.items()] for day, sums in days]
    legend = [(style, "bar", end) for end, style in _STYLES.items()]
    return stacked("How the pilots ended", _dates(days), bars, "day", "orders", legend)


def waste_by_day(days: Sequence[tuple[str, Sums]]) -> Plot:
    """Show what the pilots with an order of each day promised to waste, and what they did."""
    marks, largest = [], 0
    for place, (day, sums) in enumerate(days):
        for side, waste, (style, name) in (
            (-0.4, sums.predicted_waste, _PROMISED),
            (0.02, sums.realised_waste, _WASTED),
        ):
            across = (place + side, place + side + 0.38)
            marks.append(Bar(across, (0, waste / _HOUR), style, f"{day}: {core_hours(waste)} {name}"))
            largest = max(largest, waste)
    legend = [(style, "bar", name) for style, name in (_PROMISED, _WASTED)]
    return Plot("Waste", places("day", _dates(days)), linear("core-hours", largest / _HOUR), marks, legend)


def times_to_free(seconds: Iterable[int]) -> Plot:
    """Show how many pilots were gone how soon after their orders."""
    counts = [0] * (len(_BINS) + 1)
    for one in seconds:
        counts[next((place for place, minutes in enumerate(_BINS) if one <= minutes * 60), len(_BINS))] += 1
    names = [f"≤ {duration(minutes * 60)}" for minutes in _BINS] + ["more"]
    bars = [[(count, "c0", f"{count} pilots: {name}")] for count, name in zip(counts, names)]
    return stacked("Time to free", names, bars, "from the order to the end", "pilots")


def promise_and_truth(pilots: Sequence[ReportedOrder]) -> Plot:
    """Show each pilot that promised something, and whose end is known: the newest, where they are very many."""
    known = [one for one in pilots if one.realised is not None and one.believed][-_MOST_POINTS:]
    largest = max((max(one.predicted, one.realised or 0) for one in known), default=0) / _HOUR
    x, y = (decades(f"core-hours {name}", _FROM, largest) for name in ("promised", "wasted"))
    marks = [
        Dot(
            one.predicted / _HOUR,
            (one.realised or 0) / _HOUR,
            _STYLES[one.end],
            f"{one.name} of {one.user}: {core_hours(one.predicted)} promised, {core_hours(one.realised or 0)} wasted",
        )
        for one in known
    ]
    even = Line([(x.low, y.low), (x.high, y.high)], "even")
    return Plot("Promise and truth", x, y, [even, *marks], [(_STYLES[end], "round", end) for end in ENDS[:3]])


def _dates(days: Sequence[tuple[str, Sums]]) -> list[str]:
    return [day[5:] for day, _ in days]

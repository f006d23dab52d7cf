"""The report as one self-contained page: tables, and plots as inline SVG; no script, nothing is fetched."""

from __future__ import annotations

from drainwise.html_page import template_beside
from drainwise.journal import plots
from drainwise.journal.history import ENDS, IN_TIME, VACATED
from drainwise.journal.report import Report
from drainwise.reclaim.words import clock, core_hours, duration

_TEMPLATE = "report.html.j2"


def page(report: Report) -> str:
    """The whole page as HTML. Names are a user's word: escaped, and without control characters."""
    return template_beside(
        __file__, _TEMPLATE, {"core_hours": core_hours, "clock": clock, "duration": _duration}
    ).render(
        report=report,
        plots=(
            plots.ends_by_day(report.days),
            plots.waste_by_day(report.days),
            plots.times_to_free(report.total.times_to_free),
            plots.promise_and_truth(report.pilots),
        ),
        box=plots,
        ends=ENDS,
        style_of=plots.style_of,
        in_time=IN_TIME,
        vacated=VACATED,
    )


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(round(seconds))

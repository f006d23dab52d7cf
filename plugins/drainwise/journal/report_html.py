"""The report as one self-contained page: tables, and plots as inline SVG; no script, nothing is fetched."""

from __future__ import annotations

import os

import jinja2

from drainwise.journal import plots
from drainwise.journal.history import ENDS, IN_TIME, VACATED
from drainwise.journal.report import Report
from drainwise.reclaim.words import clock, core_hours, duration

_TEMPLATE = "report.html.j2"


def page(report: Report) -> str:
    """The whole page as HTML. Names are a user's word: escaped, and without control characters."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__))),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(core_hours=core_hours, clock=clock, duration=_duration)
    return environment.get_template(_TEMPLATE).render(
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


def _printable(value: object) -> object:
    """Nothing that a browser could take for more than text: no control character, no mark that turns the writing."""
    if type(value) is str:
        return "".join(letter for letter in value if letter.isprintable())
    return value


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(round(seconds))

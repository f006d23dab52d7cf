"""A study as one self-contained page: what was asked, tables, plots as inline SVG; no script, nothing is fetched."""

from __future__ import annotations

import os

from drainwise.html_page import template_beside
from drainwise.simulate.plots import plots_of
from drainwise.simulate.study import Study
from drainwise.simulate.words import HEADINGS, cells, legend, notes, scenario_in_words, title

_TEMPLATE = "page.html.j2"


def page(study: Study, command: str) -> str:
    """The whole page as HTML; `command` is what makes it again. What files say is escaped."""
    return template_beside(__file__, _TEMPLATE).render(
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

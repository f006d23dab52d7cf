"""The status of an agent as one static page and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from drainwise.facts.units import clock, core_hours, duration
from drainwise.page.html_page import template_beside

_TEMPLATE = "status.html.j2"


def page(status: Mapping[str, object]) -> str:
    """Return the whole page as HTML; status: as `SiteStatus` gives it. All its text is escaped."""
    filters = {"hours": _hours, "core_hours": core_hours, "clock": clock, "duration": _duration, "cores": _cores}
    return template_beside(__file__, _TEMPLATE, filters).render(status=status, now=status["time"])


def document(status: Mapping[str, object]) -> str:
    """Return the same as JSON, in ASCII."""
    return json.dumps(status, allow_nan=False) + "\n"


def _hours(core_seconds: int | None) -> str:
    """Write core-hours where the heading has the unit."""
    return "–" if core_seconds is None else core_hours(core_seconds).partition(" ")[0]


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(round(seconds))


def _cores(cores: float | None) -> str:
    return "–" if cores is None else f"{cores:.1f}".removesuffix(".0")

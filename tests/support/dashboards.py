"""The dashboards for Grafana: their panels, and the queries that Grafana makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "monitoring" / "grafana"
FILES = sorted(FOLDER.glob("*.json"))
SELECTOR = re.compile(r"([a-z][\w:]*)\{([^}]*)\}")
"""A metric, or a series that a rule records, and what of it is chosen."""
ALL = "$__all"
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_SPECIAL = re.compile(r"[\\^$*+?.()|{}\[\]]")


@dataclass(frozen=True)
class Query:
    """One query of a panel, with the variables of the dashboard in it."""

    panel: str
    expression: str
    instant: bool


def load(path: Path) -> dict[str, Any]:
    """The dashboard of a file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels that show something: no headings of rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(dashboard: dict[str, Any]) -> Iterator[Query]:
    """All queries of a dashboard's panels."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield Query(panel["title"], target["expr"], target["instant"])


def metrics_in(expression: str) -> set[str]:
    """The names of metrics and recorded series."""
    return {name for name, _ in SELECTOR.findall(expression)}


def variables(dashboard: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The variables by name."""
    return {one["name"]: one for one in dashboard["templating"]["list"]}


def expanded(text: str, dashboard: dict[str, Any], chosen: dict[str, str], seconds: int, interval: int) -> str:
    """A text as Grafana sends it: chosen, the value of each variable of the kind query, ALL for the entry of that name.

    seconds: of the time that is shown; interval: between two scrapes, s. Raises KeyError for a variable that is none.
    """
    given = {"__range": f"{seconds}s", "__rate_interval": f"{4 * interval}s", "__interval": f"{interval}s"}
    for name, one in variables(dashboard).items():
        if one["type"] == "query":
            value = chosen[name]
            given[name] = one["allValue"] if value == ALL else _SPECIAL.sub(lambda it: "\\\\" + it[0], value)
        elif one["type"] == "constant":
            given[name] = one["query"]
    return _VARIABLE.sub(lambda it: given[it[1] or it[2]], text)

"""The dashboards for Grafana: any site can load them, and each panel asks for what there is and says what it shows."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dashboards import FILES, SELECTOR, expanded, load, metrics_in, panels, queries, variables

TOP = Path(__file__).parents[2]
RULES = (TOP / "monitoring" / "prometheus" / "drainwise.rules.yml").read_text()
ALERTS = set(re.findall(r"(?m)^ +- alert: (\w+)$", RULES))
CHOSEN_BY_USER = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
BOARDS = [pytest.param(load(path), id=path.stem) for path in FILES]


def everything(value: Any) -> list[tuple[str, Any]]:
    """All keys with their values, however deep."""
    if isinstance(value, list):
        return [found for one in value for found in everything(one)]
    if not isinstance(value, dict):
        return []
    return [found for key, one in value.items() for found in ((key, one), *everything(one))]


def test_both_are_there() -> None:
    assert [path.stem for path in FILES] == ["overview", "why"]
    boards = [load(path) for path in FILES]
    assert len({board["uid"] for board in boards}) == len({board["title"] for board in boards}) == len(boards)


@pytest.mark.parametrize("board", BOARDS)
def test_the_user_chooses_the_data_source_and_the_pool(board: dict[str, Any]) -> None:
    """Nothing of the machine on which a dashboard was made is in it."""
    assert variables(board)["datasource"]["type"] == "datasource"
    assert variables(board)["datasource"]["query"] == "prometheus"
    assert all(value == CHOSEN_BY_USER for key, value in everything(board) if key == "datasource")
    assert all("datasource" in target for panel in panels(board) for target in panel["targets"])
    assert {"id", "__inputs", "__requires"} & set(board) == set()
    for query in queries(board):
        assert SELECTOR.findall(query.expression), query
        assert all('pool=~"$pool"' in labels for _, labels in SELECTOR.findall(query.expression)), query


@pytest.mark.parametrize("board", BOARDS)
def test_no_panel_covers_another(board: dict[str, Any]) -> None:
    """And each has a number of its own, by which its address is known."""
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(one["x"] >= 0 and 0 < one["w"] <= WIDTH - one["x"] and one["h"] > 0 for one in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], (one, other)


@pytest.mark.parametrize("board", BOARDS)
def test_each_panel_says_what_it_shows(board: dict[str, Any]) -> None:
    """A title of its own in its dashboard, a sentence, a unit."""
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)
    for panel in panels(board):
        assert re.fullmatch(r".{15,}\.", panel["description"]), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]), panel["title"]


@pytest.mark.parametrize("board", BOARDS)
def test_each_panel_asks_for_what_is_exported_or_recorded(board: dict[str, Any]) -> None:
    """A metric stands in the table of docs/metrics.md, a recorded series in the rules."""
    page = (TOP / "docs" / "metrics.md").read_text()
    known = dict(re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|", page))
    histograms = {name for name, kind in known.items() if kind == "histogram"}
    there = {name for name, kind in known.items() if kind != "histogram"}
    there |= {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    there |= set(re.findall(r"(?m)^ +- record: (\S+)$", RULES))
    there |= {
        "up",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    }  # Prometheus' own, and of every program
    for query in queries(board):
        assert metrics_in(query.expression) <= there, query
        names = set(re.findall(r"\b(?:drainwise|process_)[\w:]*", re.sub(r'"[^"]*"', "", query.expression)))
        assert names <= metrics_in(query.expression), f"without a choice of the pool: {query}"


@pytest.mark.parametrize("board", BOARDS)
def test_only_what_counts_is_asked_for_its_increase(board: dict[str, Any]) -> None:
    """An increase of a gauge is nonsense, and so is a counter as it stands."""
    for query in queries(board):
        counters = set(re.findall(r"[a-z]\w*(?:_total|_bucket|_sum|_count)(?=\{)", query.expression))
        asked = set(re.findall(r"(?:rate|increase)\((\w+)\{", query.expression))
        assert asked == counters, query


@pytest.mark.parametrize("board", BOARDS)
def test_every_variable_of_a_dashboard_is_declared(board: dict[str, Any]) -> None:
    """An expression with one that is not would be sent as it stands."""
    chosen = {name: "main" for name, one in variables(board).items() if one["type"] == "query"}
    for query in queries(board):
        assert "$" not in expanded(query.expression, board, chosen, 60, 1)
    for one in variables(board).values():
        assert "$" not in expanded(str(one.get("definition", "")), board, chosen, 60, 1)


def test_each_alert_is_linked_where_its_figures_are_shown() -> None:
    """And no link leads to a runbook that is not there."""
    links = [link for path in FILES for panel in panels(load(path)) for link in panel.get("links", [])]
    assert {link["url"] for link in links} == {f"${{runbooks}}#{name.lower()}" for name in ALERTS}
    assert all(link["title"] == f"Runbook: {name}" for link in links for name in ALERTS if name.lower() in link["url"])
    assert all("runbooks" in variables(load(path)) for path in FILES)

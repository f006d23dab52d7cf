"""Each panel of the dashboards has data in a real Prometheus that has scraped a real agent."""

from __future__ import annotations

import copy
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clean_machine.prometheus import INTERVAL, PrometheusMachine
from dashboards import ALL, FILES, Query, expanded, load, metrics_in, queries, variables
from drainwise.local.job import RUNNING
from local_batch import ENVIRONMENT, PLUGINS, Batch
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.in_turn("browser", "dashboards")
TOP = Path(__file__).parents[2]
RULES = TOP / "monitoring" / "prometheus" / "drainwise.rules.yml"
PORT = 9877
SITE = f"[reclaim]\nmin_age = 0s\n[agent]\nperiod = 1s\n[metrics]\nport = {PORT}\n"
PILOT = f"PYTHONPATH={PLUGINS} exec {sys.executable} -B -m drainwise pilot run --poll 0.2 --queue"
NOT_THERE = {"drainwise_nodes"}
"""Nodes of the local batch system do not say which version they run: the panel has a series of its own for that."""


@dataclass
class Served:
    """A Prometheus that has seen an agent from its first cycle on, until pilots with an order had ended."""

    prometheus: PrometheusMachine
    began: int

    def ask(self, board: dict[str, Any], chosen: dict[str, str], asked: list[Query]) -> list[Any]:
        """The series that Grafana shows for each query; bars, too, by the second, since minutes would last too long."""
        now, questions = int(time.time()), []
        for query in asked:
            words = {"query": expanded(query.expression, board, chosen, now - self.began, INTERVAL)}
            more = {"start": str(self.began), "end": str(now), "step": str(INTERVAL)}
            question = ("query", words | {"time": str(now)}) if query.instant else ("query_range", words | more)
            questions.append(question)
        return [data["result"] for data in self.prometheus.ask(questions)]

    def empty(self, board: dict[str, Any], chosen: dict[str, str]) -> list[str]:
        """The panels of which a query gives no number."""
        asked = list(queries(board))
        answers = self.ask(board, chosen, asked)
        return sorted({query.panel for query, series in zip(asked, answers) if not any(map(has_number, series))})

    def now(self, board: dict[str, Any], title: str) -> list[dict[str, float]]:
        """What a panel shows at its end, for each of its queries the values by label."""
        asked = [query for query in queries(board) if query.panel == title]
        return [
            {"".join(one["metric"].values()): last(one) for one in series}
            for series in self.ask(board, every(board), asked)
        ]


def has_number(series: dict[str, Any]) -> bool:
    """Whether a series has a value that can be shown."""
    return any(math.isfinite(float(value)) for _, value in series.get("values", [series.get("value")]))


def last(series: dict[str, Any]) -> float:
    """The last value of a series."""
    return float(series.get("values", [series.get("value")])[-1][1])


def every(board: dict[str, Any]) -> dict[str, str]:
    """The variables as a dashboard has them when it is opened."""
    return {name: ALL for name, one in variables(board).items() if one["type"] == "query"}


def payloads(queue: Path) -> str:
    """The command of a pilot that runs short payloads from a queue."""
    queue.mkdir()
    for number in range(200):
        payload = {"command": "sleep 2", "expected": 2, "maximum": 20}
        (queue / f"p{number:03}.json").write_text(json.dumps(payload))
    return f"{PILOT} {queue}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """alice's pilots hold all cores, one of them says nothing; bob is owed half, comes, and gets the cores of two."""
    place, batch = tmp_path_factory.mktemp("dashboards"), Batch()
    prometheus = PrometheusMachine(RULES, {"drainwise": (PORT, {"pool": "main"})})
    agent = None
    try:
        batch.account("alice", 8)
        batch.account("bob", 8)
        batch.start(cores=16)
        pilots = [batch.submit(payloads(place / f"queue{number}"), cores=4, wall=36000)[0] for number in range(3)]
        pilots += batch.submit("exec sleep 10000", cores=4, wall=36000)
        batch.await_state(RUNNING, *pilots)
        (place / "site.ini").write_text(SITE)
        command = [sys.executable, "-m", "drainwise", "reclaim", "--loop", "--act", "--directory", batch.directory]
        command += ["--site", str(place / "site.ini"), "--journal", str(place / "journal")]
        with prometheus, (place / "log").open("w") as log:
            prometheus.start_prometheus()
            began = int(time.time())
            agent = subprocess.Popen(prometheus.outside_command(command), env=ENVIRONMENT, stderr=log)
            reports = 'drainwise_pilots{standing="fresh"}'
            wait_for(lambda: prometheus.value(reports) == 3, what="the first cycles in Prometheus, and three reports")
            bobs = batch.submit("exec sleep 10000", "bob", cores=4, count=2)
            batch.await_state(RUNNING, *bobs)
            ended = "sum(drainwise_ended_pilots_total offset 2s) == 2"
            ended += " and on () drainwise:time_to_free_seconds:p90_1d offset 2s > 0"
            wait_for(
                lambda: prometheus.value(ended),
                what="two pilots' ends in Prometheus, and what its rules make of them",
            )
            yield Served(prometheus, began)
    finally:
        if agent is not None:
            agent.kill()
            agent.wait()
        batch.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_panel_has_data(served: Served, path: Path) -> None:
    """As it is opened, and with a pool and an account chosen; none where the pool is another one."""
    board = load(path)
    assert served.empty(board, every(board)) == []
    assert served.empty(board, {name: {"pool": "main", "account": "alice"}[name] for name in every(board)}) == []
    asked = [query for query in queries(board) if "vector(0)" not in query.expression]
    assert not any(served.ask(board, {**every(board), "pool": "other"}, asked)), "what is of another pool"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_metric_of_a_panel_is_there(served: Served, path: Path) -> None:
    """Also where a panel has a series of its own for what is not there; and one that is not there is noticed."""
    board = load(path)
    names = sorted({name for query in queries(board) for name in metrics_in(query.expression)})
    found = served.prometheus.ask([("query", {"query": f"count({name})"}) for name in names])
    assert {name for name, data in zip(names, found) if not data["result"]} == NOT_THERE & set(names)
    wrong = copy.deepcopy(board)
    panel = next(one for one in wrong["panels"] if one["type"] == "timeseries")
    panel["targets"][0]["expr"] = re.sub(r"drainwise_(\w+)", r"drainwise_no_\1", panel["targets"][0]["expr"])
    assert served.empty(wrong, every(wrong)) == [panel["title"]]


def test_the_variables_offer_what_there_is(served: Served) -> None:
    """Pools and accounts, as Grafana asks for them."""
    offered = {}
    for board in map(load, FILES):
        for name, one in variables(board).items():
            if one["type"] == "query":
                found = re.fullmatch(
                    r"label_values\((.+), (\w+)\)", expanded(one["query"]["query"], board, every(board), 1, 1)
                )
                assert found is not None, one
                [offered[name]] = served.prometheus.ask([(f"label/{found[2]}/values", {"match[]": found[1]})])
    assert offered == {"pool": ["main"], "account": ["alice", "bob"]}


def test_the_panels_show_what_happened(served: Served) -> None:
    """Two of four pilots were ordered, left by themselves, and bob has their cores."""
    overview, why = map(load, FILES)
    assert served.now(overview, "State") == [{"ok": 1}]
    assert served.now(overview, "Cores in use by account") == [{"alice": 8, "bob": 8}]
    uses, owed, waits, lacks = served.now(overview, "Accounts now")
    assert (uses["bob"], owed["bob"], waits["bob"], lacks["bob"]) == (8, 8, 0, 0)
    assert served.now(overview, "Orders outstanding and overdue") == [{"": 0}, {"": 0}]
    [standings] = served.now(overview, "Pilots by standing")
    assert (standings["fresh"], standings["silent"]) == (1, 3)
    [counts] = served.now(why, "Seconds from order to end")
    assert counts["+Inf"] > 0
    [ends] = served.ask(why, every(why), [query for query in queries(why) if query.panel == "Ends by kind"])
    assert {one["metric"]["end"] for one in ends if any(float(value) > 0 for _, value in one["values"])} == {"left"}

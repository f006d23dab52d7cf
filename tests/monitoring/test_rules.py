"""The rules for Prometheus: each alert has its runbook, and fires in its case by what a real agent exports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clean_machine.monitoring import MonitoringMachine
from played_agent import Series, promtool_values
from real_daemons.furnish import write_file

from .plays import CASES, Case

TOP = Path(__file__).parents[2]
RULES = TOP / "monitoring" / "prometheus" / "drainwise.rules.yml"
PATIENCE = 600.0  # seconds; ten on a machine with nothing else to do
RUNBOOKS = TOP / "docs" / "troubleshoot.md"
AGENT = {"job": "drainwise", "instance": "a"}


def alerts() -> set[str]:
    return set(re.findall(r"(?m)^ +- alert: (\w+)$", RULES.read_text()))


def used_names() -> set[str]:
    """The agent's own series in the rules."""
    return set(re.findall(r"\b(drainwise_\w+)", RULES.read_text()))


def test_every_metric_in_the_rules_is_documented() -> None:
    """A rule on a metric that is called otherwise would stay silent for ever."""
    page = (TOP / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"(?m)^\| `(\w+)` \|", page))
    used = {name.removesuffix("_bucket") for name in used_names()}
    assert used and used <= documented


def test_every_alert_has_a_runbook_that_it_names() -> None:
    sections = set(re.findall(r"(?m)^### (Drainwise\w+)$", RUNBOOKS.read_text()))
    named = set(re.findall(r"runbook: docs/troubleshoot\.md#(\w+)", RULES.read_text()))
    assert sections == alerts()
    assert named == {name.lower() for name in alerts()}


def test_every_alert_is_seen_to_fire() -> None:
    """The cases that promtool plays: one for each."""
    assert {one.alert for case in CASES for one in case.fires} == alerts()


def name_of(name: str, labels: dict[str, str]) -> str:
    """A series as promtool has it."""
    return f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in sorted(labels.items()))}}}"


def inputs(case: Case, series: Series) -> list[dict[str, str]]:
    """What Prometheus would have: the agent's series that the rules use, and whether it reached the agent."""
    used, pool = used_names(), {"pool": "main"} if case.pair else {}
    found = [
        {"series": name_of(name, {**dict(labels), **AGENT, **pool}), "values": promtool_values(values)}
        for (name, labels), values in series.items()
        if name in used
    ]
    up = f"1x{case.minutes}" if case.down_after is None else f"1x{case.down_after - 1} 0x{case.minutes}"
    heading = {"job": "other"} if case.never_up else {**AGENT, **pool}
    found.append({"series": name_of("up", heading), "values": up})
    if case.pair:
        found.append({"series": name_of("up", {**heading, "instance": "b"}), "values": f"0x{case.minutes}"})
    return found


def played(case: Case, place: Path) -> dict[str, object]:
    """One test of promtool's."""
    looks = list[dict[str, object]]()
    for one in case.fires:
        labels = {"severity": one.severity, **one.labels}
        runbook = f"docs/troubleshoot.md#{one.alert.lower()}"
        fires = {"exp_labels": labels, "exp_annotations": {"summary": one.summary, "runbook": runbook}}
        looks.append({"eval_time": f"{one.quiet}m", "alertname": one.alert, "exp_alerts": []})
        looks.append({"eval_time": f"{one.at}m", "alertname": one.alert, "exp_alerts": [fires]})
    last = max((one.at for one in case.fires), default=case.minutes - 5)
    there = sorted({one.alert for one in case.fires if not one.at < one.quiet <= last})
    firing = [{"labels": name_of("", {"alertname": name}), "value": 1} for name in there]
    everything = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "name": case.name,
        "interval": "1m",
        "input_series": inputs(case, case.series(place)),
        "alert_rule_test": looks,
        "promql_expr_test": [{"expr": everything, "eval_time": f"{last}m", "exp_samples": firing}],
    }


@pytest.mark.daemons
def test_the_rules_pass_promtool(tmp_path: Path) -> None:
    """By Debian's Prometheus: the syntax, and each alert in its case and not before its time."""
    tests = []
    for number, case in enumerate(CASES):
        (place := tmp_path / str(number)).mkdir()
        tests.append(played(case, place))
    cases = {"rule_files": [RULES.name], "evaluation_interval": "1m", "tests": tests}
    with MonitoringMachine() as machine:
        write_file(machine.root, f"/tmp/{RULES.name}", RULES.read_text())
        write_file(machine.root, "/tmp/cases.yml", json.dumps(cases))
        assert "SUCCESS" in machine.run(["promtool", "check", "rules", f"/tmp/{RULES.name}"]).stdout
        ran = machine.run(["promtool", "test", "rules", "/tmp/cases.yml"], check=False, timeout=PATIENCE)
        assert ran.returncode == 0, ran.stdout + ran.stderr

"""The rules for Prometheus: they are about metrics that there are, each alert has its runbook and fires in its case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clean_machine.monitoring import MonitoringMachine
from real_daemons.furnish import write_file

TOP = Path(__file__).parents[2]
RULES = TOP / "monitoring" / "prometheus" / "drainwise.rules.yml"
CASES = Path(__file__).parent / "rules_test.yml"
PATIENCE = 600.0  # seconds; ten on a machine with nothing else to do
RUNBOOKS = TOP / "docs" / "runbooks.md"


def alerts() -> set[str]:
    return set(re.findall(r"(?m)^ +- alert: (\w+)$", RULES.read_text()))


def test_every_metric_in_the_rules_is_documented() -> None:
    """A rule on a metric that is called otherwise would stay silent for ever."""
    page = (TOP / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"(?m)^\| `(\w+)` \|", page))
    used = set(re.findall(r"\b(drainwise_\w+)", RULES.read_text()))
    assert used and used <= documented


def test_every_alert_has_a_runbook_that_it_names() -> None:
    sections = set(re.findall(r"(?m)^## (\w+)$", RUNBOOKS.read_text()))
    named = set(re.findall(r"runbook: docs/runbooks\.md#(\w+)", RULES.read_text()))
    assert sections == alerts()
    assert named == {name.lower() for name in alerts()}


def test_every_alert_is_seen_to_fire() -> None:
    """The cases that promtool plays: one with alerts for each."""
    fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", CASES.read_text()))
    assert fired == alerts()


@pytest.mark.daemons
def test_the_rules_pass_promtool() -> None:
    """By Debian's Prometheus: the syntax, and each alert in its case and not before its time."""
    with MonitoringMachine() as machine:
        for path in (RULES, CASES):
            write_file(machine.root, f"/tmp/{path.name}", path.read_text())
        assert "SUCCESS" in machine.run(["promtool", "check", "rules", f"/tmp/{RULES.name}"]).stdout
        played = machine.run(["promtool", "test", "rules", f"/tmp/{CASES.name}"], check=False, timeout=PATIENCE)
        assert played.returncode == 0, played.stdout + played.stderr

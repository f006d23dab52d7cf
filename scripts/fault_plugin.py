"""A plugin of pytest: run the tests that are asked for, the quickest files first, and tell which of them passed."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

wanted: dict[str, float] | None = json.loads(Path(os.environ["FAULT_TESTS"]).read_text())
seconds: dict[str, float] = defaultdict(float)
others: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that are asked for, null: all."""
    if wanted is not None:
        files: dict[str, float] = defaultdict(float)
        for name, lasted in wanted.items():
            files[name.partition("::")[0]] += lasted
        items[:] = [item for item in items if item.nodeid in wanted]
        items.sort(key=lambda item: files[item.nodeid.partition("::")[0]])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that failed or was skipped."""
    seconds[report.nodeid] += report.duration
    if report.outcome != "passed":
        others.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that cannot be imported."""
    if report.failed:
        others.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write how long each test took that passed, and the names of the others."""
    passed = {name: round(lasted, 3) for name, lasted in seconds.items() if name not in others}
    Path(os.environ["FAULT_ANSWER"]).write_text(json.dumps({"passed": passed, "others": others}))

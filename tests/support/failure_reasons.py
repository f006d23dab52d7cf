"""Keep why each test failed: scripts/test says it in its last line, where a long log shows it."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Put the first line of each failure into pytest's cache."""
    reports = [report for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
    cache = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
    if cache is not None:
        cache.set("drainwise/failures", {report.nodeid: _reason(report) for report in reports})


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash is not None else report.longreprtext).strip().partition("\n")[0][:200]

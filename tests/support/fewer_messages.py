"""What workers say of each test: no more than is shown. Six messages for each take longer than many a test of the fast
part does.
"""

from __future__ import annotations

from typing import Any

import pytest

_UNSEEN = 0.005  # seconds: --durations shows no step of a test that took less


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """In a worker: leave out when a test begins and ends, steps that only passed, and what nobody reads of others."""
    for worker in session.config.pluginmanager.get_plugins():
        if type(worker).__name__ == "WorkerInteractor":
            _say_less(worker)


def _say_less(worker: Any) -> None:
    send = worker.sendevent

    def say(name: str, **said: Any) -> None:
        if name in {"logstart", "logfinish"}:
            return
        if name == "testreport" and said["data"]["outcome"] == "passed":
            report = said["data"]
            if report["when"] != "call" and report["duration"] < _UNSEEN and not report["sections"]:
                return
            report["keywords"] = {}
        send(name, **said)

    worker.sendevent = say

"""A real Prometheus on a machine of its own, which scrapes what listens on the machine's loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from clean_machine import fetch
from clean_machine.monitoring import MonitoringMachine
from real_daemons.errors import DaemonsError
from real_daemons.furnish import write_file
from real_daemons.logs import tails

INTERVAL = 1
"""Seconds between two scrapes, and between two evaluations of the rules."""
_HOME, _LOG = "/var/lib/prometheus/fresh", "/var/log/prometheus.log"
_ADDRESS = "127.0.0.1:9090"
_START_SECONDS = 30.0
_ANSWER_SECONDS = 120.0


class PrometheusMachine(MonitoringMachine):
    """A machine whose Prometheus begins without any data: rules, a file of them; scrapes: port and labels by job."""

    def __init__(self, rules: Path, scrapes: dict[str, tuple[int, dict[str, str]]]) -> None:
        super().__init__()
        self._rules, self._scrapes = rules, scrapes

    def log_tails(self) -> str:
        """What Prometheus said last."""
        path = self.root + _LOG
        return tails([("prometheus", path)]) if os.path.exists(path) else ""

    def start_prometheus(self) -> None:
        """Start it, and wait until it answers."""
        write_file(self.root, "/etc/prometheus/drainwise.rules.yml", self._rules.read_text())
        jobs = [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]}
            for job, (port, labels) in self._scrapes.items()
        ]
        every = {"scrape_interval": f"{INTERVAL}s", "evaluation_interval": f"{INTERVAL}s"}
        settings = {"global": every, "rule_files": ["drainwise.rules.yml"], "scrape_configs": jobs}
        write_file(self.root, "/etc/prometheus/prometheus.yml", json.dumps(settings))
        words = [f"--storage.tsdb.path={_HOME}", f"--web.listen-address={_ADDRESS}"]
        command = ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", *words]
        self.run(["sh", "-c", f"setsid {' '.join(command)} </dev/null >{_LOG} 2>&1 &"])
        ready = f"http://{_ADDRESS}/-/ready"
        self.wait_for(lambda: "".join(self.fetch(ready)), _START_SECONDS, "Prometheus")

    def fetch(self, *addresses: str) -> list[str]:
        """Return what is at addresses of the machine's loopback; "" for one at which nobody answers."""
        command = self.outside_command([sys.executable, "-I", "-S", fetch.__file__])
        ran = subprocess.run(
            command, input=json.dumps(addresses), capture_output=True, text=True, check=True, timeout=_ANSWER_SECONDS
        )
        return [str(text) for text in json.loads(ran.stdout)]

    def ask(self, questions: Sequence[tuple[str, dict[str, str]]]) -> list[Any]:
        """Return the data of each answer of the HTTP API to a path below /api/v1 and parameters.

        Raises DaemonsError with the question where Prometheus calls it wrong.
        """
        addresses = [f"http://{_ADDRESS}/api/v1/{path}?{urlencode(words)}" for path, words in questions]
        found = []
        for question, text in zip(questions, self.fetch(*addresses)):
            answer = json.loads(text or "{}")
            if answer.get("status") != "success":
                raise DaemonsError(f"{question}: {answer.get('error', 'no answer')}")
            found.append(answer["data"])
        return found

    def value(self, expression: str) -> float | None:
        """Return the value of an expression now; None where it has none."""
        [found] = self.ask([("query", {"query": expression})])
        return float(found["result"][0]["value"][1]) if found["result"] else None

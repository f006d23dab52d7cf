"""A comparison's pool on a real Slurm cluster."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drainwise.siteconfig import SiteConfig
from scenario import comparison
from slurm_cluster import SlurmCluster
from slurm_site import ENDED, PACKAGE, SlurmSite

_SITE_FILE = "/etc/drainwise/site.ini"
_REMOVED = 60.0  # seconds
_WHOLE = (f"--cpus-per-task={comparison.PILOT_CORES}", "--ntasks=1")


class ComparedSlurm:
    """A running cluster of one node, with drainwise on it; see `comparison.ComparedPool`."""

    def __init__(self, site: SlurmSite) -> None:
        self.site, self.cluster = site, site.cluster
        tools = self.cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        # Slurm keeps a job that it requeued from starting for two minutes; alice submits anew instead.
        state_dir = self.cluster.path("/var/lib/drainwise")
        text = f"[slurm]\nbin_dir = {tools}\n[agent]\nstate_dir = {state_dir}\n{comparison.RECLAIM}at_deadline = end\n"
        self.cluster.write(_SITE_FILE, text)
        self._numbers: dict[str, int] = {}
        self._demand: list[int] = []

    def submit(self, mixes: Mapping[str, str]) -> None:
        """See `ComparedPool`."""
        for name, mix in mixes.items():
            self._numbers[name] = self.site.pilot(*mix.split(), options=(*_WHOLE, "--time=120"))

    def reporting(self) -> Mapping[str, int]:
        """See `ComparedPool`."""
        jobs = {job.id: job for job in self.cluster.jobs() if job.state == "RUNNING"}
        running = {name: jobs[number] for name, number in self._numbers.items() if number in jobs}
        return {name: job.start for name, job in running.items() if self.site.published(job.id)}

    def demand(self) -> None:
        """See `ComparedPool`."""
        script = f"sleep {comparison.BOBS_SECONDS}"
        self._demand = [self.cluster.submit(script, "bob", _WHOLE) for _ in range(comparison.WANTED)]

    def demand_is_met(self) -> bool:
        """See `ComparedPool`."""
        done = {job.id for job in self.cluster.jobs() if job.state == "COMPLETED"}
        return done >= set(self._demand)

    def drainwise(self, *words: str) -> Any:
        """See `ComparedPool`."""
        site_file = self.cluster.path(_SITE_FILE)
        argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", site_file, "--json"]
        environment = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        return json.loads(self.cluster.run_outside(argv, environment=environment).stdout)

    def name_of(self, order: Mapping[str, Any]) -> str:
        """See `ComparedPool`."""
        return next(name for name, number in self._numbers.items() if str(number) == order["name"])

    def account(self, name: str) -> Any:
        """See `ComparedPool`: a job's files stay in its owner's home."""
        path = Path(self.cluster.path(f"/home/alice/{self._numbers[name]}/pilot-report.json"))
        return json.loads(path.read_text(encoding="ascii")) if path.exists() else None

    def end(self, name: str) -> int | None:
        """See `ComparedPool`."""
        job = self.cluster.job(self._numbers[name])
        return job.end if job.state in ENDED else None

    def remove(self, names: Sequence[str]) -> None:
        """See `ComparedPool`."""
        numbers = [self._numbers.pop(name) for name in names]
        self.cluster.run(["scancel", *map(str, numbers)], check=False)
        self.cluster.wait_for(
            lambda: all(self.cluster.job(number).state in ENDED for number in numbers), _REMOVED, "their end"
        )

    def journal(self, policy: str) -> str:
        """See `ComparedPool`."""
        return self.cluster.path(f"/srv/{policy}.jsonl")

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str) -> Any:
        """See `ComparedPool`."""
        return self.cluster.wait_for(condition, seconds, what)


@contextlib.contextmanager
def compared_slurm(release: str) -> Iterator[ComparedSlurm]:
    """Yield a comparison's cluster of its own."""
    with SlurmCluster(nodes=1, cpus=comparison.CPUS, release=release) as cluster:
        site = SlurmSite(cluster, SiteConfig())
        site.install()
        for node in cluster.node_names:
            site.start_agent(node)
        yield ComparedSlurm(site)

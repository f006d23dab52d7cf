"""The scene of a contest on a real Slurm cluster."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drainwise.siteconfig import SiteConfig
from scenario import contest
from slurm_cluster import SlurmCluster
from slurm_site import ENDED, PACKAGE, SlurmSite

_SITE_FILE = "/etc/drainwise/site.ini"
_REMOVED = 60.0  # seconds
_WHOLE = (f"--cpus-per-task={contest.PILOT_CORES}", "--ntasks=1")


class SlurmScene:
    """A running cluster of one node, with drainwise on it; see `contest.Scene`."""

    def __init__(self, site: SlurmSite) -> None:
        self.site, self.cluster = site, site.cluster
        tools = self.cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        # Slurm keeps a job that it requeued from starting for two minutes; alice submits anew instead.
        state_dir = self.cluster.path("/var/lib/drainwise")
        text = f"[slurm]\nbin_dir = {tools}\nvacate = cancel\n[agent]\nstate_dir = {state_dir}\n{contest.RECLAIM}"
        self.cluster.write(_SITE_FILE, text)
        self._numbers: dict[str, int] = {}
        self._demand: list[int] = []

    def submit(self, mixes: Mapping[str, str]) -> None:
        """See `Scene`."""
        for name, mix in mixes.items():
            self._numbers[name] = self.site.pilot(*mix.split(), options=(*_WHOLE, "--time=120"))

    def reporting(self) -> Mapping[str, int]:
        """See `Scene`."""
        jobs = {job.id: job for job in self.cluster.jobs() if job.state == "RUNNING"}
        running = {name: jobs[number] for name, number in self._numbers.items() if number in jobs}
        return {name: job.start for name, job in running.items() if self.site.published(job.id)}

    def demand(self) -> None:
        """See `Scene`."""
        script = f"sleep {contest.BOBS_SECONDS}"
        self._demand = [self.cluster.submit(script, "bob", _WHOLE) for _ in range(contest.WANTED)]

    def demand_is_met(self) -> bool:
        """See `Scene`."""
        done = {job.id for job in self.cluster.jobs() if job.state == "COMPLETED"}
        return done >= set(self._demand)

    def drainwise(self, *words: str) -> Any:
        """See `Scene`."""
        site_file = self.cluster.path(_SITE_FILE)
        argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", site_file, "--json"]
        environment = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        return json.loads(self.cluster.run_outside(argv, environment=environment).stdout)

    def name_of(self, order: Mapping[str, Any]) -> str:
        """See `Scene`."""
        return next(name for name, number in self._numbers.items() if str(number) == order["name"])

    def account(self, name: str) -> Any:
        """See `Scene`: a job's files stay in its owner's home."""
        path = Path(self.cluster.path(f"/home/alice/{self._numbers[name]}/pilot-report.json"))
        return json.loads(path.read_text(encoding="ascii")) if path.exists() else None

    def end(self, name: str) -> int | None:
        """See `Scene`."""
        job = self.cluster.job(self._numbers[name])
        return job.end if job.state in ENDED else None

    def remove(self, names: Sequence[str]) -> None:
        """See `Scene`."""
        numbers = [self._numbers.pop(name) for name in names]
        self.cluster.run(["scancel", *map(str, numbers)], check=False)
        self.cluster.wait_for(
            lambda: all(self.cluster.job(number).state in ENDED for number in numbers), _REMOVED, "their end"
        )

    @property
    def journal(self) -> str:
        """See `Scene`."""
        return self.cluster.path("/srv/journal.jsonl")

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str) -> Any:
        """See `Scene`."""
        return self.cluster.wait_for(condition, seconds, what)


@contextlib.contextmanager
def slurm_scene(release: str) -> Iterator[SlurmScene]:
    """The scene in a cluster of its own."""
    with SlurmCluster(nodes=1, cpus=contest.CPUS, release=release) as cluster:
        site = SlurmSite(cluster, SiteConfig())
        site.install()
        for node in cluster.node_names:
            site.start_agent(node)
        yield SlurmScene(site)

"""`drainwise launch` for a batch system that is not there: its commands without a daemon, or no commands at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

import drainwise
import slurm_cluster.layout
from condor_pool.roots import recipe_of as condor_recipe
from launch_on_site import USER, Table
from real_daemons.furnish import write_file
from real_daemons.namespaces import Enclosure
from real_daemons.roots import Recipe
from real_daemons.site import CENTRAL, Site
from sge_cluster.recipe import SGE_ROOT
from sge_cluster.recipe import recipe_of as sge_recipe
from slurm_cluster.recipe import recipe_of as slurm_recipe

"""Seconds until it is given up at the latest."""
PACKAGES = "/srv/plugins"
SGE = {"bin": "/usr/lib/gridengine", "root": SGE_ROOT}
DEAF_FILE, DEAF_PORT = "/srv/schedd_address", 7777
DEAF = f"import socket, sys; it = socket.create_server(('127.0.0.1', {DEAF_PORT})); print(flush=True); sys.stdin.read()"
# Both are only done when they run at the same time.
TOGETHER = """\
touch "running/$0" "met-$0"
for try in $(seq 500); do test -e "met-$1" && break; sleep 0.02; done
rm "running/$0"; test -e "met-$1"
"""
ALONE = 'touch "running/$0"; sleep 0.2; ls running; rm "running/$0"'
JOBS: list[Table] = [
    {"name": "one", "command": ["sh", "-c", TOGETHER, "one", "two"], "resources": {"mem": 10, "tmp": 1}},
    {"name": "two", "command": ["sh", "-c", TOGETHER, "two", "one"], "resources": {"cpu": 3}},
    {"name": "unknown", "command": ["sh", "-c", ALONE, "unknown"], "resources": {"licence": 1}},
    {"name": "large", "command": ["sh", "-c", ALONE, "large"], "resources": {"mem": "100T"}},
    {"name": "said", "command": ["sh", "-c", ALONE, "said"], "resources": {"requirements": "x", "partition": "x"}},
]


class Idle(Site):
    """A machine with a batch system's programs and settings (path → text), none of whose daemons runs."""

    def __init__(self, recipe: Recipe, files: Mapping[str, str]) -> None:
        super().__init__(recipe)
        self._files = files

    def log_tails(self) -> str:
        return ""

    def _bring_up(self, enclosure: Enclosure) -> None:
        for path, text in self._files.items():
            os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
            write_file(self.root, path, text)
        enclosure.add_machine(CENTRAL, CENTRAL)
        self.copy_in(str(Path(drainwise.__file__).parents[1]), PACKAGES)


@dataclass(frozen=True)
class Case:
    """Who is asked for where. says: what the warning has. deaf: its daemon takes connections and never answers."""

    site: str
    backend: str
    says: str
    table: Mapping[str, object] = field(default_factory=dict, hash=False)
    deaf: bool = False

    def __str__(self) -> str:
        return f"{self.backend} on a machine of {self.site}{', deaf' * self.deaf}"


SITES: Mapping[str, tuple[Recipe, Mapping[str, str]]] = {
    "slurm": (
        slurm_recipe("trixie"),
        {
            f"{slurm_cluster.layout.CONFIG_DIR}/slurm.conf": slurm_cluster.layout.slurm_conf("trixie", ["node1"], 1),
            "/etc/hosts": slurm_cluster.layout.hosts_file(["node1"]),
        },
    ),
    "sge": (sge_recipe("bookworm"), {}),
    "htcondor": (condor_recipe("trixie"), {DEAF_FILE: f"<127.0.0.1:{DEAF_PORT}>\n$CondorVersion: 23.9.6 $\n"}),
}
CASES = [
    Case("slurm", "slurm", "scontrol"),
    Case("htcondor", "slurm", "scontrol"),
    Case("sge", "sge", "qstat", SGE),
    Case("slurm", "sge", "qstat", SGE),
    Case("htcondor", "htcondor", "no access point of HTCondor here"),
    Case("htcondor", "htcondor", "the schedd did not answer within 3 s", {"command_seconds": 3}, deaf=True),
    Case("sge", "htcondor", "is not installed"),
]


@dataclass(frozen=True)
class Ended:
    """A launch that has ended."""

    code: int
    jobs: dict[str, Table]
    outputs: dict[str, str]
    said: str


@pytest.fixture(scope="module")
def launches() -> Iterator[dict[Case, Future[Ended]]]:
    """All cases at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor(len(CASES)) as threads:
        sites = {name: stack.enter_context(Idle(*made)) for name, made in SITES.items()}
        command = sites["htcondor"].outside_command([sys.executable, "-c", DEAF])
        deaf = stack.enter_context(Popen(command, stdin=PIPE, stdout=PIPE))
        assert deaf.stdout is not None and deaf.stdout.readline() == b"\n"
        yield {case: threads.submit(launched, sites[case.site], case) for case in CASES}


def launched(site: Site, case: Case) -> Ended:
    """`drainwise launch --backend …` as a user on this machine."""
    place = f"/home/{USER}/{case.backend}{'-deaf' * case.deaf}"
    document = {"backends": {"local": {"cpu": 4}, case.backend: case.table}, "jobs": JOBS}
    script = f"mkdir -p {place}/running && cat >{place}/jobs.json"
    site.run(["sh", "-c", script], user=USER, stdin=json.dumps(document))
    command = ["python3", "-B", "-m", "drainwise", "launch", f"{place}/jobs.json", "--backend", case.backend, "--json"]
    environment = {"PYTHONPATH": PACKAGES, **({"_CONDOR_SCHEDD_ADDRESS_FILE": DEAF_FILE} if case.deaf else {})}
    ran = site.run(command, user=USER, check=False, environment=environment)
    jobs = {job["name"]: job for job in json.loads(ran.stdout)["jobs"]} if ran.stdout else {}
    outputs = {}
    for name, job in jobs.items():
        with open(site.root + job["output"], encoding="utf-8") as file:
            outputs[name] = file.read()
    return Ended(ran.returncode, jobs, outputs, ran.stderr)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_warning_and_its_jobs_run_here(launches: dict[Case, Future[Ended]], case: Case) -> None:
    """What can be mapped is; what is not counted here, or too large, runs alone."""
    ended = launches[case].result()
    assert ended.code == 0, ended
    said = [line for line in ended.said.splitlines() if "memory is limited for each process of a job" not in line]
    assert len(said) == 1, ended.said  # beside what this machine's control groups allow
    assert f"{case.backend} cannot be used here: " in ended.said and case.says in ended.said
    states = {name: (job["backend"], job["state"]) for name, job in ended.jobs.items()}
    assert states == dict.fromkeys((job["name"] for job in JOBS), ("local", "done"))
    assert {name: ended.outputs[name] for name in ("unknown", "large", "said")} == {
        "unknown": "unknown\n",
        "large": "large\n",
        "said": "said\n",
    }

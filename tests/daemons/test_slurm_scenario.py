"""The main job on a real Slurm cluster: the account over its share gives back the cores that cost least."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from drainwise.siteconfig import SiteConfig
from scenario.condor_site import CHEAPEST, CPUS, MIXES, NODES, PILOT_CORES
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite
from use_case_document import commands_of

pytestmark = pytest.mark.play
SITE_FILE = """\
[slurm]
bin_dir = {tools}
[agent]
state_dir = {state}
[reclaim]
policy = least-waste
grace = 1m
margin = 20s
min_age = 5s
"""
WHOLE = (f"--cpus-per-task={PILOT_CORES}", "--ntasks=1")
LATE = 75  # seconds: slurmctld looks at time limits every half minute, then KillWait passes
PACKAGES = str(Path(drainwise.__file__).parents[1])


@pytest.fixture
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """A cluster of three nodes of 24 cores with drainwise on it; atlas (alice) has twice the share of cms (bob)."""
    with SlurmCluster(nodes=NODES, cpus=CPUS, release=slurm_release) as cluster:
        site = SlurmSite(cluster, SiteConfig())
        site.install()
        for node in cluster.node_names:
            site.start_agent(node)
        yield site


def command(site: SlurmSite, site_file: Path, *words: str) -> Any:
    """What a command of the administrator prints as JSON."""
    argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", str(site_file), "--json"]
    environment = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(site.cluster.run_outside(argv, environment=environment).stdout)


def orders(plan: Any) -> dict[str, int]:
    """The jobs that a plan asks, with the deadline of each."""
    return {order["name"]: order["deadline"] for user in plan["users"] for order in user["orders"]}


def runs(site: SlurmSite) -> dict[int, int]:
    """The running jobs with their starts, UNIX s."""
    return {job.id: job.start for job in site.cluster.jobs() if job.state == "RUNNING"}


def account(site: SlurmSite, number: int) -> Any:
    """What a pilot that left by itself says of its lease."""
    path = site.cluster.path(f"/home/alice/{number}/pilot-report.json")
    return json.loads(Path(path).read_text(encoding="ascii"))


def test_the_cheapest_pilots_give_their_cores_back(site: SlurmSite, tmp_path: Path) -> None:
    """Nine pilots of alice, three jobs of bob: exactly the three that cost least leave, bob runs, six stay."""
    cluster, site_file = site.cluster, tmp_path / "site.ini"
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    site_file.write_text(SITE_FILE.format(tools=tools, state=tmp_path / "agent"))
    numbers = {name: site.pilot(*mix.split(), options=(*WHOLE, "--time=120")) for name, mix in MIXES.items()}
    names = {str(number): name for name, number in numbers.items()}
    cluster.wait_for(lambda: all(site.published(number) for number in numbers.values()), 90, "nine pilots that report")
    [query] = commands_of(9, "squeue")
    shown = cluster.run_outside(["sh", "-c", query]).stdout.splitlines()
    assert {int(line.split("\t")[0]) for line in shown} == set(numbers.values()), "the query of docs/use-cases.md"
    first_runs = runs(site)
    assert set(first_runs) == set(numbers.values())
    assert orders(command(site, site_file, "plan")) == {}, "nobody waits yet, so nobody is ordered"

    waiting = [cluster.submit("sleep 10", "bob", WHOLE) for _ in range(3)]
    cluster.wait_for(lambda: len(orders(command(site, site_file, "plan"))) == 3, 60, "a plan for three pilots")
    assert orders(command(site, site_file, "reclaim", "--once"))
    assert not [job for job in cluster.jobs() if job.id in first_runs and job.end - job.start < 7200], "a dry run acted"

    acted = command(site, site_file, "reclaim", "--once", "--act")
    ordered = orders(acted)
    assert {names[number] for number in ordered} == CHEAPEST, acted
    assert [act["outcome"] for act in acted["acts"]] == ["done"] * 3
    assert orders(command(site, site_file, "plan")) == {}, "what is on its way out is not ordered again"

    for name in ("short-1", "short-2"):
        assert site.end_of(numbers[name]).state == "COMPLETED"
        seen = account(site, numbers[name])
        assert ".site.ad" in seen["drain"]["source"]
        assert seen["core_seconds"]["lost"] == seen["core_seconds"]["failed"] == seen["requeued"] == 0
        assert seen["done"] >= 1
    deadline = ordered[str(numbers["ignores-orders"])]
    cluster.wait_for(lambda: numbers["ignores-orders"] not in runs(site), 60 + LATE, "the last one's end")
    assert site.end_of(numbers["ignores-orders"]).end <= deadline + LATE
    for number in waiting:
        assert site.end_of(number).state == "COMPLETED"

    untouched = {numbers[name] for name in set(MIXES) - CHEAPEST}
    assert {number: start for number, start in runs(site).items() if number in untouched} == {
        number: first_runs[number] for number in untouched
    }
    for name in CHEAPEST:
        [line] = cluster.accounting(numbers[name], "AdminComment")
        assert json.loads(line["AdminComment"])["drainwise"] == 1, "accounting keeps the last report"

"""A plain pilot that nobody changed, in a job of a real Slurm cluster, is seen live. What a kill loses: `four_kinds`"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from acting_agent import acting_agent
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.siteconfig.schema import ObserverSection
from outside_slurm import command, site_file
from plain_job import claim, ending_pilot, plain_pilot
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("observer", "Slurm")]
SITE = SiteConfig(
    features=FeaturesSection(hs06=Decimal(100)), observer=ObserverSection(contradictory_after=20, checkpoints="*.ckpt")
)
CORES, CLAIMED, SECONDS = 2, 8, 240.0
ENOUGH, NEVER = "/home/alice/enough", "/home/alice/never"
SCRIPTS = {
    "lie": (CLAIMED, f"{claim(1024)}sleep 3600"),
    "truth": (CLAIMED, f"{claim(1024)}mkdir truth\n{plain_pilot('/home/alice/truth', 3600)}"),
    "ends": (CORES, ending_pilot("/home/alice/ends", ENOUGH)),
    "sleeps": (1, "sleep 3600"),
    "saves": (CORES, f"(while sleep 5; do date > a.ckpt; done) &\n{ending_pilot('/home/alice/saves', NEVER)}"),
}
"""Cores and scripts of pilots that begin before the first test, since a node looks once a minute."""


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """One node with its agent."""
    cores = 2 * CORES + sum(one for one, _ in SCRIPTS.values())
    with SlurmCluster(nodes=1, cpus=cores, release=slurm_release) as cluster:
        made = SlurmSite(cluster, SITE)
        made.install()
        made.start_agent("node1")
        yield made


@pytest.fixture(scope="module")
def jobs(site: SlurmSite) -> dict[str, int]:
    """The jobs of SCRIPTS, by name."""
    found = {}
    for name, (cores, script) in SCRIPTS.items():
        site.cluster.run(["mkdir", "-p", f"/home/alice/{name}"], user="alice", node="node1")
        options = ("--time=60", f"--cpus-per-task={cores}", "--output=/dev/null", f"--chdir=/home/alice/{name}")
        found[name] = site.cluster.submit(script, "alice", options)
    for number in found.values():
        site.running(number)
    return found


@pytest.fixture
def status(site: SlurmSite, tmp_path: Path) -> Path:
    """The site file of the commands."""
    return site_file(site, tmp_path, f"[reclaim]\nstuck_after = 20s\n[metrics]\ntextfile = {tmp_path}/metrics\n")


def assert_metric(site: SlurmSite, file: Path, name: str, value: float) -> None:
    """An agent that begins now counts so many."""
    metrics = file.parent / "metrics"
    with acting_agent(site.cluster, "--pool", "slurm", "--site", str(file)):
        site.cluster.wait_for(metrics.exists, SECONDS, "a cycle of the agent")
    assert f"\n{name} {value:.1f}\n" in metrics.read_text()


def test_a_claim_of_cores_where_nothing_works_is_contradictory(
    site: SlurmSite, jobs: dict[str, int], status: Path
) -> None:
    """The same claim where payloads work is believed. A job that neither says anything nor works is not told of."""

    def standings() -> dict[str, str]:
        said = json.loads(command(site, status, "status", "--json"))
        return {one["name"]: one["standing"] for one in said["pilots"]}

    def standing(name: str) -> str | None:
        said = site.published(jobs[name])
        return None if said is None else said.standing

    site.cluster.wait_for(lambda: standing("lie") == "contradictory", SECONDS, "what its node found")
    site.cluster.wait_for(lambda: standing("truth") == "fresh", SECONDS, "an honest report")
    found = standings()
    wanted = {"lie": "contradictory", "truth": "fresh", "sleeps": "silent"}
    assert {name: found[str(jobs[name])] for name in wanted} == wanted
    assert site.published(jobs["sleeps"]) is None
    assert_metric(site, status, 'drainwise_pilots{standing="contradictory"}', 1)
    site.cluster.run(["scancel", str(jobs["truth"])])  # it works, and several pools share a machine


def test_a_pilot_whose_payloads_have_all_ended_is_stuck(site: SlurmSite, jobs: dict[str, int], status: Path) -> None:
    """And nobody else is: its node saw a payload in it before."""

    def payloads() -> int | None:
        said = site.published(jobs["ends"])
        return said.seen.payloads if said is not None and said.seen is not None else None

    site.cluster.wait_for(lambda: payloads() == 1, SECONDS, "its payload")
    Path(site.cluster.root + ENOUGH).touch()
    site.cluster.wait_for(lambda: payloads() == 0, SECONDS, "the end of its payload")
    stuck = f"1 pilot is stuck ({CORES} cores): no payload for 20s or more: {jobs['ends']}"
    site.cluster.wait_for(lambda: stuck in command(site, status, "status"), SECONDS, "a stuck pilot in its status")
    assert_metric(site, status, "drainwise_stuck_pilots", 1)


def test_the_newest_file_of_a_silent_job_tells_when_it_saved_its_work(
    site: SlurmSite, jobs: dict[str, int], status: Path
) -> None:
    """Its WorkDir is looked at each 5 minutes; what a kill loses is no more than it did since."""

    def saves() -> dict[str, Any]:
        said = json.loads(command(site, status, "status", "--json"))
        [found] = [one for one in said["pilots"] if one["name"] == str(jobs["saves"]) and "saved" in one] or [{}]
        return {**found, "now": said["taken"]} if found else {}

    one = site.cluster.wait_for(saves, 2 * SECONDS, "what it saved")
    assert one["standing"] == "observed"
    assert one["started"] < one["saved"] <= one["now"] + 1  # jobs are asked for when the time has been taken
    assert one["kill_waste"] <= CORES * max(1, one["now"] - one["saved"] + 1)

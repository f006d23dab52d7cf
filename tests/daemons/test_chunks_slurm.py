"""Pilots of several jobs on real clusters: chunk by chunk they give cores back, and no payload is lost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import chunk_pilots as pilots
from acting_agent import acting_agent
from drainwise.pilotad.report import FRESH
from drainwise.siteconfig import SiteConfig
from slurm_cluster import Job, SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("chunks", "Slurm")]
SITE_FILE = "[slurm]\nbin_dir = {tools}\n[agent]\nstate_dir = {state}\n"


@pytest.fixture
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """A cluster of one node, shared by halves, with drainwise on it."""
    with SlurmCluster(nodes=1, cpus=pilots.NODE_CORES, release=slurm_release) as cluster:
        for account in ("atlas", "cms"):
            words = ["modify", "account", account, "set", "fairshare=1"]
            cluster.run(["sacctmgr", "--immediate", *words])
        site = SlurmSite(cluster, SiteConfig())
        site.install()
        site.start_agent(cluster.node_names[0])
        yield site


def lead(site: SlurmSite, queue: str, *options: str, idle_limit: int = 20) -> int:
    """Submit a leader of alice's."""
    words = shlex.join(pilots.leader(queue, *options, idle_limit=idle_limit))
    script = f"mkdir -p $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID && exec {words}"
    wanted = ("--ntasks=1", f"--cpus-per-task={pilots.CORES}", "--time=90", "--output=/home/alice/out.%j")
    return site.cluster.submit(script, "alice", wanted)


def seen(site: SlurmSite, user: str, state: str = "RUNNING") -> list[Job]:
    """A user's jobs in a state, from an answer in which no core was given twice."""
    jobs = site.cluster.jobs()
    assert sum(job.cores for job in jobs if job.state == "RUNNING") <= pilots.NODE_CORES
    return [job for job in jobs if job.user == user and job.state == state]


def is_busy(site: SlurmSite, number: int) -> bool:
    """Whether a pilot's own report of a payload is published: who seems idle would be ordered first."""
    said = site.published(number)
    return said is not None and (said.standing, said.report.used_cpu) == (FRESH, float(pilots.CORES))


def test_chunks_give_their_cores_back_one_by_one(site: SlurmSite, tmp_path: Path) -> None:
    """Three pilots of 8 cores, each in four jobs: 12 of 24 cores go to bob's jobs of 4 and of 1 core."""
    cluster, site_file = site.cluster, tmp_path / "site.ini"
    tools = cluster.outside_env("root")["PATH"].split(":")[0]
    site_file.write_text(SITE_FILE.format(tools=tools, state=tmp_path / "agent") + pilots.RECLAIM)

    empty = pilots.queue_of("empty")
    cluster.run(["mkdir", empty], user="alice")
    alone = lead(site, empty, "--chunks", "2", "--chunk-option=--begin=now+1hour", idle_limit=2)
    assert site.end_of(alone).state == "COMPLETED"
    waited = [job for job in cluster.jobs() if job.user == "alice" and job.id != alone]
    assert [job.state for job in waited] == ["CANCELLED"] * 2, "chunk jobs that have not started go with their leader"

    queues = [pilots.queue_of(number) for number in range(pilots.LEADERS)]
    for queue in queues:
        cluster.run(["sh", "-c", pilots.filled_queue(queue)], user="alice")
    places = [Path(cluster.path(queue)) for queue in queues]
    leaders = {lead(site, queue, "--chunks", str(pilots.CHUNKS)) for queue in queues}
    cluster.wait_for(lambda: len(seen(site, "alice")) == pilots.PILOTS, 60, "leaders and chunk jobs")
    first = {job.id: job for job in seen(site, "alice")}
    assert {job.cores for job in first.values()} == {pilots.CORES}
    assert leaders < set(first)
    cluster.wait_for(lambda: all(is_busy(site, number) for number in first), 60, "a report of each pilot's payload")

    for cores in pilots.BOBS:
        cluster.submit("exec sleep 3000", "bob", ("--ntasks=1", f"--cpus-per-task={cores}", "--time=90"))

    with acting_agent(cluster, "--pool", "slurm", "--site", str(site_file)):
        cluster.wait_for(lambda: len(seen(site, "bob")) == len(pilots.BOBS), 120, "bob's jobs")
    left = {job.id for job in seen(site, "alice")}
    gone = [job for job in cluster.jobs() if job.id in set(first) - left]
    assert [job.state for job in gone] == ["COMPLETED"] * (pilots.PILOTS // 2)
    assert sum(job.cores for job in seen(site, "bob")) == sum(pilots.BOBS)
    assert all(map(pilots.kept_every_payload, places))
    assert [sorted(pilots.running_pilots(place).values()) for place in places] == [[1800, 1800]] * pilots.LEADERS

"""A plain pilot that nobody changed, in a job of a real Slurm cluster, is seen live: a kill loses what was told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from drainwise.facts.waste import kill_waste
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.slurm.jobs.admin_comment import Published
from plain_job import plain_pilot, used
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)))
CORES, SECONDS = 2, 240.0
INTERVAL = 90  # seconds: a look each minute, and the agent's rounds


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """One node with its agent."""
    with SlurmCluster(nodes=1, cpus=2 * CORES, release=slurm_release) as cluster:
        made = SlurmSite(cluster, SITE)
        made.install()
        made.start_agent("node1")
        yield made


def test_what_a_kill_loses_is_what_was_told(site: SlurmSite) -> None:
    """To a tenth, or what is used between two looks."""
    work = Path(f"{site.cluster.root}/home/alice")
    options = ("--time=60", f"--cpus-per-task={CORES}", "--output=/dev/null")
    number = site.cluster.submit(plain_pilot("/home/alice", 900, between=10), "alice", options)
    site.running(number)

    def seen() -> Published | None:
        said = site.published(number)
        return said if said is not None and said.seen is not None and said.seen.payloads == 2 else None

    said = site.cluster.wait_for(seen, SECONDS, "two payloads")
    assert said is not None and said.seen is not None
    assert said.standing == "observed" and said.seen.client == "plain"
    assert 8 <= said.seen.begins[1] - said.seen.begins[0] <= 20
    site.cluster.wait_for(lambda: used(work) > 15, SECONDS, "some work")
    last = site.published(number)
    assert last is not None
    report, now = last.report, int(time.time())
    assert None not in (report.add_uncom_time, report.used_cpu, report.last_job_start)
    told = kill_waste(report.add_uncom_time or 0.0, report.used_cpu or 0.0, report.last_job_start or 0, now)
    site.cluster.run(["scancel", "--signal=KILL", "--full", str(number)])
    site.cluster.wait_for(lambda: site.cluster.job(number).state != "RUNNING", 60, "the end of the job")
    lost = used(work)
    print(f"{site.cluster.release}: kill waste {told:.1f}, lost {lost:.1f} core-seconds")
    assert told == pytest.approx(lost, rel=0.1, abs=said.seen.cores_busy * INTERVAL)


def test_a_job_in_which_nothing_works_publishes_nothing(site: SlurmSite) -> None:
    """As before."""
    options = ("--time=60", "--cpus-per-task=1", "--output=/dev/null")
    number = site.cluster.submit("sleep 600", "alice", options)
    site.running(number)
    time.sleep(100)
    assert site.published(number) is None
    site.cluster.run(["scancel", str(number)])

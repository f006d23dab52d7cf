"""Slurm 24.11 becomes 26.05 below jobs that run, one of them ordered: slurmdbd first, then slurmctld, then each slurmd.

As a package manager does it: the new release's files take the old ones' places while every daemon runs on, then the
daemons are restarted one after the other. All machines of a test cluster share one tree, so that commands and plugins
are new everywhere from the first moment.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

import slurm_cluster
from drainwise.facts.errors import PoolError
from drainwise.pool.facts import Pilot
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.snapshot import SiteRules
from new_release import bring
from slurm_cluster import Job, SlurmCluster
from slurm_site import SECONDS, SlurmSite

pytestmark = pytest.mark.in_turn("two releases at once", "live upgrade on Slurm")
HOUR = 3600
PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"


@pytest.fixture
def site() -> Iterator[SlurmSite]:
    """Two nodes of 8 cores with 24.11, each with the node's agent."""
    with SlurmCluster(2, 8, "trixie") as cluster:
        made = SlurmSite(cluster, SiteConfig())
        made.install()
        for node in cluster.node_names:
            made.start_agent(node)
        yield made


def pool_of(cluster: SlurmCluster) -> SlurmPool:
    return SlurmPool(
        SlurmSection(bin_dir=cluster.outside_env()["PATH"].partition(":")[0], command_timeout=60),
        SiteRules(24 * HOUR),
    )


def pilot_of(pool: SlurmPool, job: Job) -> Pilot:
    [found] = [one for one in pool.snapshot(int(time.time())).pilots if one.name == job.label]
    return found


def test_an_order_stands_and_nobody_is_harmed(site: SlurmSite) -> None:
    """After each step every job runs since when it ran to the end that it had; then an order can be withdrawn, another
    given, and what Slurm of before started is ended by Slurm of now.
    """
    cluster = site.cluster
    size = ("--time=20:00:00", "--cpus-per-task=8")
    ordered = site.running(site.pilot("8x3000", options=size))
    other = site.running(cluster.submit("exec sleep 3000", "alice", ["--ntasks=1", *size]))
    waiting = cluster.submit("exit 0", "bob", ["--ntasks=1", "--cpus-per-task=8", "--time=10"])
    pool = pool_of(cluster)
    cluster.wait_for(lambda: cluster.accounting(other.id, "State"), SECONDS, "the records of the jobs")
    deadline = int(time.time()) + 2 * HOUR
    pool.give_order(pilot_of(pool, ordered), deadline, "bob waits")

    def notice() -> str:
        """What the node tells the ordered pilot; "" for nothing."""
        path = site.tree(ordered) / ".jobstatus/.site.ad"  # by the slurmd that runs now
        return path.read_text() if path.exists() else ""

    told, shortened = cluster.wait_for(notice, SECONDS, "the order to be told"), cluster.job(ordered.id).end
    before = {one.id: (one.state, one.start, one.nodes, one.end) for one in cluster.jobs() if one.state == "RUNNING"}
    assert set(before) == {ordered.id, other.id} and abs(shortened - deadline) <= 60
    assert cluster.version[:2] == (24, 11)

    def is_as_before() -> None:
        now = {one.id: (one.state, one.start, one.nodes, one.end) for one in cluster.jobs()}
        assert {number: now[number] for number in before} == before
        assert now[waiting][0] == "PENDING"
        assert notice() == told
        pilots = {one.name: one.deadline for one in pool.snapshot(int(time.time())).pilots}
        assert pilots == {ordered.label: shortened, other.label: None}

    is_as_before()
    bring(cluster, slurm_cluster.obtain_root("sid"), PLUGINS)
    assert cluster.version[:2] == (26, 5)
    with pytest.raises(PoolError):
        pool.snapshot(int(time.time()))  # its slurmctld is too old for the new commands, and a line says so
    assert notice() == told
    for daemon in ("slurmdbd", "slurmctld", *cluster.node_names):
        cluster.kill_daemon(daemon, signal.SIGTERM)
        cluster.start_daemon(daemon)
        if daemon != "slurmdbd":
            cluster.wait_until_complete()
            is_as_before()
    for node in cluster.node_names:
        site.stop_agent(node)
        site.start_agent(node)
    is_as_before()

    pool.withdraw_order(pilot_of(pool, ordered), "bob waits no more")
    cluster.wait_for(lambda: not notice(), SECONDS, "the order to be taken back")
    assert cluster.job(ordered.id).end == ordered.end
    soon = int(time.time()) + 45
    pool.give_order(pilot_of(pool, other), soon, "bob waits")
    assert site.end_of(other.id).state == "TIMEOUT"
    assert site.end_of(waiting).state == "COMPLETED"
    assert cluster.job(ordered.id).state == "RUNNING"
    cluster.cancel_all()

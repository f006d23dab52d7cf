"""On real clusters: whose a shortened lease is, what an order leaves behind, and who is leaving already."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import slurm_cluster
from drainwise.facts.scope_rules import Scope, ScopeRules
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.quota import WhatIf
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.snapshot import SiteRules
from slurm_cluster import Job, Qos, SlurmCluster
from slurm_cluster.layout import Account

pytestmark = pytest.mark.play
HOUR = 3600
SETTINGS = ReclaimSettings(
    policy="least-waste",
    horizon=2 * HOUR,
    grace=HOUR,
    max_grace=24 * HOUR,
    heartbeat_limit=600,
    max_cores=1000,
    max_cores_per_user=1000,
    max_cores_per_user_hour=1000,
    min_age=0,
    drain_only=False,
)
PREEMPTION = "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nKillWait=20\n"


@pytest.fixture(scope="module", params=["trixie", "sid"])
def release(request: pytest.FixtureRequest) -> str:
    """Slurm 24.11 and 26.05: their accounting answers in other words."""
    slurm_cluster.obtain_root(str(request.param))
    return str(request.param)


@pytest.fixture(scope="module")
def running(release: str) -> Iterator[SlurmCluster]:
    accounts = (Account("atlas", 1, ("alice",)), Account("cms", 9, ("bob",)))
    qos = (Qos("owner", ("Preempt=normal",)), Qos("scavenge", ("GraceTime=10",)))
    with SlurmCluster(2, 8, release, PREEMPTION, accounts, qos) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: SlurmCluster) -> Iterator[SlurmCluster]:
    yield running
    running.cancel_all(90)


def pool_of(cluster: SlurmCluster, scope: ScopeRules = ScopeRules()) -> SlurmPool:  # noqa: B008 - immutable
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    return SlurmPool(SlurmSection(bin_dir=tools, command_timeout=60), SiteRules(24 * HOUR, scope=scope))


def now() -> int:
    return int(time.time())


def start(cluster: SlurmCluster, user: str, *options: str, script: str = "exec sleep 1000") -> Job:
    """A job that runs, and that the accounting knows."""
    number = cluster.submit(script, user, [*(() if "--ntasks=2" in options else ("--ntasks=1",)), *options])
    cluster.wait_for(lambda: cluster.job(number).state == "RUNNING", 30, f"job {number} to run")
    cluster.wait_for(lambda: cluster.accounting(number, "State"), 30, f"the record of job {number}")
    return cluster.job(number)


def wait(cluster: SlurmCluster, *options: str) -> int:
    """A job of bob's that waits for room."""
    number = cluster.submit("exec sleep 1000", "bob", ["--ntasks=1", *options])
    cluster.wait_for(lambda: cluster.job(number).reason in {"Resources", "Priority"}, 30, f"job {number} to wait")
    return number


def ordered(snapshot: Snapshot) -> list[str]:
    return [order.pilot.name for order in make_plan(snapshot, snapshot.taken, SETTINGS).orders]


def test_who_shortens_its_own_leases_keeps_no_cores_from_others(cluster: SlurmCluster) -> None:
    """A minute less than twelve hours, and still a pilot goes for who waits; one that ends in an hour is enough."""
    jobs = [start(cluster, "alice", "--cpus-per-task=8", "--time=12:00:00") for _ in range(2)]
    for job in jobs:
        cluster.run(["scontrol", "update", f"JobId={job.id}", f"EndTime=uts{job.end - 61}"], user="alice")
    wait(cluster, "--cpus-per-task=8", "--time=10")
    pool = pool_of(cluster)
    assert len(ordered(pool.snapshot(now()))) == 1
    cluster.run(["scontrol", "update", f"JobId={jobs[0].id}", f"EndTime=uts{now() + HOUR}"], user="alice")
    assert ordered(pool.snapshot(now())) == []


def test_a_job_that_is_requeued_has_its_limit_back(cluster: SlurmCluster) -> None:
    """Slurm keeps the minutes that an order left it, for each later run; the record says what was granted."""
    job, pool = start(cluster, "alice", "--cpus-per-task=8", "--time=20:00:00", "--requeue"), pool_of(cluster)
    [pilot] = [one for one in pool.snapshot(now()).pilots if one.name == job.label]
    for seconds in (3615, 1811, 115):  # each nearer end leaves up to a minute and a half more of the limit
        pool.give_order(pilot, now() + seconds, "bob waits")
    cluster.run(["scontrol", "requeue", str(job.id)])
    cluster.wait_for(lambda: cluster.job(job.id).state == "PENDING", 60, "the job to wait again")
    assert cluster.run(["squeue", "--noheader", f"--jobs={job.id}", "--format=%l"]).stdout.strip() != "20:00:00"

    done = list[str]()

    def is_given_back() -> bool:
        done.extend(pool.follow_up(pool.snapshot(now())))
        return bool(done)

    cluster.wait_for(is_given_back, 60, "the limit to be given back")
    assert cluster.run(["squeue", "--noheader", f"--jobs={job.id}", "--format=%l"]).stdout.strip() == "20:00:00"
    assert pool.follow_up(pool.snapshot(now())) == []


def test_a_lease_that_root_made_longer_meanwhile_is_left_by_a_withdrawal(cluster: SlurmCluster) -> None:
    """It was four hours, an order made it one, root gave it five."""
    job, pool = start(cluster, "alice", "--cpus-per-task=8", "--time=4:00:00"), pool_of(cluster)
    [pilot] = pool.snapshot(now()).pilots
    pool.give_order(pilot, now() + HOUR, "bob waits")
    cluster.run(["scontrol", "update", f"JobId={job.id}", "TimeLimit=5:00:00"])
    longer = cluster.job(job.id).end
    pool.withdraw_order(replace(pilot, deadline=longer), "nobody waits")
    assert cluster.job(job.id).end == longer > job.end


def test_an_order_can_be_withdrawn_where_slurmdbd_heard_of_the_job_late(cluster: SlurmCluster) -> None:
    """sacctmgr says in other words on 26.05 that there is no record yet: the order waits for it."""
    cluster.kill_daemon("slurmdbd")
    number = cluster.submit("exec sleep 1000", "alice", ["--ntasks=1", "--time=4:00:00"])
    cluster.wait_for(lambda: cluster.job(number).state == "RUNNING", 30, f"job {number} to run")
    cluster.start_daemon("slurmdbd")
    pool, end = pool_of(cluster), cluster.job(number).end
    [pilot] = pool.snapshot(now()).pilots
    pool.give_order(pilot, now() + HOUR, "bob waits")
    assert cluster.job(number).end < end
    pool.withdraw_order(pilot, "nobody waits")
    assert cluster.job(number).end == end


def test_who_is_preempted_by_slurm_itself_is_leaving(cluster: SlurmCluster) -> None:
    """While it is ended it waits again and has no start; its cores are on their way, so no further pilot goes."""
    stubborn = "trap '' TERM\nwhile :; do sleep 1; done"
    jobs = [start(cluster, "alice", "--cpus-per-task=8", "--requeue", script=stubborn) for _ in range(2)]
    cluster.submit("exec sleep 1000", "bob", ["--ntasks=1", "--cpus-per-task=8", "--qos=owner"])

    def completing() -> list[str]:
        return [job.label for job in cluster.jobs() if job.state == "COMPLETING"]

    cluster.wait_for(completing, 60, "Slurm to preempt a job")
    snapshot = pool_of(cluster).snapshot(now())
    leaving = [one.name for one in snapshot.pilots if one.leaving]
    assert leaving == completing() and len(leaving) == 1
    assert {one.name for one in snapshot.pilots} == {job.label for job in jobs}
    assert ordered(snapshot) == []


def test_only_jobs_in_scope_are_ordered(cluster: SlurmCluster) -> None:
    """By quality of service, licence and name as Slurm tells them of running jobs; also for a request."""
    dear = start(cluster, "alice", "--cpus-per-task=8", "--job-name=interactive")
    cheap = start(cluster, "alice", "--cpus-per-task=8", "--job-name=batch")
    wait(cluster, "--cpus-per-task=8", "--time=10")
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    section = SlurmSection(bin_dir=tools, command_timeout=60)
    for rules, chosen in (
        (ScopeRules(exempt="name=interactive"), cheap.label),
        (ScopeRules(preemptible="name=interactive qos=normal"), dear.label),
        (ScopeRules(preemptible="user=alice", exempt="partition=*"), ""),
        (ScopeRules(preemptible="licence=*"), ""),
    ):
        snapshot = SlurmPool(section, SiteRules(24 * HOUR, scope=rules)).snapshot(now())
        settings = replace(SETTINGS, scope=rules)
        plan = make_plan(snapshot, snapshot.taken, settings)
        assert [order.pilot.name for order in plan.orders] == [chosen][: bool(chosen)], plan
        out = [text for text in plan.notices if "out of scope" in text]
        assert len(out) == 1 and "[reclaim]" in out[0]
        asked = make_plan(snapshot, snapshot.taken, settings, what_if=WhatIf(16))
        assert {order.pilot.name for order in asked.orders} <= {chosen}


def test_a_silent_job_of_two_nodes_is_ordered_where_the_scope_says_so(cluster: SlurmCluster) -> None:
    start(cluster, "alice", "--nodes=2", "--ntasks=2", "--cpus-per-task=4", "--job-name=wide")
    for _ in range(2):
        start(cluster, "alice", "--cpus-per-task=4", "--job-name=single")
    wait(cluster, "--cpus-per-task=4", "--time=10")
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    section = SlurmSection(bin_dir=tools, command_timeout=60)
    wide = (Scope("wide", "name=wide", None, True),)
    for rules, orders in ((ScopeRules(exempt="name=single"), 0), (ScopeRules(exempt="name=single", scopes=wide), 1)):
        snapshot = SlurmPool(section, SiteRules(24 * HOUR, scope=rules)).snapshot(now())
        assert len(make_plan(snapshot, snapshot.taken, replace(SETTINGS, scope=rules)).orders) == orders


def test_a_run_is_requeued_at_its_deadline_with_its_limit(cluster: SlurmCluster) -> None:
    """Warned before that by its QOS's GraceTime; one whose owner does not let it has an order as any other."""
    step = "srun --overlap sh -c 'trap \"touch /tmp/warned.$SLURM_JOB_ID\" TERM; while :; do sleep 0.2; done'"
    kept = start(cluster, "alice", "--cpus-per-task=4", "--time=20:00:00", "--requeue", "--qos=scavenge", script=step)
    loop = "trap 'touch /tmp/signalled.$SLURM_JOB_ID' USR1\nwhile :; do sleep 0.2; done"
    own = ("--no-requeue", "--signal=B:USR1@60")
    ends = start(cluster, "alice", "--cpus-per-task=4", "--time=20:00:00", *own, script=loop)
    pool = pool_of(cluster, ScopeRules(at_deadline="requeue"))
    seen = {one.name: one for one in pool.snapshot(now()).pilots}
    assert [seen[one.label].lead for one in (kept, ends)] == [10, None]
    deadline = now() + 30
    for job in (kept, ends):
        pool.give_order(seen[job.label], deadline, "bob waits")

    def is_done() -> bool:
        said.extend(pool.follow_up(pool.snapshot(now())))
        return any("is requeued at its deadline" in line for line in said)

    said = list[str]()
    cluster.wait_for(is_done, 60, "the run to be requeued")
    assert now() < deadline, said
    assert any("was sent SIGTERM" in line for line in said), said
    cluster.wait_for(lambda: cluster.job(kept.id).state == "PENDING", 60, "the job to wait again")
    assert cluster.run(["squeue", "--noheader", f"--jobs={kept.id}", "--format=%l"]).stdout.strip() == "20:00:00"
    said_of = ["sacct", "-X", "-D", "-n", "-P", f"--jobs={kept.id}", "--format=State,SystemComment"]
    earlier, later = cluster.run(said_of).stdout.splitlines()
    assert earlier.startswith("REQUEUED|drainwise: ordered to end by") and later == "PENDING|"
    [ended] = pool.endings([f"{kept.id}@{kept.start}"], now()).values()
    assert ended.vacated and cluster.job(ends.id).end < deadline + 1
    assert os.path.exists(cluster.path(f"/tmp/warned.{kept.id}", kept.nodes[0]))
    signalled = cluster.path(f"/tmp/signalled.{ends.id}", ends.nodes[0])
    cluster.wait_for(lambda: os.path.exists(signalled), 40, "the signal that the job itself asked for")


def test_by_preemption_only_what_slurm_would_preempt_is_ordered(release: str) -> None:
    """The job of the QOS that the waiting one's may preempt, of its own account; by shares it were atlas's."""
    accounts = (Account("atlas", 1, ("alice",)), Account("cms", 9, ("bob",)))
    qos = Qos("scavenge"), Qos("owner", ("Preempt=scavenge",))
    spares_all = f"{PREEMPTION}PreemptParameters=min_exempt_priority=1\n"
    with SlurmCluster(1, 8, release, spares_all, accounts, qos) as cluster:
        dear = [start(cluster, "alice", "--cpus-per-task=2") for _ in range(2)]
        cheap = start(cluster, "bob", "--cpus-per-task=4", "--qos=scavenge")
        site = SiteRules(24 * HOUR, preemption=True)
        tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        pool = SlurmPool(SlurmSection(bin_dir=tools, command_timeout=60), site)
        number = wait(cluster, "--cpus-per-task=2", "--time=10")
        [by_shares] = ordered(pool_of(cluster).snapshot(now()))
        assert by_shares in {one.label for one in dear}
        assert ordered(pool.snapshot(now())) == []
        cluster.run(["scancel", str(number)])
        wait(cluster, "--cpus-per-task=2", "--time=10", "--qos=owner")
        plan = make_plan(pool.snapshot(now()), now(), SETTINGS)
        assert [(one.pilot.name, one.pilot.account) for one in plan.orders] == [(cheap.label, "cms (preemptible)")]
        pool.give_order(plan.orders[0].pilot, now() + 60, "wanted")
        assert cluster.job(cheap.id).end <= now() + 60 < cluster.job(dear[0].id).end

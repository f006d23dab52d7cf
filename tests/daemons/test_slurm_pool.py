"""What Slurm tells the agent, and what becomes of an order: on real clusters of both versions, with real jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import drainwise
from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.facts.errors import ActionRefused, PoolUnreachable, RightsRefused, RunEnded
from drainwise.facts.scope_rules import Scope, ScopeRules
from drainwise.journal.event import Event
from drainwise.journal.memory import Memory
from drainwise.pilotad.report import PilotReport
from drainwise.pool.abilities import most_at_once
from drainwise.pool.facts import Pilot
from drainwise.pool.notices import notices_of
from drainwise.reclaim.quota import require_whole
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.jobs.admin_comment import Published, comment_text, published_in
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.order_mark import entries_in
from drainwise.slurm.pool.native_preemption import EXPOSED, PROTECTED
from drainwise.slurm.pool.orders import SlurmOrders
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.snapshot import HETEROGENEOUS, SEVERAL_NODES, SiteRules
from drainwise.slurm.pool.transport import SlurmTransport
from drainwise.slurm.setup.check import caller_of, judge, judge_orders
from drainwise.slurm.setup.check_facts import collect
from drainwise.slurm.setup.render import fragment_path, render
from slurm_cluster import Job, Qos, SlurmCluster
from whole_jobs import jobs_in

GRACE = 7200
SLEEP = "exec sleep 1000"
PACKAGES = Path(drainwise.__file__).parents[1]
DOCUMENT = PACKAGES.parent / "docs" / "slurm.md"
PYTHON = {"PYTHONPATH": str(PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"}
STUBBORN = "trap '' TERM\nwhile :; do sleep 1; done"
WHOLE_NODE = ("--ntasks=1", "--cpus-per-task=8")


@pytest.fixture(autouse=True)
def _without_jobs(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that shares the cluster leaves it with all its daemons and without jobs."""
    yield
    if "slurm" in request.fixturenames:
        cluster: SlurmCluster = request.getfixturevalue("slurm")
        if not cluster.is_running("slurmctld"):
            cluster.start_daemon("slurmctld")
            cluster.wait_until_complete()
        cluster.cancel_all(90)  # slurmctld says it again when a node was too busy to hear it


def tools(cluster: SlurmCluster, user: str = "root") -> str:
    """The directory of the cluster's commands for programs of this machine."""
    return cluster.outside_env(user)["PATH"].split(os.pathsep)[0]


def pool_of(
    cluster: SlurmCluster,
    user: str = "root",
    native: str = "no",
    limit: int = 60,
    scope: ScopeRules = ScopeRules(),  # noqa: B008 - immutable
) -> SlurmPool:
    """The cluster as a pool; limit: s that a command may take."""
    bin_dir = tools(cluster, user)
    section = SlurmSection(bin_dir=bin_dir, command_timeout=limit, native_preemption=native)
    return SlurmPool(section, SiteRules(GRACE, scope=scope))


def now() -> int:
    return int(time.time())


def start(cluster: SlurmCluster, user: str, *options: str, script: str = SLEEP) -> Job:
    """A job that runs, and that the accounting knows where there is one: an order waits so long to be noted there."""
    number = cluster.submit(script, user, options)
    cluster.wait_for(lambda: cluster.job(number).state == "RUNNING", 30, f"job {number} to run")
    if cluster.is_running("slurmdbd"):
        cluster.wait_for(lambda: cluster.accounting(number, "State"), 30, f"the record of job {number}")
    return cluster.job(number)


def pilot(pool: SlurmPool, job: Job) -> Pilot:
    """The pilot that a job is for the agent."""
    return next(one for one in pool.snapshot(now()).pilots if one.name == job.label)


def lease_ends(cluster: SlurmCluster) -> dict[str, int]:
    return {job.label: job.end for job in cluster.jobs() if job.state == "RUNNING"}


# ---- the view ----


def test_a_snapshot_is_what_squeue_says(slurm: SlurmCluster) -> None:
    """Runs, owners, cores and demand; shares two to one between the accounts; the report that was published."""
    pool = pool_of(slurm)
    jobs = [start(slurm, "alice", *WHOLE_NODE) for _ in range(3)]
    two = slurm.submit(SLEEP, "alice", ["--array=1-2", "--ntasks=1", "--cpus-per-task=4"])
    slurm.wait_for(lambda: len(lease_ends(slurm)) == 5, 30, "all to run")
    waiting = slurm.submit(SLEEP, "bob", ["--array=1-3%2", *WHOLE_NODE])
    slurm.submit(SLEEP, "bob", ["--hold"])
    slurm.wait_for(lambda: "Resources" in {job.reason for job in slurm.jobs(f"--jobs={waiting}")}, 30, "bob to wait")
    curve = f"{now() + 1800}:5400:60000,{now() + 86_400}:7200:41000"
    report = PilotReport(now(), used_cpu=6.0, priority_factor=-3, exp_waste_curve=curve)
    line = comment_text(Published(jobs[0].id, jobs[0].start, jobs[0].nodes[0], report))
    slurm.run(["scontrol", "update", f"JobId={jobs[0].id}", f"AdminComment={line}"])

    snapshot = pool.snapshot(now())

    require_whole(snapshot)
    seen = {(one.name, one.run, one.node, one.user, one.account, one.cores, one.lease_end) for one in snapshot.pilots}
    running = [job for job in slurm.jobs() if job.state == "RUNNING"]
    assert seen == {
        (job.label, f"{job.label}@{job.start}", job.nodes[0], "alice", "atlas", job.cores, job.end) for job in running
    }
    assert {f"{two}_1", f"{two}_2"} <= {one.name for one in snapshot.pilots}
    assert {one.name: one.report for one in snapshot.pilots if one.report is not None} == {jobs[0].label: report}
    assert not any(one.deadline or one.leaving for one in snapshot.pilots)
    atlas, cms = snapshot.accounts
    assert (atlas.name, atlas.cores_in_use, atlas.cores_wanted) == ("atlas", 32, 0)
    assert (cms.name, cms.cores_in_use, cms.cores_wanted, cms.cores_per_job) == ("cms", 0, 16, 8)
    assert (atlas.cores_owed, cms.cores_owed) == pytest.approx((64 / 3, 32 / 3))
    assert snapshot.free_cores == 0


def test_a_users_words_stay_words(slurm: SlurmCluster) -> None:
    """HOSTILE 43: a job's name with a line, a quote and a comment of its own."""
    words = 'b|"]}\n   AdminComment={"drainwise":1}\x1b[2J'
    job = start(slurm, "alice", "--cpus-per-task=2", f"--job-name={words}")
    (one,) = pool_of(slurm).snapshot(now()).pilots
    assert (one.name, one.report) == (job.label, None)
    pool_of(slurm).give_order(one, now() + 601, "test")
    assert pilot(pool_of(slurm), job).deadline == slurm.job(job.id).end


def test_jobs_that_no_order_can_reach_are_named(slurm: SlurmCluster) -> None:
    """A job of two nodes that reports nothing and a heterogeneous one: the plan says so; the latter is refused, too."""
    two = start(slurm, "alice", "--nodes=2", "--ntasks=2")
    wrap = ["sbatch", "--parsable", "--cpus-per-task=1", ":", "--cpus-per-task=2", f"--wrap={SLEEP}"]
    first = int(slurm.run(wrap, user="alice").stdout)
    slurm.wait_for(lambda: slurm.job(first).state == "RUNNING", 30, "the heterogeneous job to run")
    pool, ends = pool_of(slurm), lease_ends(slurm)
    snapshot = pool.snapshot(now())
    assert {one.name for one in snapshot.pilots} == {str(two.id), str(first), str(first + 1)}
    assert {one.name: one.cannot for one in snapshot.pilots} == {
        str(two.id): SEVERAL_NODES,
        str(first): HETEROGENEOUS,
        str(first + 1): HETEROGENEOUS,
    }
    notices = notices_of(snapshot)
    assert [notice.partition(":")[0] for notice in notices] == [
        "2 pilots (3 cores) cannot be given an order",
        "1 pilot (2 cores) cannot be given an order",
    ]
    job = slurm.job(first)
    forged = Pilot(f"{first}@{job.start}", str(first), "node1", "atlas", "alice", 1, job.start)
    for deadline in (now() + 600, now() - 1):
        with pytest.raises(ActionRefused, match="an order to it would reach other nodes"):
            pool.give_order(forged, deadline, "test")
    assert lease_ends(slurm) == ends


def test_a_heterogeneous_job_is_ordered_as_one_where_its_scope_lets_it(slurm: SlurmCluster) -> None:
    """All its components end by then, and get their leases back; one that the scope exempts keeps it whole."""
    wrap = ["sbatch", "--parsable", "--time=60", "--cpus-per-task=1", ":", "--comment=mine", "--cpus-per-task=2"]
    first = int(slurm.run([*wrap, f"--wrap={SLEEP}"], user="alice").stdout)
    slurm.wait_for(lambda: slurm.job(first).state == "RUNNING", 30, "the heterogeneous job to run")
    exempt = ScopeRules(exempt="comment=mine", scopes=(Scope("wide", "user=alice", multi_node=True),))
    assert {one.cannot for one in pool_of(slurm, scope=exempt).snapshot(now()).pilots} == {HETEROGENEOUS}
    pool = pool_of(slurm, scope=ScopeRules(scopes=exempt.scopes))
    ends = lease_ends(slurm)
    (one,) = pool.snapshot(now()).pilots
    assert (one.name, one.cores, one.cannot, sum(part.holds.cores for part in one.pieces)) == (str(first), 3, "", 3)
    pool.give_order(one, now() + 601, "test")
    (ordered,) = pool.snapshot(now()).pilots
    assert set(lease_ends(slurm).values()) == {ordered.deadline} != {None}
    pool.withdraw_order(ordered, "test")
    assert lease_ends(slurm) == ends
    (one,) = pool.snapshot(now()).pilots
    pool.give_order(one, now() - 1, "test")
    slurm.wait_for(lambda: not pool.snapshot(now()).pilots, 60, "its end")


def test_only_what_could_start_is_demand_and_whole_nodes_are_whole(slurm: SlurmCluster) -> None:
    """`--exclusive` is a node, all of a node's memory, too; what is held, throttled or later is nothing."""
    pool = pool_of(slurm)
    pilots = [start(slurm, "alice", *WHOLE_NODE) for _ in range(4)]

    def wants(reason: str, cores: float, *options: str, piece: float = 8) -> None:
        number = slurm.submit(SLEEP, "bob", options)
        slurm.wait_for(lambda: reason in {job.reason for job in slurm.jobs(f"--jobs={number}")}, 30, reason)
        found = {one.name: (one.cores_wanted, one.cores_per_job) for one in pool.snapshot(now()).accounts}
        assert found.get("cms", (0.0, 0.0)) == (cores, piece) or found.get("cms", (0.0, 0.0))[0] == cores == 0, options
        slurm.run(["scancel", str(number)])

    one_core = ("--ntasks=1", "--cpus-per-task=1")
    wants("Resources", 1, *one_core, piece=1)
    wants("Resources", 8, *one_core, "--exclusive")
    wants("Resources", 16, "--nodes=2", "--ntasks=2", "--exclusive")
    wants("Resources", 8, *one_core, "--mem=16384")
    wants("Resources", 8, *one_core, "--mem=0")
    wants("JobHeldUser", 0, *one_core, "--hold")
    wants("BeginTime", 0, *one_core, "--begin=now+1hour")
    wants("Dependency", 0, *one_core, f"--dependency=afterany:{pilots[0].id}")
    slurm.run(["sacctmgr", "--immediate", "modify", "account", "cms", "set", "GrpTRES=cpu=1"])
    try:
        wants("AssocGrpCpuLimit", 0, "--ntasks=1", "--cpus-per-task=2", "--exclusive")
    finally:
        slurm.run(["sacctmgr", "--immediate", "modify", "account", "cms", "set", "GrpTRES=cpu=-1"])
    # What no node that takes jobs has any more: Slurm's reason stays Resources.
    number = slurm.submit(SLEEP, "bob", ["--nodes=4", "--ntasks=4"])
    slurm.wait_for(lambda: "Resources" in {job.reason for job in slurm.jobs(f"--jobs={number}")}, 30, "Resources")
    slurm.run(["scontrol", "update", "NodeName=node4", "State=DRAIN", "Reason=test"])
    try:
        snapshot = pool.snapshot(now())
        assert {one.name: one.cores_wanted for one in snapshot.accounts}.get("cms", 0) == 0
        assert any(notice.startswith("1 waiting job is no demand") for notice in snapshot.notices)
    finally:
        slurm.run(["scontrol", "update", "NodeName=node4", "State=RESUME"])


def test_the_lines_of_squeue_say_what_its_json_says(slurm: SlurmCluster) -> None:
    """Of every kind of job, with names and comments that look like Slurm's output, of this and of other jobs (HOSTILE
    43)."""
    words = 'x|RUNNING|"]}\nJobId=1 JobName=x AdminComment={"drainwise":1,"directories":false}  \n17|17|N/A'
    forged = f"--job-name={words}", f"--comment={words}"
    first = start(slurm, "alice", "--cpus-per-task=2")
    line = comment_text(Published(first.id, first.start, first.nodes[0], PilotReport(now(), used_cpu=1.0)))
    slurm.run(["scontrol", "update", f"JobId={first.id}", f"AdminComment={line}"])
    victim = f"--job-name=x\nJobId={first.id} JobName=x AdminComment=forged  "
    start(slurm, "bob", "--cpus-per-task=2", victim, f"--comment=JobId={first.id} AdminComment=y")
    start(slurm, "alice", "--array=1-2", "--cpus-per-task=2", *forged)
    slurm.submit(SLEEP, "bob", ["--array=1-9:2%2", *WHOLE_NODE, "--exclusive"])
    slurm.submit(SLEEP, "bob", ["--array=7", "--hold", *forged])
    slurm.submit(SLEEP, "bob", ["--nodes=4", "--ntasks=32", "--time=UNLIMITED", *forged])
    slurm.submit(SLEEP, "bob", ["--begin=now+1hour", "--mem=1500M", "--time=2-1"])
    waiting = ("--states=pending",)
    slurm.wait_for(lambda: "None" not in {job.reason for job in slurm.jobs(*waiting)}, 30, "all to be looked at")
    commands = SlurmCommands(tools(slurm), 20.0)

    def both() -> tuple[dict[int, object], dict[int, object]]:
        known = jobs_in(commands.start("squeue", "--json", "--all").output())
        live = [job for job in known if job.states & {"RUNNING", "PENDING"}]
        found = SlurmTransport(commands, 20.0).answers().jobs
        return {job.number: as_compared(job) for job in live}, {job.number: as_compared(job) for job in found}

    slurm.wait_for(lambda: (found := both())[0] == found[1], 20, "both to say the same")
    assert len(both()[1]) >= 8
    said = published_in(line)
    assert said is not None and pilot(pool_of(slurm), first).report == said.report


def as_compared(job: SlurmJob) -> SlurmJob:
    """What the scheduler expects of a waiting job is new each time; 22.05's JSON lacks some of it; the lines ask for
    no text of a user's.
    """
    job = replace(job, name="", comment="")
    if "PENDING" in job.states:
        return replace(job, start=None, end=None, planned="", task=None, node_count=0, cores=0, memory=None)
    return replace(job, whole_nodes=False)


def test_an_order_marks_the_node_beside_what_its_pilot_reports(slurm: SlurmCluster) -> None:
    """So that its agent need not ask for each job; what somebody else shortened is marked in the next cycle. A job with
    a mark in its user's words is passed over (HOSTILE 43)."""
    pool = pool_of(slurm)
    forged = '--comment=x AdminComment={"drainwise":1,"orders":"1:1"} '
    forger = start(slurm, "bob", "--cpus-per-task=1", forged)
    node = f"--nodelist={forger.nodes[0]}"
    carrier = start(slurm, "alice", "--cpus-per-task=2", node)
    one, other = (start(slurm, "alice", "--cpus-per-task=2", node) for _ in range(2))
    report = PilotReport(now(), used_cpu=6.0)
    line = comment_text(Published(carrier.id, carrier.start, carrier.nodes[0], report))
    slurm.run(["scontrol", "update", f"JobId={carrier.id}", f"AdminComment={line}"])

    def mark(job: Job) -> dict[str, str]:
        text = slurm.run(["scontrol", "--oneliner", "show", "job", str(job.id)]).stdout
        return entries_in(text.partition(" AdminComment=")[2].split(" ")[0])

    pool.give_order(pilot(pool, one), now() + 601, "test")
    assert mark(carrier) == {str(one.id): str(slurm.job(one.id).end)}
    pool.withdraw_order(pilot(pool, one), "test")
    slurm.run(["scontrol", "update", f"JobId={other.id}", f"EndTime=uts{now() + 701}"])
    assert pool.follow_up(pool.snapshot(now())) == []
    wanted = {str(job.id): str(slurm.job(job.id).end) for job in (one, other)}
    assert mark(carrier) == wanted
    assert pilot(pool, carrier).report == report
    pool.follow_up(pool.snapshot(now()))
    assert mark(carrier) == wanted
    slurm.run(["scontrol", "update", f"JobId={carrier.id}", "AdminComment=see ticket 7"])
    pool.give_order(pilot(pool, other), now() + 602, "test")
    assert mark(one) == {str(other.id): str(slurm.job(other.id).end)}
    assert "AdminComment=see ticket 7" in slurm.run(["scontrol", "show", "job", str(carrier.id)]).stdout


def test_without_slurmctld_there_is_no_answer_within_the_time_limit(slurm: SlurmCluster) -> None:
    """HOSTILE 54: Slurm's commands themselves try for nine seconds."""
    job = start(slurm, "alice", "--cpus-per-task=2")
    pool = pool_of(slurm, limit=3)
    one = pilot(pool_of(slurm), job)
    slurm.kill_daemon("slurmctld")
    acts: list[Callable[[], object]] = [
        lambda: pool.snapshot(now()),
        lambda: pool.give_order(one, now() + 600, "test"),
        lambda: pool.give_order(one, now(), "test"),
    ]
    for act in acts:
        with pytest.raises(PoolUnreachable, match="did not answer within 3 s"):
            act()


def test_a_slurmctld_that_hangs_is_no_answer_either(slurm: SlurmCluster) -> None:
    process = slurm.daemon_pid("slurmctld")
    slurm.run(["kill", f"-{int(signal.SIGSTOP)}", str(process)])
    try:
        with pytest.raises(PoolUnreachable, match="did not answer within 3 s"):
            pool_of(slurm, limit=3).snapshot(now())
    finally:
        slurm.run(["kill", f"-{int(signal.SIGCONT)}", str(process)])


@pytest.mark.parametrize(("ahead", "words"), [(60, "6. s ahead of slurmctld's"), (-60, "[56]. s behind slurmctld's")])
def test_with_another_time_than_slurmctlds_nothing_is_decided(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch, ahead: int, words: str
) -> None:
    """Deadlines are times of day."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + ahead)
    with pytest.raises(PoolUnreachable, match=f"this machine's clock is {words}: deadlines would be wrong"):
        pool_of(slurm).snapshot(now())
    monkeypatch.setattr(time, "time", lambda: right() + ahead / 4)
    pool_of(slurm).snapshot(now())


# ---- orders ----


def test_an_order_shortens_exactly_that_lease(slurm: SlurmCluster) -> None:
    """To the second; it is seen in the next snapshot, and its reason stands in the accounting."""
    pool = pool_of(slurm)
    jobs = [start(slurm, "alice", "--cpus-per-task=2") for _ in range(3)]
    ends, deadline = lease_ends(slurm), now() + 601

    pool.give_order(pilot(pool, jobs[1]), deadline, 'cms is owed 8 cores; "x" $(id) | y=z')

    after = lease_ends(slurm)
    assert deadline - 1 <= after[jobs[1].label] <= deadline
    assert {label for label, end in after.items() if end != ends[label]} == {jobs[1].label}
    assert {one.name: one.deadline for one in pool.snapshot(now()).pilots if one.deadline} == {
        jobs[1].label: after[jobs[1].label]
    }
    (row,) = slurm.accounting(jobs[1].id, "SystemComment")
    assert (
        row["SystemComment"]
        == f"drainwise: ordered to end by {after[jobs[1].label]} (lease of {jobs[1].label}@{jobs[1].start} until"
        f" {ends[jobs[1].label]}): cms is owed 8 cores; x (id) y z"
    )
    others = slurm.wait_for(lambda: slurm.accounting(jobs[0].id, "User", "SystemComment"), 10, "accounting")
    assert others == [{"User": "alice", "SystemComment": ""}]


def test_an_order_that_slurmdbd_hears_of_before_the_job_can_be_withdrawn(slurm: SlurmCluster) -> None:
    """slurmctld tells it of a start when it comes to it; the order waits for the record, in which the lease is kept."""
    pool = pool_of(slurm)
    slurm.kill_daemon("slurmdbd")
    try:
        job = start(slurm, "alice", "--cpus-per-task=2")
        one, ends = pilot(pool, job), lease_ends(slurm)
    finally:
        slurm.start_daemon("slurmdbd")
    pool.give_order(one, now() + 601, "test")
    assert lease_ends(slurm) != ends
    pool.withdraw_order(one, "test")
    assert lease_ends(slurm) == ends


def test_while_slurmdbd_is_away_no_order_forgets_what_a_lease_was(slurm: SlurmCluster) -> None:
    """None is withdrawn then, and each can be afterwards but one that a second order has shortened meanwhile."""
    pool = pool_of(slurm)
    once, twice = (start(slurm, "alice", "--cpus-per-task=2") for _ in range(2))
    first, second = (pilot(pool, job) for job in (once, twice))
    ends = lease_ends(slurm)
    for one in (first, second):
        pool.give_order(one, now() + 1201, "test")
    slurm.kill_daemon("slurmdbd")
    try:
        with pytest.raises(PoolUnreachable, match="the order stands until the accounting answers") as fault:
            pool.withdraw_order(first, "test")
        assert fault.value.only == first.run
        pool.give_order(second, now() + 601, "test")
    finally:
        slurm.start_daemon("slurmdbd")
    shortened = lease_ends(slurm)[twice.label]
    pool.withdraw_order(first, "test")
    with pytest.raises(ActionRefused, match="nobody knows what its lease was"):
        pool.withdraw_order(second, "test")
    assert lease_ends(slurm) == {**ends, twice.label: shortened}


def limit(cluster: SlurmCluster, job: Job) -> str:
    return cluster.run(["squeue", "-h", "-j", job.label, "-o", "%l"]).stdout.strip()


def test_an_order_that_is_withdrawn_leaves_the_lease_as_it_was(slurm: SlurmCluster) -> None:
    """End and time limit, to the second, also after a second order and without any limit; nobody else's changes."""
    pool = pool_of(slurm)
    jobs = [start(slurm, "alice", f"--time={time_limit}") for time_limit in ("100", "UNLIMITED", "61")]
    (task,) = jobs_of_array(slurm, "--array=7-7", "--time=90")
    before, limits = lease_ends(slurm), [limit(slurm, job) for job in jobs]
    pilots = [pilot(pool, job) for job in jobs]
    for one in pilots:
        pool.give_order(one, now() + 700, "bob waits")
    pool.give_order(pilot(pool, jobs[0]), now() + 601, "bob waits longer")
    asked = {one.name: one for one in pool.snapshot(now()).pilots if one.deadline}
    assert set(asked) == {job.label for job in jobs}

    for one in pilots:
        pool.withdraw_order(one, "bob has left")

    assert lease_ends(slurm) == before
    assert [limit(slurm, job) for job in jobs] == limits
    assert not any(one.deadline for one in pool.snapshot(now()).pilots)
    assert not any(one.deadline for one in pool_of(slurm).snapshot(before[jobs[2].label] - 60).pilots)
    words = slurm.wait_for(lambda: slurm.accounting(jobs[0].id, "SystemComment"), 10, "accounting")
    assert words[0]["SystemComment"] == "drainwise: order withdrawn: bob has left"
    pool.withdraw_order(pilots[0], "once more is no fault")
    pool.withdraw_order(pilot(pool, task), "nor for one that was never asked")
    assert lease_ends(slurm) == before

    slurm.run(["scontrol", "update", f"JobId={jobs[2].id}", f"EndTime=uts{jobs[2].start + 1805}"])
    with pytest.raises(ActionRefused, match="nobody knows what its lease was"):
        pool.withdraw_order(pilots[2], "shortened by hand")
    for end in (jobs[2].start + 1805, jobs[2].start + 665):  # what an administrator decides stands, before us and after
        pool.give_order(pilots[2], now() + 900, "bob waits")
        if end > now() + 900:
            pool.withdraw_order(pilots[2], "bob has left")
        else:
            slurm.run(["scontrol", "update", f"JobId={jobs[2].id}", f"EndTime=uts{end}"])
            with pytest.raises(ActionRefused, match="nobody knows what its lease was"):
                pool.withdraw_order(pilots[2], "bob has left")
        assert lease_ends(slurm)[jobs[2].label] == end
    slurm.run(["scancel", str(jobs[0].id)])
    slurm.wait_for(lambda: slurm.job(jobs[0].id).state == "CANCELLED", 30, "the end of the job")
    with pytest.raises(RunEnded, match="does not run any more"):
        pool.withdraw_order(pilots[0], "late")


def jobs_of_array(cluster: SlurmCluster, *options: str) -> list[Job]:
    number = cluster.submit(SLEEP, "alice", options)

    def found() -> list[Job]:
        return [job for job in cluster.jobs() if job.state == "RUNNING" and job.label.startswith(f"{number}_")]

    return cluster.wait_for(found, 30, "the array to run")


BURN = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done; "


def test_how_runs_ended_is_what_the_accounting_says(slurm: SlurmCluster) -> None:
    """By itself, at its deadline, requeued (and not the next run), of an array; what runs has no ending."""
    pool = pool_of(slurm)
    left, cut = start(slurm, "alice", script=BURN + "exit 3"), start(slurm, "alice")
    again, stays = start(slurm, "alice", "--requeue"), start(slurm, "alice")
    (task,) = jobs_of_array(slurm, "--array=3-3")
    jobs = {"left": left, "cut": cut, "again": again, "stays": stays, "task": task}
    runs = {name: f"{job.label}@{job.start}" for name, job in jobs.items()}
    wanted = [*runs.values(), "99999@1795249000", "x", ""]
    pool.give_order(pilot(pool, cut), now() + 3, "test")
    pool.give_order(pilot(pool, again), now(), "test")
    slurm.run(["scancel", task.label])
    ended = {runs[name] for name in ("left", "cut", "again", "task")}
    found = slurm.wait_for(
        lambda: seen if set(seen := pool.endings(wanted, now())) >= ended else {}, 90, "four endings"
    )
    assert set(found) == ended
    assert {name: found[runs[name]].vacated for name in ("left", "cut", "again", "task")} == {
        "left": False,
        "cut": True,
        "again": True,
        "task": True,
    }
    used = found[runs["left"]].cpu_seconds
    assert used is not None and 0.05 < used < 10
    assert all(int(run.partition("@")[2]) <= ending.ended <= now() for run, ending in found.items())
    since = min(int(run.partition("@")[2]) for run in wanted[:5])
    nodes = ("node1", "node2", "node3", "node4")

    def of_ended(account: str) -> float:
        return pool.cores_of_ended(account, nodes, since, now())

    most = most_at_once((int(run.partition("@")[2]), ending.ended, left.cores) for run, ending in found.items())
    assert (of_ended("atlas"), of_ended("cms"), pool.cores_of_ended("atlas", nodes, now() + 60, now())) == (most, 0, 0)

    slurm.kill_daemon("slurmdbd")
    try:
        remembered = pool.endings(wanted, now())
        assert 0 < of_ended("atlas") <= most and of_ended("cms") == 0, "a requeued run is forgotten"
    finally:
        slurm.start_daemon("slurmdbd")
    assert remembered[runs["left"]] == replace(found[runs["left"]], cpu_seconds=None)
    assert runs["stays"] not in remembered


@pytest.mark.play
def test_slurm_itself_ends_who_stays_past_the_deadline(slurm: SlurmCluster) -> None:
    """Nobody of ours is needed; a pilot that ignores SIGTERM is gone too, and the reason outlives it."""
    pool = pool_of(slurm)
    job, other = start(slurm, "alice", script=STUBBORN), start(slurm, "alice")
    pool.give_order(pilot(pool, job), now() + 5, "test")
    slurm.wait_for(lambda: slurm.job(job.id).state == "TIMEOUT", 60, "the end of the lease")
    assert slurm.job(other.id).state == "RUNNING"
    words = slurm.wait_for(lambda: slurm.accounting(job.id, "State", "SystemComment"), 10, "the accounting")
    assert words[0]["State"] == "TIMEOUT"
    assert "drainwise: ordered to end by" in words[0]["SystemComment"]


def test_a_lease_without_a_limit_can_be_shortened(slurm: SlurmCluster) -> None:
    pool = pool_of(slurm)
    job = start(slurm, "alice", "--time=UNLIMITED")
    assert pilot(pool, job).lease_end is None
    pool.give_order(pilot(pool, job), now() + 601, "test")
    assert pilot(pool, job).deadline == slurm.job(job.id).end


def test_a_lease_is_never_made_longer(slurm: SlurmCluster) -> None:
    pool = pool_of(slurm)
    job = start(slurm, "alice", "--time=10")
    with pytest.raises(ActionRefused, match="ends by"):
        pool.give_order(pilot(pool, job), job.end + 1, "test")
    assert slurm.job(job.id).end == job.end
    pool.give_order(pilot(pool, job), job.end, "test")
    assert pilot(pool, job).deadline == job.end - 1


def test_an_order_to_a_task_of_an_array_reaches_this_task_only(slurm: SlurmCluster) -> None:
    """The last task of an array has the array's own number: an order to the number would reach all tasks.

    Nor is there a record of its own: who gave the order knows what the lease was, and nobody else takes it back.
    """
    pool = pool_of(slurm)
    array = slurm.submit(SLEEP, "alice", ["--array=1-3"])
    slurm.wait_for(lambda: len(lease_ends(slurm)) == 3, 30, "all tasks to run")
    last = slurm.job(array)
    ends = lease_ends(slurm)
    pool.give_order(pilot(pool, last), now() + 601, "test")
    assert {label for label, end in lease_ends(slurm).items() if end != ends[label]} == {last.label}
    with pytest.raises(ActionRefused, match="is shared by an array"):
        pool_of(slurm).withdraw_order(pilot(pool, last), "test")
    pool.withdraw_order(pilot(pool, last), "test")
    assert lease_ends(slurm) == ends
    pool.give_order(pilot(pool, last), now(), "test")
    slurm.wait_for(lambda: set(lease_ends(slurm)) == set(ends) - {last.label}, 30, "the end of this task alone")


def test_a_run_that_is_over_is_refused_and_nobody_else_is_touched(slurm: SlurmCluster) -> None:
    """HOSTILE 48, 50: ended between snapshot and order; requeued and running again, with the same number."""
    pool = pool_of(slurm)
    ended, requeued, other = (start(slurm, "alice", "--cpus-per-task=2") for _ in range(3))
    old = [pilot(pool, job) for job in (ended, requeued)]
    slurm.run(["scancel", str(ended.id)])
    slurm.run(["scontrol", "requeue", str(requeued.id)])
    slurm.wait_for(lambda: slurm.job(requeued.id).state == "PENDING", 30, "the job to wait again")
    # Somewhere else: a node refuses a job that it has just ended ("already killed, do not launch batch job").
    elsewhere = f"ExcNodeList={requeued.nodes[0]}"
    slurm.run(["scontrol", "update", f"JobId={requeued.id}", "StartTime=now", elsewhere])
    slurm.wait_for(lambda: slurm.job(requeued.id).state == "RUNNING", 30, "the next run of the job")
    ends = lease_ends(slurm)
    for one in old:
        for deadline in (now() + 600, now()):
            with pytest.raises(RunEnded, match="does not run any more"):
                pool.give_order(one, deadline, "test")
    assert lease_ends(slurm) == ends
    assert {other.label, requeued.label} == set(ends)


@pytest.mark.parametrize(
    ("at_deadline", "options", "state"),
    [(None, (), "PENDING"), ("end", (), "CANCELLED"), ("requeue", ("--no-requeue",), "CANCELLED")],
)
def test_a_deadline_of_now_ends_exactly_that_run(
    slurm: SlurmCluster, at_deadline: str | None, options: tuple[str, ...], state: str
) -> None:
    """As the site says; cancelled where its owner does not let it be requeued. Until it is gone it is leaving."""
    pool = pool_of(slurm, scope=ScopeRules(at_deadline=at_deadline))
    job, other = start(slurm, "alice", *options, script=STUBBORN), start(slurm, "alice")
    pool.give_order(pilot(pool, job), now(), "cms is owed a core")
    assert [one.leaving for one in pool.snapshot(now()).pilots if one.name == job.label] == [True]
    slurm.wait_for(lambda: slurm.job(job.id).state == state, 30, f"the job to be {state}")
    assert slurm.job(other.id).state == "RUNNING"
    rows = slurm.run(["sacct", "-D", "-X", "-n", "-P", "-j", str(job.id), "-o", "State,SystemComment"]).stdout
    assert "drainwise: to end now: cms is owed a core" in rows


def test_a_run_that_was_ordered_is_not_requeued(slurm: SlurmCluster) -> None:
    """Its time limit has become as short as its lease: the next run would have no more than that."""
    pool = pool_of(slurm)
    job = start(slurm, "alice")
    pool.give_order(pilot(pool, job), now() + 601, "test")
    pool.give_order(pilot(pool, job), now(), "test")
    slurm.wait_for(lambda: slurm.job(job.id).state == "CANCELLED", 30, "its end")


def test_who_is_overdue_is_ended(slurm: SlurmCluster) -> None:
    """OverTimeLimit keeps Slurm from ending it at its deadline."""
    slurm.configure("OverTimeLimit=UNLIMITED\n")
    slurm.reconfigure()
    try:
        pool = pool_of(slurm)
        job, other = (start(slurm, "alice") for _ in range(2))
        pool.give_order(pilot(pool, job), now() + 3, "test")
        late = SlurmPool(
            replace(SlurmSection(), bin_dir=tools(slurm)), SiteRules(GRACE), clock=lambda: time.time() + 200
        )
        assert late.follow_up(late.snapshot(now())) == [f"{job.label} was overdue and is ended"]
        slurm.wait_for(lambda: slurm.job(job.id).state == "CANCELLED", 30, "its end")
        assert slurm.job(other.id).state == "RUNNING"
    finally:
        slurm.configure("")
        slurm.reconfigure()


def test_a_plain_user_is_refused(slurm: SlurmCluster) -> None:
    """bob may look, and may end nobody's pilot."""
    pool = pool_of(slurm, user="bob")
    job = start(slurm, "alice")
    one = pilot(pool, job)
    for deadline in (now() + 600, now()):
        with pytest.raises(RightsRefused, match=r"denied|Invalid user id"):
            pool.give_order(one, deadline, "test")
    assert slurm.job(job.id).end == job.end
    assert slurm.job(job.id).state == "RUNNING"


def test_two_agents_that_order_at_once_leave_one_sound_lease(slurm: SlurmCluster) -> None:
    pool = pool_of(slurm)
    job = start(slurm, "alice")
    one, base = pilot(pool, job), now()

    def order(seconds: int) -> None:
        try:
            pool.give_order(one, base + seconds, "test")
        except (ActionRefused, PoolUnreachable):
            return

    with ThreadPoolExecutor(4) as agents:
        list(agents.map(order, (601, 701, 801, 901)))
    assert base + 599 <= (pilot(pool, job).deadline or 0) <= base + 901


# ---- orders of which it is not known what became of them ----

RECLAIM = ReclaimSettings(
    policy="least-waste",
    horizon=GRACE,
    grace=GRACE,
    max_grace=GRACE,
    heartbeat_limit=3600,
    max_cores=100,
    max_cores_per_user=100,
    max_cores_per_user_hour=100,
    min_age=0,
    margin=60,
)


class Agent:
    """An agent whose cycles are done one by one; the events are its journal."""

    def __init__(self, cluster: SlurmCluster, user: str = "root", limit: int = 60) -> None:
        self.pool, self.memory, self.events = pool_of(cluster, user, limit=limit), Memory(), list[Event]()

    def write(self, event: Event) -> None:
        self.events.append(event)

    def cycle(self) -> Cycle:
        return AgentCycle(self.pool, RECLAIM, self.memory, self, now, acting=True).run()

    def orders(self) -> list[tuple[object, object]]:
        """The runs and what became of each order, as they were written."""
        return [(event["run"], event["outcome"]) for event in self.events if event["event"] == "order"]


def fill(cluster: SlurmCluster) -> None:
    """alice's pilots hold all nodes, bob waits for one."""
    for _ in range(4):
        start(cluster, "alice", *WHOLE_NODE)
    waiting = cluster.submit(SLEEP, "bob", WHOLE_NODE)
    cluster.wait_for(lambda: cluster.job(waiting).reason in {"Resources", "Priority"}, 30, "bob to wait")


@pytest.mark.play
def test_an_order_that_a_stopped_slurmctld_held_is_found_and_nobody_else_is_ordered(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is carried out when slurmctld goes on, long after scontrol was given up."""
    fill(slurm)
    agent, ends = Agent(slurm, limit=5), lease_ends(slurm)
    process, order = slurm.daemon_pid("slurmctld"), SlurmCommands.order

    def stopped(commands: SlurmCommands, name: str, *arguments: str, stdin: str = "") -> None:
        if name == "scontrol":
            slurm.run(["kill", f"-{int(signal.SIGSTOP)}", str(process)])
        order(commands, name, *arguments, stdin=stdin)

    monkeypatch.setattr(SlurmCommands, "order", stopped)
    try:
        cycle = agent.cycle()
    finally:
        slurm.run(["kill", f"-{int(signal.SIGCONT)}", str(process)])
    [(cheapest, _)] = agent.orders()
    assert (agent.orders(), cycle.halted) == ([(cheapest, "unanswered")], "scontrol did not answer within 5 s")
    assert agent.memory.history(now()).unanswered.keys() == {cheapest}
    label = str(cheapest).partition("@")[0]
    slurm.wait_for(lambda: lease_ends(slurm).get(label) != ends[label], 30, "the order to be carried out")

    agent.cycle()
    assert agent.orders() == [(cheapest, "unanswered"), (cheapest, "done")]
    assert {one for one, end in lease_ends(slurm).items() if end != ends[one]} == {label}
    record = agent.memory.history(now())
    assert ([one.cores for one in record.orders], record.unanswered, record.failed) == ([8], {}, {})
    assert agent.memory.open_orders().keys() == {cheapest}


@pytest.mark.play
def test_after_an_outage_the_pilot_that_wastes_least_is_ordered(
    slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld dies between the last look and the order: no pilot is shut out for it."""
    fill(slurm)
    agent, shorten = Agent(slurm, limit=5), SlurmOrders.shorten

    def outage(self: SlurmOrders, run: str, deadline: int, reason: str) -> None:
        slurm.kill_daemon("slurmctld", signal.SIGTERM)  # it keeps what it knows
        shorten(self, run, deadline, reason)

    with monkeypatch.context() as patched:
        patched.setattr(SlurmOrders, "shorten", outage)
        cycle = agent.cycle()
    [(cheapest, _)] = agent.orders()
    assert (agent.orders(), cycle.halted) == ([(cheapest, "unreachable")], "squeue did not answer within 5 s")
    assert agent.cycle().fault, "while it is gone nothing is decided"
    slurm.start_daemon("slurmctld")
    slurm.wait_until_complete()
    slurm.wait_for(lambda: not agent.cycle().fault, 30, "a cycle")
    assert agent.orders() == [(cheapest, "unreachable"), (cheapest, "done")]


@pytest.mark.play
def test_an_agent_without_rights_tries_one_order_in_a_cycle_and_blames_no_pilot(slurm: SlurmCluster) -> None:
    fill(slurm)
    agent = Agent(slurm, "bob")
    cycles = [agent.cycle() for _ in range(2)]
    [(first, _), _] = agent.orders()
    assert agent.orders() == [(first, "denied")] * 2
    assert all("orders need root or SlurmUser" in cycle.halted for cycle in cycles)
    assert agent.memory.history(now()).failed == {}


def test_who_cancelled_a_pilot_that_was_ordered_is_shown_by_the_accounting(slurm: SlurmCluster) -> None:
    """An administrator's cancel says nothing of what the pilot promised, its owner's does."""
    pool = pool_of(slurm)
    by_root, by_alice = (start(slurm, "alice", "--cpus-per-task=2") for _ in range(2))
    runs = {name: pilot(pool, job).run for name, job in (("root", by_root), ("alice", by_alice))}
    for job in (by_root, by_alice):
        pool.give_order(pilot(pool, job), now() + 601, "test")
    slurm.run(["scancel", str(by_root.id)])
    slurm.run(["scancel", str(by_alice.id)], user="alice")
    slurm.wait_for(lambda: len(pool.endings(runs.values(), now())) == 2, 30, "both endings")
    found = pool.endings(runs.values(), now())
    assert {name: (found[run].vacated, found[run].by_others) for name, run in runs.items()} == {
        "root": (True, True),
        "alice": (True, False),
    }


# ---- Slurm's own preemption ----


@pytest.fixture(scope="module")
def steered(slurm_release: str) -> Iterator[SlurmCluster]:
    """A cluster of three nodes whose preemption can be steered, by the lines that are rendered for its release."""
    pilots = Qos("pilots", ("PreemptMode=REQUEUE,WITHIN" if slurm_release == "bookworm" else "PreemptMode=REQUEUE",))
    release = Decimal({"bookworm": "22.05", "trixie": "24.11"}[slurm_release])
    site = SiteConfig(slurm=replace(SlurmSection(), native_preemption="yes", release=release))
    [fragment] = [file for file in render(site, "controller") if file.path == fragment_path(site)]
    config = "".join(f"{line}\n" for line in fragment.text.splitlines() if line.startswith("Preempt"))
    with SlurmCluster(nodes=3, cpus=8, release=slurm_release, config=config, qos=(pilots,)) as cluster:
        if slurm_release != "bookworm":
            cluster.run(["sacctmgr", "-i", "add", "qos", "owed", "Priority=10", "Preempt=pilots"])
            cluster.run(["sacctmgr", "-i", "modify", "user", "bob", "set", "QOS+=owed"])
        yield cluster


def test_slurm_preempts_exactly_the_exposed_pilot(steered: SlurmCluster) -> None:
    """It runs on until somebody needs its cores; afterwards nobody keeps a priority of ours."""
    pool = pool_of(steered, native="yes")
    jobs = [start(steered, "alice", "--qos=pilots", *WHOLE_NODE) for _ in range(3)]
    chosen = jobs[1]
    pool.give_order(pilot(pool, chosen), now(), "cms is owed 8 cores")
    assert {one.name for one in pool.snapshot(now()).pilots if one.leaving} == {chosen.label}
    assert steered.job(chosen.id).state == "RUNNING"

    qos = "pilots" if steered.release == "bookworm" else "owed"
    bob = steered.submit(SLEEP, "bob", [f"--qos={qos}", *WHOLE_NODE])
    steered.wait_for(lambda: steered.job(bob).state == "RUNNING", 30, "bob's job to run")

    states = {job.id: steered.job(job.id).state for job in jobs}
    assert states == {jobs[0].id: "RUNNING", chosen.id: "PENDING", jobs[2].id: "RUNNING"}
    assert pool.follow_up(pool.snapshot(now())) == [f"{chosen.label} has its own priority again"]
    assert steered.job(chosen.id).priority not in {EXPOSED, PROTECTED}
    site = SiteConfig(slurm=replace(SlurmSection(), bin_dir=tools(steered), native_preemption="yes"))
    wrong = {one.what for one in judge(collect(site), site, now()) if one.severity != "ok"}
    assert not {what for what in wrong if what.startswith(("Preempt", "QOS", "release"))}, wrong
    off = replace(site, slurm=replace(site.slurm, native_preemption="no"))
    for left in (one for one in judge(collect(off), off, now()) if one.what == "job priorities"):
        steered.run(left.line.split())  # the command that docs/slurm.md tells to use
    assert not {job.priority for job in steered.jobs()} & {EXPOSED, PROTECTED}
    steered.cancel_all()


def test_without_the_plugin_native_preemption_is_refused(slurm: SlurmCluster) -> None:
    pool = pool_of(slurm, native="yes")
    job = start(slurm, "alice")
    with pytest.raises(ActionRefused, match="PreemptType=preempt/qos"):
        pool.give_order(pilot(pool, job), now(), "test")
    assert slurm.job(job.id).state == "RUNNING"


# ---- what an admin sees ----


def test_check_names_what_this_cluster_lacks(slurm: SlurmCluster) -> None:
    """A cluster that knows nothing of drainwise."""
    site = SiteConfig(slurm=replace(SlurmSection(), bin_dir=tools(slurm)))
    findings = {one.what: one for one in judge(collect(site), site, now())}
    bad = {what for what, one in findings.items() if one.severity != "ok"}
    assert bad == {"Prolog", "Epilog", "TaskProlog"}
    assert findings["TaskProlog"].line == "TaskProlog=/usr/libexec/drainwise/slurm-task-prolog"
    assert findings["Slurm"].value == {"bookworm": "22.05.8", "trixie": "24.11.5"}[slurm.release]


def test_check_asks_the_servers_of_features_by_the_names_that_nodes_have(slurm: SlurmCluster) -> None:
    site = SiteConfig(slurm=replace(SlurmSection(), bin_dir=tools(slurm)))
    assert sorted(one.name for one in collect(site).nodes) == sorted(slurm.node_names)


def test_check_sees_a_setting_that_makes_orders_late(slurm: SlurmCluster) -> None:
    slurm.configure("OverTimeLimit=5\nPrologEpilogTimeout=\nJobRequeue=0\n")
    slurm.reconfigure()
    try:
        site = SiteConfig(slurm=replace(SlurmSection(), bin_dir=tools(slurm)))
        findings = {one.what: one.severity for one in judge(collect(site), site, now())}
        wanted = {"OverTimeLimit": "dangerous", "PrologEpilogTimeout": "dangerous", "JobRequeue": "missing"}
        assert {what: findings[what] for what in wanted} == wanted
    finally:
        slurm.configure("")
        slurm.reconfigure()


def test_check_sees_who_may_not_give_orders_and_nodes_whose_agents_are_silent(slurm: SlurmCluster) -> None:
    """What it says of bob is what slurmctld does with his order; a node is known by its pilots, silent there alone."""
    site = SiteConfig(slurm=replace(SlurmSection(), bin_dir=tools(slurm)))
    jobs = [start(slurm, "alice", "--exclusive") for _ in range(2)]
    silent, heard = jobs
    line = comment_text(Published(heard.id, heard.start, heard.nodes[0], PilotReport(now(), used_cpu=1.0)))
    slurm.run(["scontrol", "update", f"JobId={heard.id}", f"AdminComment={line}"])
    order = ["scontrol", "update", f"JobId={silent.id}", "TimeLimit=59"]
    try:
        for level, severity in (("None", "missing"), ("Operator", "ok")):
            slurm.run(["sacctmgr", "--immediate", "modify", "user", "bob", "set", f"AdminLevel={level}"], check=False)
            facts = collect(site)
            caller = caller_of(facts, site, slurm.uid("bob"), "bob")
            found = {one.what: one for one in judge_orders(facts, caller)}
            assert found["orders"].severity == severity
            assert (slurm.run(order, user="bob", check=False).returncode == 0) is (severity == "ok")
        later = {one.what: one for one in judge(facts, site, now() + 301)}
        assert later["nodes' agents"].value == silent.nodes[0]
        assert "nodes' agents" not in {one.what for one in judge(facts, site, now())}
    finally:
        slurm.run(["sacctmgr", "--immediate", "modify", "user", "bob", "set", "AdminLevel=None"], check=False)
        slurm.cancel_all()


def documented(language: str = "sh") -> list[str]:
    """The commands that docs/slurm.md shows, without their comments.

    Those that install something are typed inside of a cluster, by test_slurm_history.py: here they would change the
    machine that runs the tests.
    """
    before, _, rest = DOCUMENT.read_text().partition("\n## Install on a cluster with a history\n")
    blocks = re.findall(rf"^```{language}\n(.*?)^```", before + rest.partition("\n## ")[2], re.DOTALL | re.MULTILINE)
    commands = [line.partition("   #")[0].strip() for block in blocks for line in block.splitlines()]
    assert {command.split()[0] for command in commands} <= {"drainwise", "squeue", "sacct", "sshare"}, commands
    assert not [command for command in commands if command.startswith("drainwise config")], commands
    return commands


@pytest.mark.play
def test_documented_commands_show_the_cluster(slurm: SlurmCluster) -> None:
    """Each of docs/slurm.md, as an administrator would type it: the pilot, its report, its order are there."""
    job = start(slurm, "alice", "--cpus-per-task=3")
    report = PilotReport(now(), used_cpu=2.0, can_postpone_last_job=False)
    line = comment_text(Published(job.id, job.start, job.nodes[0], report))
    slurm.run(["scontrol", "update", f"JobId={job.id}", f"AdminComment={line}"])
    pool = pool_of(slurm)
    pool.give_order(pilot(pool, job), now() + 601, "cms is owed a core")
    ended = start(slurm, "bob", script="exec sleep 3")
    slurm.run(["scontrol", "update", f"JobId={ended.id}", f"AdminComment={line}"])
    slurm.wait_for(lambda: line in str(slurm.accounting(ended.id, "User", "AdminComment")), 30, "the accounting")
    agent = f"[agent]\nstate_dir = {slurm.path('/srv/agent')}\n"
    slurm.write("/srv/site.ini", f"[slurm]\nbin_dir = {tools(slurm)}\n{agent}")
    site = ["--site", slurm.path("/srv/site.ini")]
    said: dict[str, str] = {}
    # The one that acts comes last: nobody waits here, so it takes the order back, and says so in its journal.
    for command in sorted(documented(), key=lambda command: "--act" in command):
        if command.startswith("drainwise"):
            argv, code = [sys.executable, "-m", *command.split(), *site], int("check" in command)
        else:
            argv, code = ["sh", "-c", command], 0
        done = slurm.run_outside(argv, environment=PYTHON, check=False)
        assert (done.returncode, done.stderr) == (code, ""), command
        said[command] = done.stdout
    [journal] = Path(slurm.path("/srv/agent")).glob("*.journal")
    happened = [json.loads(line)["event"] for line in journal.read_text().splitlines()]
    assert happened == ["pilots", "decision", "withdrawal"]
    assert len(said) == 11
    wanted = {
        "drainwise check": "TaskProlog=/usr/libexec/drainwise/slurm-task-prolog",
        "drainwise status": "alice",
        "drainwise plan": "3 on their way",
        "select(.admin_comment | startswith": line.rstrip("}"),  # with the mark of the order behind it
        "AdminComment |": f"{ended.label}|bob|cms|COMPLETED|{line}",
        "can_postpone_last_job == false": f"{job.id}\n",
        "[.job, .node, .used_cpu]": f"{job.id}\t{job.nodes[0]}\t2\n",
        "SystemComment |": "cms is owed a core",
        "TimeLeft": "10:",
        "LevelFS": "atlas|alice|",
    }
    for part, text in wanted.items():
        (shown,) = (output for command, output in said.items() if part in command)
        assert text in shown.replace('\\"', '"') or text in shown, (part, shown)

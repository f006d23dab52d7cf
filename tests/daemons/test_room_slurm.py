"""On real clusters of unlike nodes: what waits by kind, where it could start, what runs hold, and what the site closes.

By Slurm's commands; test_slurm_pyslurm compares pyslurm with them. Where a job could start, Slurm is asked itself: it
refuses a job for a node that would not do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import parse_billing
from drainwise.pool.facts import Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.quota import require_whole
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.snapshot import SiteRules
from slurm_cluster import SlurmCluster, mixed_cluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("room", "Slurm")]
GIB, HOUR = 1024, 3600
SLEEP = "exec sleep 1000"
FULL = {
    "node1": ("--cpus-per-task=8",),
    "node2": ("--cpus-per-task=8", "--mem=1000"),
    "node5": ("--cpus-per-task=8",),
}
"""alice's jobs but for those of node3 and node4."""


@pytest.fixture(scope="module")
def running(slurm_release: str) -> Iterator[SlurmCluster]:
    with mixed_cluster(slurm_release) as cluster:
        yield cluster


@pytest.fixture
def mixed(running: SlurmCluster) -> Iterator[SlurmCluster]:
    """alice has all cores: two jobs with a GPU on node3, of which one asked for no type."""
    start(running, "alice", "--nodelist=node3", "--cpus-per-task=4", "--gres=gpu:a100:1,fpga:1")
    start(running, "alice", "--nodelist=node3", "--cpus-per-task=4", "--gpus=1")
    start(running, "alice", "--partition=closed", "--cpus-per-task=8")
    for node, options in FULL.items():
        start(running, "alice", f"--nodelist={node}", *options)
    yield running
    for line in running.run(["scontrol", "--oneliner", "show", "reservation"]).stdout.splitlines():
        if line.startswith("ReservationName="):
            name = line.split()[0].partition("=")[2]
            running.run(["scontrol", "delete", f"ReservationName={name}"], check=False)
    running.cancel_all(90)


def start(cluster: SlurmCluster, user: str, *options: str) -> str:
    """Return a job that runs."""
    number = cluster.submit(SLEEP, user, ["--ntasks=1", *options])
    cluster.wait_for(lambda: cluster.job(number).state == "RUNNING", 30, f"job {number} to run")
    return str(number)


def wait(cluster: SlurmCluster, *options: str) -> str:
    """Return a job of bob's that waits for room."""
    number = cluster.submit(SLEEP, "bob", options)
    # 22.05 says of a job for several partitions in a sentence that it waits for resources.
    reasons = ("Resources", "Priority", "Nodes required for job are")
    cluster.wait_for(lambda: cluster.job(number).reason.startswith(reasons), 30, f"job {number} to wait for room")
    return str(number)


def look(cluster: SlurmCluster) -> Snapshot:
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    settings = SlurmSection(bin_dir=tools, command_timeout=10, transport="commands")
    snapshot = SlurmPool(settings, SiteRules(7200)).snapshot(int(time.time()))
    require_whole(snapshot)
    return snapshot


def kind_of(snapshot: Snapshot, job: str) -> JobKind:
    (found,) = (kind for kind in snapshot.kinds or () if kind.example == job)
    return found


def nodes_of(snapshot: Snapshot, kind: JobKind) -> str:
    """The numbers of the nodes of a kind's classes."""
    return "".join(sorted(place.name[-1] for place in snapshot.places if place.node_class in kind.classes))


def slurm_says(cluster: SlurmCluster, options: tuple[str, ...]) -> str:
    """Return the numbers of the nodes for which Slurm takes bob's job of one node."""
    found = ""
    for node in cluster.node_names:
        command = ["sbatch", "--nodes=1", f"--nodelist={node}", *options, f"--wrap={SLEEP}"]
        found += node[-1] * (cluster.run(command, user="bob", check=False).returncode == 0)
    return found


def test_what_nodes_have_and_runs_hold(mixed: SlurmCluster) -> None:
    """What is free and what the runs of a node hold is all that it has."""
    snapshot = look(mixed)
    total = {place.name: place.total for place in snapshot.places}
    assert total["node1"] == total["node4"] == total["node5"] == Amounts(8, 16 * GIB)
    assert total["node2"] == Amounts(8, 4 * GIB - 512)
    assert total["node3"] == Amounts(8, 16 * GIB, 3, 0, (("fpga", 3), ("gpu:a100", 2), ("gpu:t4", 1)))
    for place in snapshot.places:
        held = [pilot.holds for pilot in snapshot.pilots if pilot.place == place.name and pilot.holds is not None]
        assert held
        assert sum(held, place.free) == place.total


def test_each_kind_could_start_where_slurm_would_start_it(mixed: SlurmCluster) -> None:
    """And nowhere else: the nodes of its classes, with what it takes of each."""
    one = ("--ntasks=1", "--cpus-per-task=1")
    core = (*one, "--mem-per-cpu=100")
    asked: dict[tuple[str, ...], tuple[str, Amounts, int]] = {
        core: ("1235", Amounts(1, 100), 1),
        (*one, "--mem=3G"): ("1235", Amounts(1, 3 * GIB), 1),
        (*one, "--mem=5G"): ("135", Amounts(1, 5 * GIB), 1),
        ("--ntasks=1", "--cpus-per-task=2", "--mem-per-cpu=3G"): ("135", Amounts(2, 6 * GIB), 1),
        (*core, "--gres=gpu:2"): ("3", Amounts(1, 100, 2), 1),
        (*core, "--gres=gpu:t4:1,fpga:2"): ("3", Amounts(1, 100, 1, 0, (("fpga", 2), ("gpu:t4", 1))), 1),
        (*core, "--gpus=a100:1"): ("3", Amounts(1, 100, 1, 0, (("gpu:a100", 1),)), 1),
        (*core, "--gpus-per-task=1", "--ntasks=2"): ("3", Amounts(2, 200, 2), 1),
        (*core, "--constraint=fast"): ("23", Amounts(1, 100), 1),
        (*core, "--constraint=fast&rack2"): ("3", Amounts(1, 100), 1),
        (*core, "--constraint=[rack1|rack2]"): ("235", Amounts(1, 100), 1),
        (*core, "--constraint=rack1|rack2&fast"): ("23", Amounts(1, 100), 1),
        (*core, "--nodelist=node5"): ("5", Amounts(1, 100), 1),
        (*core, "--exclude=node[1-2]"): ("35", Amounts(1, 100), 1),
        (*core, "--partition=main,gpu"): ("1235", Amounts(1, 100), 1),
        (*core, "--partition=gpu"): ("3", Amounts(1, 100), 1),
        ("--nodes=2", "--ntasks=2", "--mem-per-cpu=200"): ("1235", Amounts(1, 200), 2),
        ("--ntasks=16", "--mem-per-cpu=100"): ("1235", Amounts(8, 800), 2),
    }
    jobs = {wait(mixed, *options): (options, wanted) for options, wanted in asked.items()}
    array = wait(mixed, *one, "--array=1-9%4", "--mem=7")
    alone = wait(mixed, *core, "--exclusive")
    held = mixed.submit(SLEEP, "bob", [*core, "--hold"])
    snapshot = look(mixed)
    for job, (options, wanted) in jobs.items():
        kind = kind_of(snapshot, job)
        assert (nodes_of(snapshot, kind), kind.needs, kind.places) == wanted, options
        assert (kind.jobs, kind.account) == (1, "cms")
        if wanted[2] == 1 and not any("--nodelist" in word for word in options):
            assert slurm_says(mixed, options) == wanted[0], options
    assert kind_of(snapshot, array).jobs == 4
    assert (kind_of(snapshot, alone).whole, kind_of(snapshot, alone).needs) == (True, Amounts(8, 100))
    assert str(held) not in {kind.example for kind in snapshot.kinds or ()}
    wanted_cores = {one.name: one.cores_wanted for one in snapshot.accounts}["cms"]
    assert wanted_cores >= sum(kind.jobs * kind.cores for kind in snapshot.kinds or ())


def test_kinds_are_in_the_order_of_the_queue(mixed: SlurmCluster) -> None:
    jobs = [wait(mixed, "--ntasks=1", f"--mem={memory}") for memory in (100, 200, 300)]
    mixed.run(["scontrol", "update", f"JobId={jobs[2]}", "Priority=3000000"])
    wanted = [jobs[2], jobs[0], jobs[1]]
    mixed.wait_for(lambda: [kind.example for kind in look(mixed).kinds or ()] == wanted, 30, "the new order")


def test_a_job_that_no_node_would_do_for_is_named(mixed: SlurmCluster) -> None:
    """node2 alone has rack1, and takes no jobs any more."""
    job = wait(mixed, "--ntasks=1", "--mem=100", "--constraint=rack1")
    mixed.run(["scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test"])
    try:
        snapshot = look(mixed)
        assert kind_of(snapshot, job).classes == frozenset()
        assert "node2" not in {place.name for place in snapshot.places}
        assert [notice.endswith(f": {job}") for notice in snapshot.notices] == [True]
        assert {one.name: one.cores_wanted for one in snapshot.accounts}["cms"] == 0
        assert {pilot.place for pilot in snapshot.pilots if pilot.node == "node2"} == {""}
    finally:
        mixed.run(["scontrol", "update", "NodeName=node2", "State=RESUME"])


def reserve(cluster: SlurmCluster, name: str, *words: str) -> None:
    cluster.run(["scontrol", "create", "reservation", f"ReservationName={name}", "Duration=60", *words])


def test_maintenance_ahead_is_a_closure_and_no_place_for_long_jobs(mixed: SlurmCluster) -> None:
    """Neither are two cores of a node, nor nodes whose reservation floats."""
    reserve(mixed, "repair", "StartTime=now+2hours", "Nodes=node5", "Users=root", "Flags=MAINT,IGNORE_JOBS")
    reserve(mixed, "cores", "StartTime=now+2hours", "Nodes=node1", "CoreCnt=2", "Users=alice", "Flags=IGNORE_JOBS")
    reserve(mixed, "late", "StartTime=now+3hours", "Nodes=node3", "Users=alice", "Flags=IGNORE_JOBS,TIME_FLOAT")
    short = wait(mixed, "--ntasks=1", "--mem=100", "--time=60")
    long = wait(mixed, "--ntasks=1", "--mem=100", "--time=150")
    endless = wait(mixed, "--ntasks=1", "--mem=100", "--time=UNLIMITED")
    now = int(time.time())
    snapshot = look(mixed)
    (closure,) = snapshot.closures
    assert (closure.name, closure.places) == ("repair", frozenset({"node5"}))
    assert abs(closure.start - now - 2 * HOUR) < 120
    assert closure.end == closure.start + HOUR
    assert closure.reason == "maintenance: Slurm's reservation repair"
    assert [nodes_of(snapshot, kind_of(snapshot, job)) for job in (short, long, endless)] == ["1235", "123", "12"]


def test_who_has_reserved_nodes_has_them_alone(mixed: SlurmCluster) -> None:
    """From its start on: its jobs start there and nowhere else, and the others' do not."""
    reserve(mixed, "bobs", "StartTime=now", "Nodes=node5", "Users=bob", "Flags=IGNORE_JOBS")
    inside = wait(mixed, "--ntasks=1", "--mem=100", "--reservation=bobs")
    outside = wait(mixed, "--ntasks=1", "--mem=100")
    snapshot = look(mixed)
    assert nodes_of(snapshot, kind_of(snapshot, inside)) == "5"
    assert nodes_of(snapshot, kind_of(snapshot, outside)) == "123"
    assert snapshot.closures == ()


def test_a_run_is_billed_as_slurm_bills_it(slurm_release: str) -> None:
    """For its cores, its memory, and its GPUs with and without their type."""
    weights = "CPU=1,Mem=0.25G,GRES/gpu=16,GRES/gpu:a100=2"
    counted = "AccountingStorageTRES=gres/gpu,gres/gpu:a100\nPartitionName=billed Nodes=node3 State=UP"
    with mixed_cluster(slurm_release, f"{counted} TRESBillingWeights={weights}\n") as cluster:
        for options in (("--gres=gpu:a100:2", "--mem=8G"), ("--gres=gpu:t4:1", "--mem=1G"), ("--mem=4G",)):
            job = start(cluster, "alice", "--partition=billed", "--cpus-per-task=2", *options)
            (run,) = (one for one in look(cluster).pilots if one.name == job)
            tres = cluster.run(["scontrol", "--oneliner", "show", "job", job]).stdout
            billed = int(tres.partition("billing=")[2].split(",")[0].split()[0])
            assert int(parse_billing(weights).each_core(run) * run.cores) == billed
            assert round(parse_billing("site").each_core(run) * run.cores) == billed
            cluster.run(["scancel", job])

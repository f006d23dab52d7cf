"""On real clusters: where a job may start follows Slurm's own rules, so the pilots that go are those that let it start.

Each case fills the cluster with alice's pilots, has bob wait, looks whom a plan names, and cancels just those: bob's
jobs run then.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import drainwise
import slurm_cluster
from slurm_cluster import DeadlineError, SlurmCluster
from slurm_cluster.layout import Account, Qos, node_line

pytestmark = [pytest.mark.play, pytest.mark.in_turn("who goes", "Slurm's rules")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
RELEASES = ("bookworm", "trixie", "sid")
PARENTS = REBOOTS = ("trixie", "sid")
SITE = """\
[slurm]
bin_dir = {tools}
[reclaim]
at_deadline = end
policy = least-waste
drain_only = no
min_age = 0s
[agent]
state_dir = {state}
"""
CONFIG = (
    "GresTypes=gpu,shard\nSelectTypeParameters=CR_Core_Memory\nRebootProgram=/bin/true\n"
    + "".join(node_line(f"node{number}", 8, 8000) for number in (1, 2))
    + node_line("node3", 8, 8000, "Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 Gres=gpu:1,shard:8")
    + """\
DefMemPerCPU=100
PartitionName=main Nodes=node[1-2] Default=YES MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=first Nodes=node1 MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=second Nodes=node2 MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=parent Nodes=node1 AllowAccounts=experiment MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=denied Nodes=node1 DenyAccounts=experiment MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=alone Nodes=node[1-2] ExclusiveUser=YES MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=bounded Nodes=node1 MaxCPUsPerNode=4 MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=small Nodes=node1 AllowQos=small MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=grouped Nodes=node1 AllowGroups=alice MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=threads Nodes=node3 MaxTime=INFINITE DefaultTime=1:00:00 State=UP
"""
)
GRES = """\
NodeName=node3 Name=gpu File=/dev/null Cores=0-3
NodeName=node3 Name=shard Count=8 File=/dev/null
"""
SLEEP = "exec sleep 1000"
FULL = ("--nodelist=node1 --cpus-per-task=8", "--nodelist=node2 --cpus-per-task=8")
HALVES = tuple(f"--nodelist={node} --cpus-per-task=4" for node in ("node1", "node1", "node2", "node2"))


@dataclass(frozen=True)
class Case:
    """alice's pilots and bob's jobs, as options of sbatch; how many pilots a plan names, and how many jobs run then.

    on: where these pilots are, "" for anywhere. before: what an administrator types once alice's pilots run; after: at
    the end. named: what the plan says beside that. releases: those that have the rule.
    """

    pilots: tuple[str, ...]
    jobs: tuple[str, ...]
    orders: int
    run: int
    on: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    named: str = ""
    releases: Collection[str] = RELEASES


CASES = {
    "an account above": Case(FULL, ("-p parent -A experiment-user -c 8",), 1, 1, "node1", releases=PARENTS),
    "an account above that is denied": Case(
        FULL, ("-p denied,second -A experiment-user -c 8",), 1, 1, "node2", releases=PARENTS
    ),
    "an account above, before 23.02": Case(
        FULL, ("-p parent,second -A experiment-user -c 8",), 1, 1, "node2", releases=("bookworm",)
    ),
    "a node that shall reboot": Case(
        FULL,
        ("-p first -c 8",),
        1,
        1,
        "node1",
        ("scontrol reboot node1",),
        ("scontrol cancel_reboot node1",),
        releases=REBOOTS,
    ),
    "maintenance": Case(
        FULL,
        ("--reservation=held -c 8",),
        1,
        1,
        "node1",
        ("scontrol create reservation=held nodes=node1 start=now duration=600 flags=maint,ignore_jobs users=bob",),
        ("scontrol delete reservation=held",),
    ),
    "a magnetic reservation": Case(
        FULL,
        ("-p first -c 8",),
        1,
        1,
        "node1",
        ("scontrol create reservation=held nodes=node1 start=now duration=600 flags=magnetic,ignore_jobs users=bob",),
        ("scontrol delete reservation=held",),
    ),
    "cores of a partition": Case(("-p bounded -c 4", "-p second -c 8"), ("-p bounded -c 4",), 1, 1, "node1"),
    "nodes of one user, by partition": Case(HALVES, ("-p alone -c 4",), 2, 1),
    "nodes of one user, by the job": Case(
        HALVES, ("-p main -c 4 --exclusive=user", "-p main -c 4 --exclusive=user"), 2, 2
    ),
    "a whole node": Case(HALVES, ("-p main -c 1 --exclusive",), 2, 1),
    "a core beside others": Case(FULL, ("-p main -c 1",), 1, 1),
    "whole cores": Case(
        tuple("-p threads -n 1" for _ in range(4)),
        ("-p threads -n 1 --exclude=node1", "-p threads -n 1"),
        2,
        2,
        "node3",
    ),
    "a thread of each core": Case(
        tuple("-p threads -n 1" for _ in range(4)), ("-p threads -n 2 --hint=nomultithread",), 2, 1, "node3"
    ),
    "a GPU without a type": Case(
        ("-p threads -n 1 --gres=gpu:1", "-p first -c 8"), ("-p threads -n 1 --gres=gpu:1",), 1, 1, "node3"
    ),
    "a GPU in shards": Case(
        ("-p threads -n 1 --gres=shard:2", "-p first -c 8"), ("-p threads -n 1 --gres=gpu:1",), 1, 1, "node3"
    ),
    "shards of a GPU in use": Case(
        ("-p threads -n 1 --gres=gpu:1", "-p first -c 8"), ("-p threads -n 1 --gres=shard:2",), 1, 1, "node3"
    ),
    "a limit of a user": Case(
        HALVES,
        tuple("-p main -c 4 --qos=small" for _ in range(3)),
        1,
        1,
        named="2 waiting jobs are held back by a limit",
    ),
    "a quality of service": Case(FULL, ("-p small,second -c 8",), 1, 1, "node2"),
    "a group that is not known here": Case(FULL, ("-p grouped,second -c 8",), 0, 0, named="the groups of its user"),
}


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A Debian release with Slurm: 22.05, 24.11, 26.05."""
    slurm_cluster.obtain_root(str(request.param))
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(release: str) -> Iterator[SlurmCluster]:
    """alice's account has a small share, and bob may use those of `cms` and `experiment`."""
    accounts = (Account("atlas", 1, ("alice",)), Account("cms", 9, ("bob",)), Account("experiment", 9, ()))
    qos = (Qos("small", ("MaxTRESPerUser=cpu=4",)),)
    with SlurmCluster(3, 8, release, CONFIG, accounts, qos, GRES) as running:
        running.run(["sacctmgr", "--immediate", "add", "account", "experiment-user", "parent=experiment"])
        running.run(["sacctmgr", "--immediate", "add", "user", "bob", "account=experiment-user"])
        yield running


def submit(cluster: SlurmCluster, user: str, options: str) -> int:
    return cluster.submit(SLEEP, user, ["--ntasks=1", *options.split()])


def plan(cluster: SlurmCluster, place: Path) -> Any:
    site = place / "site.ini"
    tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
    site.write_text(SITE.format(tools=tools, state=place / "state"))
    argv = [sys.executable, "-m", "drainwise", "plan", "--pool", "slurm", "--site", str(site), "--json"]
    return json.loads(cluster.run_outside(argv, environment=ENVIRONMENT).stdout)


def orders_of(seen: Any) -> list[Any]:
    return [order for user in seen["users"] for order in user["orders"]]


def settled_plan(cluster: SlurmCluster, place: Path, case: Case) -> Any:
    """The plan once Slurm's scheduler has looked at bob's jobs in all their partitions, or the last one."""
    found: list[Any] = []

    def is_settled() -> bool:
        found.append(plan(cluster, place))
        return len(orders_of(found[-1])) == case.orders and case.named in json.dumps(found[-1])

    with contextlib.suppress(DeadlineError):
        cluster.wait_for(is_settled, 20, "the plan")
    return found[-1]


def states(cluster: SlurmCluster, jobs: Collection[int]) -> list[str]:
    return [job.state for job in cluster.jobs() if job.id in jobs]


@pytest.mark.parametrize("name", CASES)
def test_who_goes_lets_the_waiting_job_start(cluster: SlurmCluster, release: str, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    if release not in case.releases:
        pytest.skip(f"{release} has another rule")
    try:
        pilots = [submit(cluster, "alice", options) for options in case.pilots]
        cluster.wait_for(lambda: set(states(cluster, pilots)) == {"RUNNING"}, 30, "alice's pilots")
        for line in case.before:
            cluster.run(line.split())
        jobs = [submit(cluster, "bob", options) for options in case.jobs]
        cluster.wait_for(
            lambda: all(job.reason not in {"None", ""} for job in cluster.jobs() if job.id in jobs),
            30,
            "bob's jobs to wait",
        )
        assert set(states(cluster, jobs)) == {"PENDING"}
        seen = settled_plan(cluster, tmp_path, case)
        orders = orders_of(seen)
        queue = cluster.run(["squeue", "--noheader", "--format=%i %u %P %t %r %N %Y"]).stdout
        assert len(orders) == case.orders, f"{queue}{json.dumps(seen)[:2000]}"
        assert not case.on or {order["node"] for order in orders} == {case.on}
        assert case.named in json.dumps(seen), f"{queue}{seen['notices']}"
        for order in orders:
            cluster.run(["scancel", order["name"]])
        try:
            cluster.wait_for(lambda: states(cluster, jobs).count("RUNNING") == case.run, 60, "bob's jobs to run")
        except DeadlineError:
            shown = (["squeue", "--format=%i %u %P %t %r %N %Y"], ["scontrol", "--oneliner", "show", "node"])
            pytest.fail("\n".join(cluster.run(command).stdout for command in shown))
    finally:
        undo = [line.split() for line in case.after]
        for words in undo:  # a node that is idle reboots, and a reservation with jobs stays
            cluster.run(words, check=False)
        cluster.cancel_all(90)
        for words in undo:
            cluster.run(words, check=False)

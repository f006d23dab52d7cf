"""On a cluster of unlike nodes the pilots go whose room the waiting job then takes, and no others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import drainwise
from slurm_cluster import DeadlineError, SlurmCluster, layout
from useful_orders import Stage, asked, use_room_that_comes_back_in_pieces

pytestmark = [pytest.mark.play, pytest.mark.in_turn("room made", "Slurm")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[slurm]
bin_dir = {tools}
[reclaim]
at_deadline = end
policy = least-waste
drain_only = no
min_age = 0s
time_to_start = 20s
[agent]
state_dir = {state}
"""
DRAINED = "drain_only = yes\ngrace = 50s\nmargin = 5s"
CPUS, MIB = 8, 2048
NODES = {"node1": "RealMemory=4096", "node2": "Feature=fast", "node3": "Gres=sim:1", "node4": ""}
"""node1 is poor of memory, node2 has a feature, node3 a device, node4 is in a partition that bob may not use."""
PARTITIONS = """\
GresTypes=sim
PartitionName=main Nodes=node1,node2,node3 Default=YES MaxTime=INFINITE State=UP
PartitionName=own Nodes=node4 AllowAccounts=atlas MaxTime=INFINITE State=UP
"""


def unlike_nodes(release: str) -> str:
    """Return the lines of slurm.conf for these nodes."""
    own = layout.slurm_conf(release, layout.node_names(len(NODES)), CPUS).splitlines()
    lines = {line.split()[0].partition("=")[2]: line for line in own if line.startswith("NodeName=")}
    changed = {name: f"{lines[name]} {more}" for name, more in NODES.items()}
    changed["node1"] = changed["node1"].replace(f"RealMemory={CPUS * MIB} ", "")
    return PARTITIONS + "\n".join(changed.values())


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def slurm_release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def unlike(slurm_release: str) -> Iterator[SlurmCluster]:
    with SlurmCluster(
        nodes=len(NODES), cpus=CPUS, release=slurm_release, config=unlike_nodes(slurm_release)
    ) as cluster:
        yield cluster


def submit(cluster: SlurmCluster, user: str, cores: int, *options: str) -> int:
    return cluster.submit("exec sleep 1000", user, ["--ntasks=1", f"--cpus-per-task={cores}", "--time=30", *options])


def running(cluster: SlurmCluster, user: str) -> set[str]:
    """The nodes of a user's running jobs."""
    return {job.nodes[0] for job in cluster.jobs() if job.state == "RUNNING" and job.user == user}


@pytest.fixture
def full(unlike: SlurmCluster) -> Iterator[SlurmCluster]:
    """alice has two pilots of 4 cores on each node, with half of its memory each."""
    for node in NODES:
        partition, memory = ("own" if node == "node4" else "main"), (2048 if node == "node1" else 4 * MIB)
        for _ in range(2):
            submit(unlike, "alice", 4, f"--nodelist={node}", f"--partition={partition}", f"--mem={memory}")

    def count() -> bool:
        return sum(job.state == "RUNNING" and job.user == "alice" for job in unlike.jobs()) == 2 * len(NODES)

    unlike.wait_for(count, 60, "all pilots")
    yield unlike
    unlike.cancel_all(90)


def stage_with(full: SlurmCluster, settings: str, tmp_path: Path) -> Stage:
    journal = str(tmp_path / "journal")
    site, tools = tmp_path / "site.ini", full.outside_env("root")["PATH"].split(os.pathsep)[0]
    site.write_text(settings.format(tools=tools, state=tmp_path / "state"))

    def command(*words: str) -> str:
        pool = ["--journal", journal] if words[0] == "explain" else ["--pool", "slurm", "--site", str(site)]
        pool += ["--journal", journal] if words[0] == "reclaim" else []
        argv = [sys.executable, "-m", "drainwise", *words, *pool]
        return full.run_outside(argv, environment=ENVIRONMENT).stdout

    return Stage(partial(submit, full), partial(running, full), command, full.wait_for, DeadlineError)


@pytest.fixture
def stage(full: SlurmCluster, tmp_path: Path) -> Stage:
    return stage_with(full, SITE, tmp_path)


def orders_until_bob_runs(stage: Stage) -> list[Any]:
    """Return the orders that were given until bob's job runs."""
    done = stage.cycles(120, lambda _: stage.running("bob"))
    assert all(asked(cycle) == len(cycle["acts"]) for cycle in done)
    return [order for cycle in done for user in cycle["users"] for order in user["orders"]]


@pytest.mark.parametrize(
    ("cores", "options", "nodes", "pilots"),
    [
        (4, ("--mem=8G",), {"node2", "node3"}, 1),
        (8, ("--mem=16G",), {"node2", "node3"}, 2),
        (2, ("--mem=12G",), {"node2", "node3"}, 2),
        (2, ("--mem=1G", "--constraint=fast"), {"node2"}, 1),
        (2, ("--mem=1G", "--gres=sim:1"), {"node3"}, 1),
        (2, ("--mem=1G", "--exclude=node2,node3"), {"node1"}, 1),
        (2, ("--mem=1G", "--nodelist=node2"), {"node2"}, 1),
        (8, ("--mem=2G", "--exclusive", "--constraint=fast"), {"node2"}, 2),
    ],
    ids=["memory", "whole memory", "more memory than cores", "feature", "device", "excluded", "named", "exclusive"],
)
def test_the_pilots_go_whose_room_the_job_takes(
    stage: Stage, cores: int, options: tuple[str, ...], nodes: set[str], pilots: int
) -> None:
    """All of one node, as many as the job needs there, and the job starts on it."""
    stage.submit("bob", cores, *options)
    orders = orders_until_bob_runs(stage)
    assert len(orders) == pilots
    (node,) = {order["node"] for order in orders}
    assert node in nodes
    assert set(stage.running("bob")) == {node}
    assert {order["room"]["place"] for order in orders} == {node}
    assert {job["account"] for order in orders for job in order["room"]["jobs"]} == {"cms"}
    name = orders[0]["name"]
    assert f"on {node} for 1 of cms" in stage.command("explain", name)


def test_room_that_comes_back_in_pieces_is_the_waiting_jobs(full: SlurmCluster, tmp_path: Path) -> None:
    """alice has further pilots waiting that would fit into the first piece."""
    for _ in range(4):
        submit(full, "alice", 4, f"--mem={4 * MIB}")
    bobs = submit(full, "bob", 1, "--begin=now+1hour")

    def bob_is_first() -> bool:
        """Slurm reckons once a minute who has used how much; until then it goes by who came first."""
        lines = full.run(["squeue", "--noheader", "--states=PENDING", "--format=%A %Q"]).stdout.splitlines()
        by_job = {int(job): int(priority) for job, priority in map(str.split, lines)}
        return by_job.pop(bobs) > max(by_job.values())

    full.wait_for(bob_is_first, 120, "that bob comes first")
    stage = stage_with(full, SITE.replace("drain_only = no", DRAINED), tmp_path)
    use_room_that_comes_back_in_pieces(
        stage, lambda order: full.run(["scancel", order["run"].partition("@")[0]]), "--mem=16G"
    )

"""Real pyslurms on real clusters: the agent's snapshot is the one that Slurm's commands give, or there is none.

On recorded objects they run everywhere: tests/slurm/test_pyslurm_objects.py. No package of pyslurm fits the Slurms of
these clusters. So $DRAINWISE_PYSLURM names directories
(separated by colons) with a pyslurm each, built from its source for the release's Slurm and Python and installed with
its metadata (`pip install --target`); without one that matches, these tests are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import drainwise
from drainwise.slurm.pool.transport import mismatch
from slurm_cluster import SlurmCluster, mixed_cluster

LIBRARY, PYSLURM = "/srv/lib", "/srv/pyslurm"
pytestmark = pytest.mark.skipif(
    not os.environ.get("DRAINWISE_PYSLURM"),
    reason="$DRAINWISE_PYSLURM names no pyslurm built for these Slurms: see CONTRIBUTING.md",
)
SLEEP = "exec sleep 1000"
STUBBORN = "trap '' TERM\nwhile :; do sleep 1; done"

# Run inside the cluster, by its own Python, as the agent would be.
BOTH = """
import dataclasses, json, sys, time
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.pool.pool import SlurmPool

pools = {name: SlurmPool(SlurmSection(transport=name)) for name in ("pyslurm", "commands")}
asked = sys.argv[1]
if asked:
    (one,) = (one for one in pools["pyslurm"].snapshot(int(time.time())).pilots if one.name == asked)
    pools["pyslurm"].give_order(one, int(time.time()) + 600, "test")
now = int(time.time())
found = {}
for name, pool in pools.items():
    facts = dataclasses.asdict(pool.snapshot(now))
    facts["pilots"] = {pilot["name"]: pilot for pilot in facts["pilots"]}
    found[name] = facts
print(json.dumps(found, default=sorted))
"""
FAULT = """
import sys, time
from drainwise.facts.errors import PoolUnreachable
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.pool.pool import SlurmPool

try:
    SlurmPool(SlurmSection(transport=sys.argv[1], command_timeout=4)).snapshot(int(time.time()))
except PoolUnreachable as fault:
    print(fault)
"""
CHOICE = """
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool.transport import SlurmTransport

print(*(SlurmTransport(SlurmCommands(), 30.0, "auto").choice().__dict__.values()), sep="|")
"""


def matching(version: str) -> str:
    """The directory with a pyslurm for a version of Slurm, "" when there is none."""
    for directory in filter(None, os.environ.get("DRAINWISE_PYSLURM", "").split(":")):
        for found in metadata.distributions(name="pyslurm", path=[directory]):
            if not mismatch(found.version, version):
                return directory
    return ""


def furnish(cluster: SlurmCluster) -> None:
    """Put drainwise and a pyslurm for the cluster's own Python into it."""
    version = ".".join(map(str, cluster.version))
    directory = matching(version)
    if not directory:
        pytest.skip(f"no pyslurm for Slurm {version} in $DRAINWISE_PYSLURM")
    if not Path(cluster.root + PYSLURM).exists():
        cluster.copy_in(os.path.dirname(os.path.abspath(drainwise.__file__)), f"{LIBRARY}/drainwise")
        cluster.copy_in(directory, PYSLURM)


@pytest.fixture
def cluster(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """The shared cluster with a pyslurm; it is left without jobs."""
    furnish(slurm)
    yield slurm
    if not slurm.is_running("slurmctld"):
        slurm.start_daemon("slurmctld")
        slurm.wait_until_complete()
    slurm.cancel_all(90)


def python(cluster: SlurmCluster, script: str, *arguments: str, **environment: str) -> str:
    variables = {"PYTHONPATH": f"{LIBRARY}:{PYSLURM}", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return cluster.run(["python3", "-c", script, *arguments], environment=variables).stdout


def put_up(cluster: SlurmCluster) -> int:
    """Jobs of every kind; the number of one to be ordered to end."""
    asked = cluster.submit(SLEEP, "alice", ["--cpus-per-task=2"])
    options = (
        ["--cpus-per-task=4", "--job-name=é\n|"],
        ["--array=0-2", "--cpus-per-task=2"],
        ["--time=UNLIMITED"],
        ["--nodes=2", "--ntasks=2"],
    )
    for one in options:
        cluster.submit(SLEEP, "alice", one)
    cluster.run(["sbatch", "--cpus-per-task=1", ":", "--cpus-per-task=2", f"--wrap={SLEEP}"], user="alice")
    ending = cluster.submit(STUBBORN, "bob")
    cluster.wait_for(lambda: all(job.state == "RUNNING" for job in cluster.jobs()), 30, "all to run")
    for one in (["--array=1-9%2", "--cpus-per-task=8", "--ntasks=1"], ["--hold"], ["--begin=now+1hour"], ["--nodes=9"]):
        cluster.run(["sbatch", *one, f"--wrap={SLEEP}"], user="bob", check=False)
    cluster.submit(SLEEP, "bob", ["--nodes=3", "--exclusive"])
    cluster.run(["scontrol", "update", f"JobId={asked}", "AdminComment=café"])
    cluster.run(["scancel", str(ending)])
    reasons = {"Resources", "Priority", "JobHeldUser", "BeginTime"}
    cluster.wait_for(lambda: reasons <= {job.reason for job in cluster.jobs()}, 30, "all to wait for their reasons")
    return asked


def test_the_snapshot_by_pyslurm_is_that_by_commands(cluster: SlurmCluster) -> None:
    """Also of an order that was given in between."""
    asked = put_up(cluster)
    found = json.loads(python(cluster, BOTH, str(asked)))
    ours, theirs = found["pyslurm"], found["commands"]
    assert ours == theirs
    # One more where a task of bob's array found a node that none of alice's jobs is on.
    assert len(ours["pilots"]) in {10, 11}
    assert {name for name, one in ours["pilots"].items() if one["deadline"]} == {str(asked)}
    assert [one["leaving"] for one in ours["pilots"].values()].count(True) == 1
    assert {one["name"]: one["cores_wanted"] for one in ours["accounts"]}["cms"] >= 16


def test_room_by_pyslurm_is_that_by_commands(slurm_release: str) -> None:
    """Kinds, places, closures and what runs hold, on unlike nodes: GPUs however they were asked for, lists of nodes."""
    with mixed_cluster(slurm_release) as cluster:
        furnish(cluster)
        cluster.submit(
            SLEEP, "alice", ["--ntasks=1", "--nodelist=node3", "--cpus-per-task=6", "--gres=gpu:a100:1,fpga:1"]
        )
        cluster.submit(SLEEP, "alice", ["--ntasks=1", "--nodelist=node3", "--cpus-per-task=2", "--gpus=1"])
        for node, memory in {"node1": 16000, "node2": 3000, "node5": 16000}.items():
            options = ["--ntasks=1", f"--nodelist={node}", "--cpus-per-task=8", f"--mem={memory}"]
            cluster.submit(SLEEP, "alice", options)
        cluster.wait_for(lambda: {job.state for job in cluster.jobs()} == {"RUNNING"}, 30, "all to run")
        words = ["StartTime=now+2hours", "Duration=60", "Nodes=node5", "Users=root", "Flags=MAINT,IGNORE_JOBS"]
        cluster.run(["scontrol", "create", "reservation", "ReservationName=repair", *words])
        waiting = (
            ["--ntasks=1", "--gpus=2"],
            ["--ntasks=2", "--gpus-per-task=a100:1"],
            ["--ntasks=1", "--gres=gpu:1,fpga:2"],
            ["--ntasks=1", "--constraint=fast&rack2"],
            ["--ntasks=1", "--exclude=node[1-2]"],
            ["--ntasks=1", "--nodelist=node2"],
            ["--ntasks=12"],
            ["--ntasks=1", "--time=150"],
        )
        for options in waiting:
            cluster.run(["sbatch", *options, "--mem-per-cpu=100", f"--wrap={SLEEP}"], user="bob", check=False)
        cluster.wait_for(
            lambda: {job.reason for job in cluster.jobs("--states=pending")} <= {"Resources", "Priority"},
            60,
            "all to wait",
        )
        found = json.loads(python(cluster, BOTH, ""))
        ours, theirs = found["pyslurm"], found["commands"]
        assert ours == theirs
        assert len(ours["kinds"]) >= 7
        assert len(ours["places"]) == 5
        assert [one["name"] for one in ours["closures"]] == ["repair"]


def test_check_sees_that_it_is_used(cluster: SlurmCluster) -> None:
    by, why_not = python(cluster, CHOICE).strip("\n").split("|")
    assert by.startswith("pyslurm ")
    assert why_not == ""


def test_without_slurmctld_there_is_no_answer_within_the_time_limit(cluster: SlurmCluster) -> None:
    """HOSTILE 54: libslurm itself tries for nine seconds."""
    cluster.kill_daemon("slurmctld")
    assert "did not answer within 4 s" in python(cluster, FAULT, "pyslurm")


def test_libslurm_ends_a_process_of_its_own_and_not_the_agent(cluster: SlurmCluster) -> None:
    """It calls exit() where slurm.conf cannot be read."""
    cluster.write("/srv/spoilt.conf", "ClusterName=test\nNoSuchKey=1\n")
    spoilt = {"SLURM_CONF": "/srv/spoilt.conf"}
    reader = f"{LIBRARY}/drainwise/slurm/pool/pyslurm_reader.py"
    ended = cluster.run(["python3", "-I", reader, PYSLURM, "jobs"], environment=spoilt, check=False)
    assert ended.returncode != 0
    assert "jobs" not in ended.stdout
    for setting in ("pyslurm", "auto"):
        assert "failed" in python(cluster, FAULT, setting, **spoilt)

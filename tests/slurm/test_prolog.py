"""The prolog as slurmd runs it: root, the job's variables and nothing else; it makes the tree and never stops a job."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from drainwise.common.wake import Wake
from drainwise.features.check import ERROR, check
from drainwise.features.host import scratch_bytes
from drainwise.features.read import open_features
from made_up_node import Ran, contents, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

ALICE, BOB = 54321, 54322
NOW = 1_795_249_000
JOB = MadeUpJob(17, ALICE)
DATED = MadeUpJob(17, ALICE, started=NOW, ends=NOW + 7200)
DIRECTORIES = {".machinefeatures", ".jobfeatures", ".jobstatus"}


def silent(ran: Ran) -> bool:
    """Whether a hook ended well and said nothing."""
    return (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def one_line(ran: Ran) -> str:
    """The one line that a hook said, and ended with 0."""
    assert (ran.returncode, ran.stdout) == (0, b"")
    [line] = ran.stderr.decode("ascii").splitlines()
    assert line.startswith("drainwise: ")
    assert line.isprintable()
    assert len(line) <= 200
    return line


# ---- what a job gets ----


def test_every_key_that_slurm_can_know(node: SlurmNode) -> None:
    """Both generations of keys: this node's cores of a job on three, its limits, the host as the agent recorded it."""
    node.record(JOB, 24, 32, 64)
    area = scratch_bytes("/tmp")
    assert area is not None and area >= 10**9
    assert silent(node.prolog(DATED))
    assert contents(f"{node.tree(DATED)}/.machinefeatures") == {
        "total_cpu": "24\n",
        "jobslots": "24\n",
        "phys_cores": "32\n",
        "log_cores": "64\n",
        "hs06": "240.5\n",
    }
    assert contents(f"{node.tree(DATED)}/.jobfeatures") == {
        "allocated_cpu": "4\n",
        "allocated_CPU": "4\n",
        "hs06_job": "40.083333\n",
        "jobstart_secs": f"{NOW}\n",
        "job_id": "17\n",
        "wall_limit_secs": "7200\n",
        "wall_limit_secs_lrms": "9000\n",
        "cpu_limit_secs": "28800\n",
        "cpu_limit_secs_lrms": "36000\n",
        "cpufactor_lrms": "1.25\n",
        "grace_secs_job": "60\n",
        "scratch_limit_bytes": f"{area}\n",
        "disk_limit_GB": f"{area // 10**9}\n",
    }
    assert contents(f"{node.tree(DATED)}/.jobstatus") == {}


def test_before_24_11(node: SlurmNode) -> None:
    """The prolog's own time is the start, the site's limit the only one."""
    begun = int(time.time())
    assert silent(node.prolog(JOB))
    found = contents(f"{node.tree(JOB)}/.jobfeatures")
    assert begun <= int(found["jobstart_secs"]) <= time.time()
    assert found["wall_limit_secs"] == "86400\n"


def test_each_node_of_a_job_knows_its_own_cores(node: SlurmNode) -> None:
    """Several nodes on one host do not get into each other's way."""
    for name, cores in (("node1", "4\n"), ("node2", "4\n"), ("node3", "2\n")):
        job = MadeUpJob(17, ALICE, node=name)
        assert silent(node.prolog(job))
        assert contents(f"{node.tree(job)}/.jobfeatures")["allocated_cpu"] == cores
    assert sorted(os.listdir(node.runtime_dir)) == ["node1", "node2", "node3"]


def test_the_check_is_content(node: SlurmNode) -> None:
    """No rule of the specification is broken by what the prolog writes, but for keys that only the agent knows."""
    node.record(JOB, 24, 32, 64)
    now = int(time.time())
    job = MadeUpJob(17, ALICE, started=now, ends=now + 7200)
    node.prolog(job)
    machine, own = (open_features(f"{node.tree(job)}/{name}") for name in (".machinefeatures", ".jobfeatures"))
    assert [verdict for verdict in check(machine, own, now) if verdict.level == ERROR] == []


def test_the_tree_is_roots_and_jobstatus_the_users(node: SlurmNode) -> None:
    """Everybody may look; only $JOBSTATUS is the user's, and the lease is for root alone."""
    node.prolog(JOB)
    tree = node.tree(JOB)
    assert set(os.listdir(tree)) == {*DIRECTORIES, "lease", "complete"}
    for name in ("", ".machinefeatures", ".jobfeatures", ".jobstatus"):
        status = os.stat(f"{tree}/{name}")
        assert (status.st_uid, status.st_mode & 0o7777) == (ALICE if name == ".jobstatus" else 0, 0o755)
    assert run_as(ALICE, ["/bin/cat", f"{tree}/lease"]).returncode != 0
    assert run_as(ALICE, ["/bin/touch", f"{tree}/.jobstatus/used_CPU"]).returncode == 0
    assert run_as(BOB, ["/bin/touch", f"{tree}/.jobstatus/evil"]).returncode != 0
    for path in (tree, f"{tree}/.jobfeatures", node.runtime_dir, os.path.dirname(tree)):
        assert run_as(ALICE, ["/bin/touch", f"{path}/evil"]).returncode != 0
        assert run_as(ALICE, ["/bin/ls", path]).returncode == 0


def test_a_planned_shutdown_is_there_from_the_start(node: SlurmNode) -> None:
    """In both directories, with the machine's time."""
    planned = int(time.time()) + 5000
    write(f"{node.base}/shutdowntime", f"{planned}\n", 0)
    assert silent(node.prolog(JOB))
    assert contents(f"{node.tree(JOB)}/.machinefeatures")["shutdowntime"] == f"{planned}\n"
    assert contents(f"{node.tree(JOB)}/.jobfeatures")["shutdowntime_job"] == f"{planned}\n"


@pytest.mark.parametrize("change", [{"node_list": "node[1-3"}, {"cpus_per_node": "4"}, {"node": "node9"}])
def test_cores_that_are_not_surely_known_are_left_out(node: SlurmNode, change: dict[str, str]) -> None:
    """It is said, and all the rest is there."""
    job = MadeUpJob(17, ALICE, **change)  # type: ignore[arg-type]
    assert "its cores on this node are not known" in one_line(node.prolog(job))
    found = contents(f"{node.tree(job)}/.jobfeatures")
    assert set(found).isdisjoint({"allocated_cpu", "allocated_CPU", "cpu_limit_secs", "hs06_job"})
    assert found["wall_limit_secs"] == "86400\n"


# ---- the agent ----


def test_the_agent_is_woken_and_waited_for(node: SlurmNode) -> None:
    """Where it listens the tree is not complete until it says so."""
    os.mkdir(node.runtime_dir, 0o755)
    fifo = Wake(f"{node.runtime_dir}/agent.wake")
    try:
        assert silent(node.prolog(JOB))
        assert fifo.clear()
    finally:
        fifo.close()
    assert not os.path.exists(f"{node.tree(JOB)}/complete")


# ---- the same job again ----


def test_a_requeued_job_finds_nothing_of_its_earlier_run(node: SlurmNode) -> None:
    """HOSTILE 48: its report, an order to leave, whatever lies there: all of another run."""
    node.prolog(DATED)
    write(f"{node.tree(DATED)}/.jobstatus/.site.ad", "VACATE_DESIRED = True\n", ALICE)
    again = MadeUpJob(17, ALICE, started=NOW + 60, ends=NOW + 7260, restarts=1)
    assert silent(node.prolog(again))
    assert contents(f"{node.tree(again)}/.jobstatus") == {}
    assert contents(f"{node.tree(again)}/.jobfeatures")["jobstart_secs"] == f"{NOW + 60}\n"


@pytest.mark.parametrize("job", [MadeUpJob(17, BOB), MadeUpJob(17, BOB, started=NOW, ends=NOW + 7200)])
def test_a_job_number_that_comes_back_is_another_job(node: SlurmNode, job: MadeUpJob) -> None:
    """HOSTILE 48: neither user of the number gets anything of the other's."""
    node.prolog(DATED)
    write(f"{node.tree(DATED)}/.jobstatus/used_CPU", "4\n", ALICE)
    assert silent(node.prolog(job))
    assert contents(f"{node.tree(job)}/.jobstatus") == {}
    assert os.stat(f"{node.tree(job)}/.jobstatus").st_uid == BOB


def test_the_prolog_of_a_running_job_changes_nothing(node: SlurmNode) -> None:
    """A slurmd that was restarted may run it twice; what the pilot has reported by then stays."""
    node.prolog(DATED)
    write(f"{node.tree(DATED)}/.jobstatus/used_CPU", "4\n", ALICE)
    before = os.stat(node.tree(DATED))
    assert silent(node.prolog(DATED))
    assert contents(f"{node.tree(DATED)}/.jobstatus") == {"used_CPU": "4\n"}
    assert os.path.samestat(os.stat(node.tree(DATED)), before)


@pytest.mark.parametrize("job", [JOB, DATED])
def test_two_at_once(node: SlurmNode, job: MadeUpJob) -> None:
    """HOSTILE 52: both end well and one whole tree is there."""
    running = [subprocess.Popen([node.hook("prolog")], env=job.environment()) for _ in range(4)]
    assert {hook.wait(timeout=60) for hook in running} == {0}
    assert len(contents(f"{node.tree(job)}/.jobfeatures")) == 12
    assert os.stat(f"{node.tree(job)}/.jobstatus").st_uid == ALICE
    assert not [name for name in os.listdir(os.path.dirname(node.tree(job))) if name.startswith(".new")]


# ---- what is not as it should be ----


@pytest.mark.parametrize("missing", ["SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURMD_NODENAME"])
def test_without_a_variable_that_names_the_job(node: SlurmNode, missing: str) -> None:
    """Nothing is made, and the job runs."""
    assert missing in one_line(node.prolog(JOB, **{missing: ""}))
    assert not os.path.exists(node.runtime_dir)


@pytest.mark.parametrize("text", [None, "hs06 = fast\n", "\0\xff"])
def test_settings_that_are_missing_or_wrong(node: SlurmNode, text: str | None) -> None:
    """One line names the file. The runtime directory is the usual one then, where this test may not write."""
    settings = node.site.slurm.node_file
    if text is None:
        os.unlink(settings)
    else:
        write(settings, text, 0)
    ran = run_as(ALICE, [node.hook("prolog")], JOB.environment())
    assert ran.returncode == 0
    assert b"node.conf" in ran.stderr.splitlines()[0]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(node: SlurmNode, closed: str) -> None:
    """None of them makes the prolog fail, and no file of ours is taken for one of them."""
    ran = run_as(0, ["/bin/sh", "-c", f'exec "$0" {closed}', node.hook("prolog")], JOB.environment())
    assert ran.returncode == 0
    assert all(text.count("\n") == 1 for text in contents(f"{node.tree(JOB)}/.jobfeatures").values())
    assert len(contents(f"{node.tree(JOB)}/.jobfeatures")) == 12

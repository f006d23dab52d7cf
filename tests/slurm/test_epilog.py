"""The epilog as slurmd runs it: the job's tree goes, with all in it and nothing else, and the node is never drained."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from made_up_node import Ran, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

ALICE = 54321
JOB, OTHER = MadeUpJob(17, ALICE), MadeUpJob(18, ALICE)


def silent(ran: Ran) -> bool:
    """Whether a hook ended well and said nothing."""
    return (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def of_node(node: SlurmNode) -> list[str]:
    """What stands beside the jobs' trees, hidden names too."""
    return sorted(os.listdir(os.path.dirname(node.tree(JOB))))


def test_the_jobs_tree_goes_and_no_other(node: SlurmNode) -> None:
    """Nothing hidden is left behind either."""
    for job in (JOB, OTHER):
        node.prolog(job)
    write(f"{node.tree(JOB)}/.jobstatus/used_CPU", "4\n", ALICE)
    assert silent(node.epilog(JOB))
    assert of_node(node) == ["18"]
    assert len(os.listdir(f"{node.tree(OTHER)}/.jobfeatures")) == 12


@pytest.mark.parametrize("before", ["no runtime directory", "another job's prolog", "an epilog"])
def test_where_the_prolog_never_ran(node: SlurmNode, before: str) -> None:
    """There is nothing to do, and nothing is made."""
    if before == "another job's prolog":
        node.prolog(OTHER)
    elif before == "an epilog":
        node.prolog(JOB)
        node.epilog(JOB)
    seen = os.path.exists(node.runtime_dir) and of_node(node)
    assert silent(node.epilog(JOB))
    assert (os.path.exists(node.runtime_dir) and of_node(node)) == seen


def test_what_killed_hooks_left_goes_with_the_next_epilog(node: SlurmNode) -> None:
    """HOSTILE 51: half-made trees after a minute, half-removed ones at once; a prolog at work is not disturbed."""
    node.prolog(OTHER)
    place = os.path.dirname(node.tree(JOB))
    for name in (".new.15.1.0", ".new.16.1.0", ".gone.14.1.0"):
        os.makedirs(f"{place}/{name}/.jobstatus/deep")
    long_ago = time.time() - 100
    os.utime(f"{place}/.new.15.1.0", (long_ago, long_ago))
    assert silent(node.epilog(JOB))
    assert of_node(node) == [".new.16.1.0", "18"]


def test_two_at_once(node: SlurmNode) -> None:
    """HOSTILE 52: epilogs of several jobs find the same leftovers."""
    numbers = range(20, 24)
    for number in (17, *numbers):
        node.prolog(MadeUpJob(number, ALICE))
    place = f"{os.path.dirname(node.tree(JOB))}/.gone.14.1.0/.jobstatus"
    os.makedirs(place)
    for name in range(3000):
        os.close(os.open(f"{place}/{name}", os.O_CREAT))
    running = [
        subprocess.Popen([node.hook("epilog")], env=MadeUpJob(number, ALICE).environment(), stderr=subprocess.PIPE)
        for number in numbers
    ]
    for hook in running:
        assert hook.communicate(timeout=60)[1] == b""
        assert hook.returncode == 0
    assert of_node(node) == ["17"]


@pytest.mark.parametrize("value", ["", "0", "..", ".gone.14.1.0", "17/../18", "17 18", "*"])
def test_a_job_that_is_no_number(node: SlurmNode, value: str) -> None:
    """HOSTILE 15, 44: nothing is removed, one line says why."""
    for job in (JOB, OTHER):
        node.prolog(job)
    ran = node.epilog(JOB, SLURM_JOB_ID=value)
    assert ran.returncode == 0
    [line] = ran.stderr.decode("ascii").splitlines()
    assert "SLURM_JOB_ID" in line
    assert of_node(node) == ["17", "18"]


def test_the_working_directory_may_be_the_tree_itself(node: SlurmNode) -> None:
    """slurmd may stand anywhere."""
    node.prolog(JOB)
    assert silent(run_as(0, [node.hook("epilog")], JOB.environment(), cwd=f"{node.tree(JOB)}/.jobstatus"))
    assert of_node(node) == []

"""The task prolog as slurmd runs it: the job's user, the job's environment, lines for slurmd on standard output."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from drainwise.common.wake import Wake
from drainwise.node import DIRECTORIES, with_twins
from drainwise.slurm.node import task_prolog
from drainwise.slurm.node.job_tree import mark_complete, unmount
from drainwise.slurm.node.task_prolog import wait_for_limits
from made_clock import MadeClock
from made_up_node import Ran, make_directory, run_as, write
from made_up_slurm_node import MadeUpJob, SlurmNode

from .conftest import MakeNode

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

ALICE, BOB = 54321, 54322
JOB = MadeUpJob(17, ALICE)
ALL = [twin for name in DIRECTORIES for twin in with_twins(name)]


def told(ran: Ran) -> dict[str, str | None]:
    """What slurmd does with the output: variables by name, None where one is taken away. Nothing may be said."""
    assert (ran.returncode, ran.stderr) == (0, b"")
    variables: dict[str, str | None] = {}
    for line in ran.stdout.decode("ascii").splitlines():
        word, _, rest = line.partition(" ")
        name, equals, value = rest.partition("=")
        assert (word, equals) in {("export", "="), ("unset", "")}
        variables[name] = value if equals else None
    return variables


def test_the_variables_name_the_directories(node: SlurmNode) -> None:
    """Each with the twins that container runtimes pass on."""
    node.prolog(JOB)
    tree = node.tree(JOB)
    assert told(node.task_prolog(JOB)) == {
        twin: f"{tree}/{directory}" for name, directory in DIRECTORIES.items() for twin in with_twins(name)
    }


def test_containers_bind_the_jobs_directories_where_the_site_wants_it(node: SlurmNode) -> None:
    """One bind for all three, behind what the job binds itself, once; nothing without the setting or without a tree."""
    binds = ("APPTAINER_BIND", "SINGULARITY_BIND")
    node.prolog(JOB)
    assert not set(told(node.task_prolog(JOB))) & set(binds)
    settings = node.site.slurm.node_file
    with open(settings, "a", encoding="ascii") as stream:
        stream.write("container_bind = 1\n")
    found = told(node.task_prolog(JOB, APPTAINER_BIND="/data,/a:/b:ro"))
    assert [found[name] for name in binds] == [f"/data,/a:/b:ro,{node.tree(JOB)}", node.tree(JOB)]
    again = told(node.task_prolog(JOB, **{name: str(found[name]) for name in binds}))
    assert not set(again) & set(binds), "a step has the batch script's variables"
    evil = told(node.task_prolog(JOB, APPTAINER_BIND="/a\nexport LD_PRELOAD=/evil"))
    assert "APPTAINER_BIND" not in evil and "LD_PRELOAD" not in evil
    assert not set(told(node.task_prolog(MadeUpJob(18, ALICE)))) & set(binds)
    assert not set(told(node.task_prolog(MadeUpJob(17, BOB)))) & set(binds)


def test_without_a_tree_no_stranger_variables_are_left(node: SlurmNode) -> None:
    """A job submitted from within another one came with that one's variables: they name nothing of its own."""
    assert told(node.task_prolog(JOB, MACHINEFEATURES="/other", JOBSTATUS="/other")) == dict.fromkeys(ALL)


@pytest.mark.parametrize("missing", sorted(DIRECTORIES.values()))
def test_a_directory_that_could_not_be_made_is_not_named(node: SlurmNode, missing: str) -> None:
    """The other two are."""
    node.prolog(JOB)
    unmount(os.path.realpath(node.tree(JOB)))
    os.rename(f"{node.tree(JOB)}/{missing}", f"{node.base}/aside")
    found = told(node.task_prolog(JOB))
    gone = {twin for name, directory in DIRECTORIES.items() if directory == missing for twin in with_twins(name)}
    assert {name for name, value in found.items() if value is None} == gone


def test_a_tree_of_another_user_is_not_named(node: SlurmNode) -> None:
    """HOSTILE 48: a prolog that did not get through must not lend a job the tree of an older one."""
    node.prolog(JOB)
    assert told(node.task_prolog(MadeUpJob(17, BOB))) == dict.fromkeys(ALL)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_directory_is_not_named(node: SlurmNode, kind: str) -> None:
    """HOSTILE 1: only root could put it there; it is not followed all the same."""
    node.prolog(JOB)
    place = f"{node.tree(JOB)}/.jobfeatures"
    os.rename(place, f"{node.base}/aside")
    if kind == "link":
        os.symlink(f"{node.base}/aside", place)
    else:
        write(place, "", 0)
    assert told(node.task_prolog(JOB))["JOBFEATURES"] is None


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURMD_NODENAME"])
@pytest.mark.parametrize("value", ["", "..", "../../etc", "1;id", "$(id)", "1\nprint evil"])
def test_a_job_that_is_not_surely_named_is_told_nothing(node: SlurmNode, name: str, value: str) -> None:
    """HOSTILE 44: no line of ours holds what was not checked."""
    node.prolog(JOB)
    ran = node.task_prolog(JOB, **{name: value})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


# ---- waiting for the limits ----


@pytest.fixture
def woken(make_node: MakeNode) -> SlurmNode:
    """A node on which a job starts and an agent listens; a job waits a second for it at most."""
    node = make_node()
    os.mkdir(node.runtime_dir, 0o755)
    fifo = Wake(f"{node.runtime_dir}/agent.wake")
    node.prolog(JOB)
    fifo.close()
    return node


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MadeClock:
    """What the task prolog takes for the time."""
    made = MadeClock(time.time())
    monkeypatch.setattr(task_prolog, "time", made)
    return made


def test_it_waits_for_the_agent_and_no_longer(
    woken: SlurmNode, clock: MadeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the tree is complete the task goes on."""
    tree = os.open(woken.tree(JOB), os.O_RDONLY)

    def pause(seconds: float) -> None:
        clock.now += seconds
        clock.pauses += 1
        if clock.pauses == 3:
            mark_complete(tree)

    monkeypatch.setattr(clock, "sleep", pause)
    wait_for_limits(woken.tree(JOB))
    os.close(tree)
    assert clock.pauses == 3


def test_an_agent_that_never_answers(woken: SlurmNode) -> None:
    """The wait ends by itself, a second after the prolog, and the job has what the prolog knew."""
    assert told(woken.task_prolog(JOB))["JOBFEATURES"]
    assert time.time() - os.stat(f"{woken.tree(JOB)}/lease").st_mtime >= 1


@pytest.mark.parametrize(("age", "waits"), [(3600, 0), (-3600, 1), (0, 1)])
def test_nobody_waits_longer_than_a_second(woken: SlurmNode, clock: MadeClock, age: int, waits: int) -> None:
    """HOSTILE 53: later tasks of the job do not wait at all, and none for ever when the clock was set back."""
    begun = clock.now
    os.utime(f"{woken.tree(JOB)}/lease", (begun - age, begun - age))
    wait_for_limits(woken.tree(JOB))
    assert clock.now - begun == pytest.approx(waits, abs=0.02)


def test_nobody_waits_for_a_tree_that_is_not_there(node: SlurmNode, clock: MadeClock) -> None:
    """The prolog did not get through."""
    wait_for_limits(node.tree(JOB))
    assert clock.pauses == 0


# ---- what the user does to it ----


def test_the_users_environment_does_not_count(node: SlurmNode) -> None:
    """HOSTILE 46: neither libraries, nor Python's variables, nor programs on PATH, nor shell start-up files."""
    evil = f"{node.base}/evil"
    make_directory(evil, 0o755, ALICE)
    for name in ("posix", "drainwise", "sitecustomize"):
        write(f"{evil}/{name}.py", f"open({evil + '/ran'!r}, 'w')\nraise SystemExit(3)\n", ALICE)
    for name in ("python3", "libc.so.6.evil"):
        write(f"{evil}/{name}", f"#!/bin/sh\ntouch {evil}/ran\nexit 3\n", ALICE)
        os.chmod(f"{evil}/{name}", 0o755)
    node.prolog(JOB)
    plain = told(node.task_prolog(JOB))
    found = told(
        node.task_prolog(
            JOB,
            PATH=evil,
            PYTHONPATH=evil,
            PYTHONHOME=evil,
            PYTHONSTARTUP=f"{evil}/posix.py",
            PYTHONINSPECT="1",
            LD_LIBRARY_PATH=evil,
            GCONV_PATH=evil,
            LOCPATH=evil,
            IFS="/",
            ENV=f"{evil}/python3",
            BASH_ENV=f"{evil}/python3",
            SLURM_EVIL="x" * 100_000,
        )
    )
    assert found == plain
    assert not os.path.exists(f"{evil}/ran")


def test_a_library_that_breaks_every_program_does_not_break_it(node: SlurmNode) -> None:
    """HOSTILE 46: LD_PRELOAD names something that is no library; the interpreter does not get to see it."""
    node.prolog(JOB)
    ran = node.task_prolog(JOB, LD_PRELOAD="/nonexistent.so", LD_AUDIT="/nonexistent.so")
    assert ran.returncode == 0
    assert b"export JOBFEATURES=" in ran.stdout


@pytest.mark.parametrize("limit", ["--nproc=0", "--nofile=12", "--as=20000000", "--cpu=1", "--fsize=0"])
def test_limits_of_the_user_do_not_make_it_fail(node: SlurmNode, limit: str) -> None:
    """HOSTILE 28: no process, descriptor or memory to be had: the task starts without the variables."""
    node.prolog(JOB)
    ran = run_as(ALICE, ["/usr/bin/prlimit", limit, node.hook("task_prolog")], JOB.environment())
    assert ran.returncode == 0


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(node: SlurmNode, closed: str) -> None:
    """None of them makes it fail."""
    node.prolog(JOB)
    ran = run_as(ALICE, ["/bin/sh", "-c", f'exec "$0" {closed}', node.hook("task_prolog")], JOB.environment())
    assert ran.returncode == 0


def test_a_reader_that_has_gone(node: SlurmNode) -> None:
    """slurmd gave up: no failure of ours."""
    node.prolog(JOB)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        ran = subprocess.run([node.hook("task_prolog")], env=JOB.environment(), stdout=closed, check=False)
    assert ran.returncode == 0

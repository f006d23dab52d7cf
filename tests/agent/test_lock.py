"""One agent per pool, whatever way one ends."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from drainwise.agent.lock import AgentLock, lock_path
from drainwise.facts.errors import PoolError, UsageError
from local_batch import ENVIRONMENT
from real_daemons.waiting import wait_for

HOLD = """
import os, signal, sys, time
from drainwise.agent.lock import AgentLock
AgentLock(sys.argv[1]).must_take()
if sys.argv[2] == "with a child":
    reader, writer = os.pipe()
    if os.fork() == 0:  # an order that is being given
        sys.stdout.close(); os.close(1)
        signal.sigwait({signal.SIGUSR1})
        os._exit(0)
print("held", flush=True)
signal.pause()
"""


@contextmanager
def holder(path: str, how: str = "alone") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, path, how]
    if how == "with a child":
        command = [
            sys.executable,
            "-c",
            f"import signal; signal.pthread_sigmask(0, {{signal.SIGUSR1}}){HOLD}",
            *command[3:],
        ]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return lock_path(str(tmp_path / "made" / "here"), "htcondor /etc/condor")


def test_its_file_is_named_after_the_pool() -> None:
    """HOSTILE 15: whatever the pool is called, it is a plain file in the state directory."""
    assert lock_path("/var/lib/drainwise", "htcondor") == "/var/lib/drainwise/agent-htcondor.lock"
    assert lock_path("/s", "local /home/x/../\n\x1bé") == "/s/agent-local-home-x.lock"
    assert re.fullmatch(r"/s/agent-[x-]{1,100}\.lock", lock_path("/s", "x/" * 500))


def test_a_second_agent_is_refused_and_told_who_acts(path: str) -> None:
    with holder(path) as process:
        lock = AgentLock(path)
        assert not lock.take() and not lock.is_held() and lock.holder() == f"pid {process.pid}"
        with pytest.raises(PoolError, match=f"another agent acts on this pool .pid {process.pid}.; it holds {path}"):
            lock.must_take()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_its_holder_dies_the_next_one_takes_over_at_once(path: str, number: signal.Signals) -> None:
    """HOSTILE 51: what a kill -9 leaves behind hinders nobody."""
    with holder(path) as process:
        process.send_signal(number)
        process.wait()
        lock = AgentLock(path)
        lock.must_take()
        assert lock.is_held() and lock.holder() == f"pid {os.getpid()}"
        lock.release()


def test_an_order_that_is_being_given_is_waited_for(path: str) -> None:
    """A child that gives an order holds the lock with its parent: nobody acts beside it."""
    with holder(path, "with a child") as process:
        process.kill()
        process.wait()
        lock = AgentLock(path)
        assert not lock.take()
        os.killpg(process.pid, signal.SIGUSR1)
        wait_for(lock.take)
        lock.release()


def test_after_a_release_nobody_is_named(path: str) -> None:
    lock = AgentLock(path)
    lock.must_take()
    lock.must_take()
    lock.release()
    lock.release()
    assert not lock.is_held() and lock.holder() == "its pid is not known"
    assert AgentLock(path + "x").holder() == "nobody"


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lock_whose_file_was_taken_away_is_held_no_more(path: str, how: str) -> None:
    """Another agent could make the file anew and act beside this one."""
    lock = AgentLock(path)
    lock.must_take()
    os.unlink(path)
    if how == "replaced":
        Path(path).write_text("")
    assert not lock.is_held()
    lock.release()


def test_nobody_else_can_lock_it(path: str) -> None:
    """HOSTILE 47: the kernel lets whoever can read a file lock it; a user of the machine would stop every agent."""
    os.makedirs(os.path.dirname(path))
    Path(path).touch(0o644)
    lock = AgentLock(path)
    lock.must_take()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    lock.release()
    os.unlink(path)
    lock.must_take()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    lock.release()


def test_a_link_in_its_place_is_refused(path: str, tmp_path: Path) -> None:
    """HOSTILE 1: the file that it leads to is left alone."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.makedirs(os.path.dirname(path))
    os.symlink(victim, path)
    with pytest.raises(UsageError, match=r"see \[agent\] state_dir"):
        AgentLock(path).take()
    assert victim.read_text() == "precious"


def test_where_it_cannot_be_kept_the_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot be kept there \(File exists\); see \[agent\] state_dir"):
        AgentLock(lock_path(str(tmp_path / "file"), "local")).take()


def test_its_directory_is_for_everybody(tmp_path: Path) -> None:
    """Whatever the umask is: the planned shutdown lies there, too, and the jobs' hooks read it."""
    before = os.umask(0o077)
    try:
        AgentLock(str(tmp_path / "drainwise" / "agent.lock")).make_place()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "drainwise").st_mode) == 0o755

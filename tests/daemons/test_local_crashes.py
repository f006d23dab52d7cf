"""What breaks in the local batch system: daemons killed at any moment, stuck, started twice, without their state."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.local.control import LOG, start_daemon
from drainwise.local.daemon_lock import LOCK, DaemonLock, find_daemon
from drainwise.local.database import STATE
from drainwise.local.job import ENDED, RUNNING, LocalNode
from drainwise.local.lease.files import find_lease
from drainwise.local.leases import DaemonSettings
from drainwise.local.pool import LocalPool
from drainwise.local.store import LocalStore
from drainwise.local.wake import wake_daemon
from local_batch import ENVIRONMENT, Batch
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.in_turn("killed at every moment", "local batch system")


def test_two_daemons_on_one_directory_refuse_each_other(batch: Batch) -> None:
    pid = batch.start()
    assert f"serves it already (pid {pid})" in batch.said("local", "start", code=1)
    assert f"serves it already (pid {pid})" in batch.said("local", "serve", "--foreground", code=1)
    batch.pool.snapshot(int(time.time()))


def test_of_many_daemons_that_start_at_once_one_serves(batch: Batch) -> None:
    command = [sys.executable, "-m", "drainwise", "local", "start", "--directory", batch.directory]
    starts = [
        subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) for _ in "1234"
    ]
    assert sorted(start.wait(timeout=60) for start in starts) == [0, 1, 1, 1]
    for start in starts:
        start.communicate()


def test_the_daemons_nodes_are_not_changed_by_one_that_is_refused(batch: Batch) -> None:
    batch.start(cores=16)
    batch.said("local", "start", "--nodes", "9x99", code=1)
    with LocalStore(batch.directory) as store:
        assert store.nodes() == (LocalNode("node1", 16),)


def test_a_restarted_daemon_finds_leases_again_and_sees_which_ended_meanwhile(batch: Batch) -> None:
    batch.start()
    [stays] = batch.submit("sleep 1000")
    [ends] = batch.submit("while [ ! -e go ]; do sleep 0.02; done; exit 5", cores=4)
    [dies] = batch.submit("while [ ! -e go ]; do sleep 0.02; done; kill -9 $$", cores=4)
    batch.await_state(RUNNING, stays, ends, dies)
    before = batch.job(stays)
    with LocalStore(batch.directory) as store:
        directories = {job_id: store.lease_directory(batch.job(job_id).run) for job_id in (stays, ends, dies)}
    batch.kill_daemon()
    for job_id in (ends, dies):
        (batch.work(job_id) / "go").touch()
        wait_for(lambda: find_lease(directories[job_id]) is None, what="the lease has ended")  # noqa: B023 - called at once
    assert batch.job(ends).state == RUNNING
    ended_before = time.time()
    batch.start()
    batch.await_state(ENDED, ends, dies)
    assert (batch.job(ends).code, batch.job(dies).signal) == (5, 9)
    assert (batch.job(ends).ended or 0) < ended_before
    after = batch.job(stays)
    assert (after.state, after.run, after.supervisor) == (RUNNING, before.run, before.supervisor)
    assert "found again" in batch.log()


def test_a_supervisor_that_was_killed_is_noticed_and_its_job_is_gone(batch: Batch) -> None:
    batch.start()
    [job_id] = batch.submit("setsid sleep 1000 & echo $! > pid; sleep 1000")
    wait_for(
        lambda: batch.job(job_id).state == RUNNING and (batch.work(job_id) / "pid").exists(), what="the job has begun"
    )
    supervisor = batch.job(job_id).supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    batch.await_state(ENDED, job_id)
    assert batch.job(job_id).note == "its lease supervisor vanished"
    assert batch.empty()


def test_an_order_stands_over_a_kill_of_the_daemon(batch: Batch) -> None:
    """The deadline passes while no daemon runs: the next one enforces it at once."""
    batch.start(kill_wait=1.0)
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    [pilot] = batch.pool.snapshot(int(time.time())).pilots
    deadline = int(time.time()) + 1
    batch.pool.give_order(pilot, deadline, "bob waits")
    batch.kill_daemon()
    wait_for(lambda: time.time() > deadline, what="the deadline")
    assert batch.job(job_id).state == RUNNING
    batch.start(kill_wait=1.0)
    batch.await_state(ENDED, job_id)
    assert batch.job(job_id).signal == signal.SIGTERM


def test_a_dead_or_stuck_daemon_is_no_answer(batch: Batch) -> None:
    pid = batch.start()
    short = LocalPool(batch.directory, stale_after=2.0)
    wait_for(lambda: not _refuses(short), what="an answer")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: _refuses(short), what="a refusal")
        with pytest.raises(PoolUnreachable, match="does not answer"):
            short.snapshot(int(time.time()))
    finally:
        os.kill(pid, signal.SIGCONT)
    batch.submit("sleep 1000")
    wait_for(lambda: not _refuses(short), what="an answer again")
    batch.kill_daemon()
    assert "no daemon serves" in batch.said("status", "--pool", "local", code=1)
    assert "no daemon serves" in batch.said("reclaim", "--once", "--act", "--pool", "local", code=1)


def _refuses(pool: LocalPool) -> bool:
    try:
        pool.snapshot(int(time.time()))
    except PoolUnreachable:
        return True
    return False


def test_a_job_that_cannot_be_started_waits_with_its_reason(batch: Batch) -> None:
    start_daemon(batch.directory, DaemonSettings(retry=0.5), [LocalNode("node1", 16)])
    leases = Path(batch.directory) / "leases"
    leases.rmdir()
    leases.write_text("in the way")
    [job_id] = batch.submit("exit 0")
    wait_for(lambda: batch.job(job_id).note, what="a reason")
    assert "leases" in batch.said("local", "queue")
    leases.unlink()
    leases.mkdir(0o700)
    batch.await_state(ENDED, job_id)
    assert batch.job(job_id).code == 0


def test_while_the_state_cannot_be_written_nothing_is_decided_and_afterwards_all_goes_on(batch: Batch) -> None:
    """Another process holds the state (as a full disk would): the daemon says so once, starts nothing, and recovers."""
    batch.start()
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    holder = sqlite3.connect(os.path.join(batch.directory, "state.db"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    supervisor = batch.job(job_id).supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGUSR1)  # the lease ends, which cannot be written down
    wait_for(lambda: "the state:" in batch.log(), what="a line in the log")
    holder.execute("ROLLBACK")
    holder.close()
    batch.await_state(ENDED, job_id)
    wait_for(lambda: "the state: all right again" in batch.log(), what="another line")
    assert batch.log().count("the state:") == 2


def test_a_daemon_whose_state_was_removed_ends(batch: Batch) -> None:
    """It would go on writing what nobody else can see, beside a new state under the old name."""
    batch.start()
    for path in Path(batch.directory).glob("state.db*"):
        path.unlink()
    wake_daemon(batch.directory)
    wait_for(lambda: find_daemon(batch.directory) is None, what="the daemon has ended")
    assert "the state was removed" in batch.log()
    batch.account("alice", 8)


def test_a_daemon_whose_lock_was_removed_leaves_the_directory_to_the_next_one(batch: Batch) -> None:
    """Its lock keeps nobody out any more: two daemons would start each job twice. Its leases go on."""
    batch.start()
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    (Path(batch.directory) / LOCK).unlink()
    wake_daemon(batch.directory)
    wait_for(lambda: batch.log().endswith("stopped\n"), what="the daemon has ended")
    assert "another daemon could serve beside this one" in batch.log()
    batch.start()
    assert batch.job(job_id).state == RUNNING


def counting_job(batch: Batch) -> str:
    """A job that notes its number in a file when it runs, and soon ends with 0."""
    return f"cat $JOBFEATURES/job_id >> {batch.directory}/ran; sleep 0.2"


def every_job_ran_once(batch: Batch, ids: list[int]) -> None:
    wait_for(lambda: all(batch.job(job_id).state == ENDED for job_id in ids), what="all ended", seconds=180)
    ran = sorted(int(line) for line in (Path(batch.directory) / "ran").read_text().split())
    assert ran == ids
    assert {(batch.job(job_id).code, batch.job(job_id).note) for job_id in ids} == {(0, "")}
    assert batch.empty()


def test_a_daemon_killed_again_and_again_loses_no_job_and_starts_none_twice(batch: Batch) -> None:
    """kill -9 at thirty moments, spread over start-up, recovery, starts and ends."""
    ids: list[int] = []
    for turn in range(30):
        ids += batch.submit(counting_job(batch), cores=2, count=2)
        batch.start()
        pause = time.monotonic() + turn * 0.009
        wait_for(lambda: time.monotonic() > pause, what="the moment")  # noqa: B023 - called at once
        batch.kill_daemon()
    batch.start()
    every_job_ran_once(batch, ids)


DIES = """\
import os, sys, time
from drainwise.local import daemon, database, leases, store
from drainwise.local import store as daemon_store
from drainwise.local.lease import start
from drainwise.local.leases import DaemonSettings
files = {module.__file__ for module in (daemon, leases, start, store, database)}
left = int(sys.argv[2])
def trace(frame, event, argument):
    global left
    if frame.f_code.co_filename not in files:
        return None
    if event == "line":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)
    return trace
served = daemon.Daemon(sys.argv[1], DaemonSettings(), lambda text: None)
sys.settrace(trace)
served.round(time.time())
sys.settrace(None)
print(left)
served.close()
"""


def test_a_daemon_killed_at_any_line_of_a_start_loses_nothing(batch: Batch) -> None:
    """Not chance but every so-manieth line of the daemon's own code: a round that finds, ends and starts leases."""
    batch.start()
    batch.said("local", "stop")
    ids: list[int] = []
    environment: Mapping[str, str] = ENVIRONMENT
    line, killed = 3, 0
    while True:
        ids += batch.submit(counting_job(batch), cores=1)
        command = [sys.executable, "-c", DIES, batch.directory, str(line)]
        ran = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=60)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        line, killed = line + 7, killed + 1
        if line > 350:
            break
    assert killed >= 25
    batch.start()
    every_job_ran_once(batch, ids)


def test_leases_of_a_daemon_that_is_killed_are_not_touched_by_its_death(batch: Batch) -> None:
    """The lock, the state and the terminal are the daemon's alone: a lease holds none of them."""
    batch.start()
    [job_id] = batch.submit("sleep 1000")
    batch.await_state(RUNNING, job_id)
    supervisor = batch.job(job_id).supervisor
    assert supervisor is not None
    held = [os.readlink(f"/proc/{supervisor.pid}/fd/{name}") for name in os.listdir(f"/proc/{supervisor.pid}/fd")]
    own = os.path.join(batch.directory, "leases")
    assert all(not path.startswith(batch.directory) or path.startswith(own) for path in held), held
    batch.kill_daemon()
    DaemonLock(batch.directory).release()
    assert find_lease(os.path.join(own, batch.job(job_id).run)) == supervisor


def test_rows_that_no_reader_can_read_end_neither_the_daemon_nor_what_runs(batch: Batch) -> None:
    """A command and a report that are no JSON cost themselves; a number that is none stops all until it is mended."""
    pid = batch.start()
    [runs] = batch.submit("exec sleep 600")
    batch.await_state(RUNNING, runs)
    [waits] = batch.submit("true", cores=16)
    state = Path(batch.directory) / STATE

    def change(statement: str) -> None:
        with sqlite3.connect(state) as other:
            other.execute(statement)
        other.close()

    change(f"UPDATE jobs SET command = 'no JSON', environment = '{{' WHERE job_id IN ({runs}, {waits})")
    change(f"INSERT OR REPLACE INTO reports VALUES ('{batch.job(runs).run}', '[')")
    [next_one] = batch.submit("true", wall=60)  # it ends before the larger one can start
    batch.await_state(ENDED, next_one)
    change(f"UPDATE jobs SET cores = 'many' WHERE job_id = {next_one}")
    change(f"UPDATE jobs SET cores = 'many' WHERE job_id = {runs}")
    with pytest.raises(PoolError, match=f"damaged: job {runs} in jobs: cores = 'many'"):
        batch.pool.snapshot(int(time.time()))
    log = Path(batch.directory) / LOG
    wait_for(lambda: f"damaged: job {runs} in jobs" in log.read_text(), what="the daemon says so")
    change("UPDATE jobs SET cores = 8")
    wait_for(lambda: "the state: all right again" in log.read_text(), what="the daemon goes on")
    assert find_daemon(batch.directory) and batch.job(runs).state == RUNNING
    batch.said("local", "remove", str(runs))
    batch.await_state(ENDED, runs, waits)
    assert "the command is empty" in batch.job(waits).note
    assert os.path.exists(f"/proc/{pid}")

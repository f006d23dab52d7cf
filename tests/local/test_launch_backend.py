"""The local batch system as a backend of the launcher, without a daemon: what it can never run, and who is who."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, ConfigurationError, PoolUnreachable, UsageError
from drainwise.local.job import LONGEST_WALL_LIMIT, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.store import DaemonStore
from drainwise.processes.process import Process
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, JobState, LaunchPlace, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.local_batch import REMOVED, LocalBatchBackend, doubt, open_backend

JOB = Start("r-1c-1", "v-1", ("true",), "/", Resources(1, 100), "/dev/null", {"SEED": "7"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DaemonStore]:
    """A state with one node of 8 cores and alice's account."""
    with DaemonStore(str(tmp_path / "state"), create=True) as made:
        made.set_nodes([LocalNode("node1", 8)])
        made.set_account(AccountQuota("alice", 8))
        yield made


@pytest.fixture
def backend(store: DaemonStore) -> LocalBatchBackend:
    return LocalBatchBackend(store.directory, "alice", "alice", "v-")


def begun(store: DaemonStore, handle: str) -> LocalJob:
    """The job's lease, as the daemon starts it."""
    job = store.begin_start(int(handle), "node1", 1000)
    if job is None:
        raise AssertionError(handle)
    store.started(job, Process(1, 1), 1000.0)
    os.makedirs(f"{store.lease_directory(job.run)}/work")
    return job


def state_of(backend: LocalBatchBackend, native: str) -> JobState:
    return backend.poll([native])[native]


def test_what_can_never_run_is_said(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """Too many cores, more memory than the machine, a resource that nobody counts, no such account, no nodes."""
    assert backend.fits(JOB.resources) == ""
    assert backend.fits(Resources(16)) == "the largest node has 8 cores"
    assert "this machine has" in backend.fits(Resources(1, 10**9))
    assert backend.fits(Resources(others=(("gpus", 1),))) == "gpus: the local batch system counts cores alone"
    assert "no account bob" in LocalBatchBackend(store.directory, "bob", "bob").fits(JOB.resources)
    store.set_nodes([])
    assert "it has no nodes yet" in backend.fits(JOB.resources)


def test_what_will_be_measured_too_low_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """2, 4 and 8 cores at the same time need fourteen real ones."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(14)))
    assert doubt((2, 4, 8)) == "" == doubt(())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
    assert "runs of 2 + 4 + 8 cores share the 2 of this machine" in doubt((2, 4, 8))
    assert doubt((2,)) == ""


def test_a_job_is_found_again_by_its_tag(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """Whoever was killed right after a start finds it; nobody finds what was never started."""
    assert backend.find([JOB.tag]) == {}
    native = backend.start(JOB)
    assert LocalBatchBackend(store.directory, "alice", "alice", "v-").find([JOB.tag, "v-2"]) == {JOB.tag: native}


def test_another_launchs_job_has_vanished(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """In a state made anew the same number is another job: neither taken for ours nor killed (HOSTILE 48)."""
    native = backend.start(JOB)
    strangers = [LocalBatchBackend(store.directory, "alice", "alice", "w-")]
    for wrong in ("999", "", "x", "-1", "1" * 30):
        assert state_of(backend, wrong).state == VANISHED
        backend.kill([wrong])
    [untagged] = store.submit(JobRequest("alice", "alice", 1, ("true",), 60), 1000.0)
    for stranger, number in ((strangers[0], native), (backend, str(untagged))):
        assert state_of(stranger, number).state == VANISHED
        stranger.kill([number])
    assert state_of(backend, native).state == WAITING and not any(job.removed for job in store.jobs(ended=True))


def test_a_job_that_waits_without_a_daemon_says_so(backend: LocalBatchBackend) -> None:
    """The user learns what to start, and is not left waiting."""
    assert "no daemon serves" in state_of(backend, backend.start(JOB)).why


def test_from_waiting_to_its_end(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """The exit code, its wall time and its CPU time; the wait for it ends when the daemon writes that down."""
    native = backend.start(JOB)
    job = begun(store, native)
    assert state_of(backend, native).state == RUNNING
    store.ended(job, 1060.0, 3, None, "", 2.5)
    backend.wait(1e6)
    assert state_of(backend, native) == JobState(DONE, 3, 60.0, 2.5)


@pytest.mark.parametrize(("code", "number", "expected"), [(None, 9, 137), (0, None, 0)])
def test_a_signal_is_told_as_a_shell_does(
    store: DaemonStore, backend: LocalBatchBackend, code: int | None, number: int | None, expected: int
) -> None:
    native = backend.start(JOB)
    store.ended(begun(store, native), 2000.0, code, number, "")
    assert state_of(backend, native).code == expected


def test_a_supervisor_that_vanished_is_a_lost_job(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """Neither a code nor a signal, and nobody ended it: nothing is known of it."""
    native = backend.start(JOB)
    store.ended(begun(store, native), 2000.0, None, None, "its lease supervisor vanished")
    assert state_of(backend, native) == JobState(VANISHED, why="its lease supervisor vanished")


def test_a_job_that_was_ended_says_why(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """Its wall limit, or somebody who removed it before it started. None of them ended well, whatever its code."""
    native = backend.start(JOB)
    backend.kill([native])
    assert state_of(backend, native) == JobState(DONE, REMOVED, why="removed before it started")
    for code, expected in ((143, 143), (0, REMOVED)):
        native = backend.start(replace(JOB, tag=f"v-{code}"))
        job = begun(store, native)
        store.signalled(job, 1600.0, False, "its wall limit is over")
        store.ended(job, 1601.0, code, None, "its wall limit is over")
        assert state_of(backend, native) == JobState(DONE, expected, 601.0, None, "its wall limit is over")


def test_what_the_batch_system_refuses(store: DaemonStore, backend: LocalBatchBackend, tmp_path: Path) -> None:
    """A job that cannot be is refused for good; a state that cannot be opened may be there later."""
    with pytest.raises(ActionRefused, match="largest node has 8"):
        backend.start(replace(JOB, resources=Resources(9)))
    with pytest.raises(PoolUnreachable):
        LocalBatchBackend(str(tmp_path / "none"), "alice", "alice")


def test_the_sooner_the_higher_the_priority(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """As far as the local batch system counts; without a wall limit a job has the longest."""
    for priority in (0.0, time.time() + 100, 1e12):
        backend.start(replace(JOB, priority=priority))
    priorities = [job.request.priority for job in store.jobs()]
    assert priorities == sorted(set(priorities), reverse=True) and max(map(abs, priorities)) <= 10**6
    assert {job.request.wall_limit for job in store.jobs()} == {LONGEST_WALL_LIMIT}


def test_a_state_made_anew_is_seen(store: DaemonStore, backend: LocalBatchBackend) -> None:
    """What was removed from the directory is not written to any more."""
    native = backend.start(JOB)
    for name in os.listdir(store.directory):
        if name.startswith("state.db"):
            os.unlink(os.path.join(store.directory, name))
    with DaemonStore(store.directory, create=True):
        assert state_of(backend, native).state == VANISHED


@pytest.mark.parametrize(("key", "value"), [("account", ""), ("nodes", "1x8"), ("directory", 3)])
def test_a_wrong_value_is_named(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"f: \[backends\.local-batch\] {key} = "):
        open_backend({"directory": "/d", key: value}, "", LaunchPlace("f", "k", str(tmp_path)))
    with pytest.raises(UsageError, match="local-batch has none"):
        open_backend({}, "-p 5", LaunchPlace("f", "k", str(tmp_path)))

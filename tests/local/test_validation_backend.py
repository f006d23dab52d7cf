"""The local batch system as a validation's backend, without a daemon: what it can never run, and who is who."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.errors import PoolError, UsageError
from drainwise.estimate.validation_backend import ENDED, REPORT, RUNNING, VANISHED, WAITING, Run
from drainwise.local.job import Account, Job, Node
from drainwise.local.ledger import Ledger
from drainwise.local.processes import Process
from drainwise.local.validation_backend import LocalValidationBackend

RUN = Run("r-1c-1", 1, 100, 10, 600, ("true",), {"SEED": "7"})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A state with one node of 8 cores and alice's account."""
    with Ledger(str(tmp_path / "state"), create=True) as made:
        made.set_nodes([Node("node1", 8)])
        made.set_account(Account("alice", 8))
        yield made


@pytest.fixture
def backend(ledger: Ledger) -> LocalValidationBackend:
    return LocalValidationBackend(ledger.directory, "alice", "alice")


def begun(ledger: Ledger, handle: str) -> Job:
    """The job's lease, as the daemon starts it."""
    job = ledger.begin_start(int(handle), "node1", 1000)
    if job is None:
        raise AssertionError(handle)
    ledger.started(job, Process(1, 1), 1000.0)
    os.makedirs(f"{ledger.lease_directory(job.run)}/work")
    return job


def test_what_can_never_run_is_said(ledger: Ledger, backend: LocalValidationBackend) -> None:
    """Too many cores, more memory than the machine, no such account, no nodes."""
    assert backend.refusal(RUN) == ""
    assert backend.refusal(replace(RUN, cores=16)) == "the largest node has 8 cores"
    assert "this machine has" in backend.refusal(replace(RUN, memory=10**9))
    assert "no account bob" in LocalValidationBackend(ledger.directory, "bob", "bob").refusal(RUN)
    ledger.set_nodes([])
    assert "it has no nodes yet" in backend.refusal(RUN)


def test_what_will_be_measured_too_low_is_said(
    backend: LocalValidationBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2, 4 and 8 cores at the same time need fourteen real ones."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(14)))
    assert backend.doubt((2, 4, 8)) == "" == backend.doubt(())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2)))
    assert "runs of 2 + 4 + 8 cores share the 2 of this machine" in backend.doubt((2, 4, 8))
    assert backend.doubt((2,)) == ""


def test_a_run_is_found_again_by_its_name(backend: LocalValidationBackend) -> None:
    """Whoever was killed right after a start finds it; nobody finds what was never started."""
    assert backend.find(RUN.name) is None
    handle = backend.start(RUN)
    assert backend.find(RUN.name) == handle and backend.find("r-1c-2") is None


def test_a_handle_of_another_run_has_vanished(backend: LocalValidationBackend) -> None:
    """In a state made anew the same number is another job: neither taken for the run nor killed (HOSTILE 48)."""
    handle = backend.start(RUN)
    assert backend.poll(handle, "another").state == VANISHED
    for wrong in ("999", "", "x", "-1", "1" * 30):
        assert backend.poll(wrong, RUN.name).state == VANISHED
        backend.kill(wrong, RUN.name)
    backend.kill(handle, "another")
    assert backend.poll(handle, RUN.name).state == WAITING


def test_a_run_that_waits_without_a_daemon_says_so(backend: LocalValidationBackend) -> None:
    """The user learns what to start, and is not left waiting."""
    assert "no daemon serves" in backend.poll(backend.start(RUN), RUN.name).note


def test_from_running_to_its_report(ledger: Ledger, backend: LocalValidationBackend) -> None:
    """The exit code, the runner's report and the last line of stderr, made fit for a terminal (HOSTILE 41)."""
    handle = backend.start(RUN)
    job = begun(ledger, handle)
    assert backend.poll(handle, RUN.name).state == RUNNING
    work = Path(ledger.lease_directory(job.run)) / "work"
    (work / REPORT).write_text("{}")
    (work / "err").write_text("first\n" * 10**6 + "it \x1b[31mbroke\n\n")
    ledger.ended(job, 2000.0, 3, None, "")
    state = backend.poll(handle, RUN.name)
    assert (state.state, state.code, state.report, state.said) == (ENDED, 3, b"{}", "it [31mbroke")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_in_the_place_of_stderr(
    ledger: Ledger, backend: LocalValidationBackend, make: Callable[[str], None]
) -> None:
    """A directory or a FIFO there says nothing, and nobody waits for it (HOSTILE 5, 8)."""
    handle = backend.start(RUN)
    job = begun(ledger, handle)
    make(f"{ledger.lease_directory(job.run)}/work/err")
    ledger.ended(job, 2000.0, 1, None, "")
    assert backend.poll(handle, RUN.name).said == ""


def test_a_link_in_the_reports_place_is_not_followed(ledger: Ledger, backend: LocalValidationBackend) -> None:
    """A job cannot make somebody else's file its report (HOSTILE 1)."""
    handle = backend.start(RUN)
    job = begun(ledger, handle)
    os.symlink("/etc/passwd", f"{ledger.lease_directory(job.run)}/work/{REPORT}")
    os.symlink("/etc/passwd", f"{ledger.lease_directory(job.run)}/work/err")
    ledger.ended(job, 2000.0, 0, None, "")
    state = backend.poll(handle, RUN.name)
    assert (state.code, state.report, state.said) == (0, None, "")


def test_a_keeper_that_vanished_is_a_lost_run(ledger: Ledger, backend: LocalValidationBackend) -> None:
    """Neither a code nor a signal, and nobody ended it: nothing is known of it."""
    handle = backend.start(RUN)
    ledger.ended(begun(ledger, handle), 2000.0, None, None, "its keeper vanished")
    state = backend.poll(handle, RUN.name)
    assert (state.state, state.note) == (VANISHED, "its keeper vanished")


def test_a_run_that_was_ended_says_why(ledger: Ledger, backend: LocalValidationBackend) -> None:
    """Its wall limit, or somebody who removed it, before it started or while it ran."""
    handle = backend.start(RUN)
    backend.kill(handle, RUN.name)
    state = backend.poll(handle, RUN.name)
    assert (state.state, state.code) == (ENDED, None) and "removed before it started" in state.note
    other = replace(RUN, name="r-1c-2")
    handle = backend.start(other)
    job = begun(ledger, handle)
    ledger.told_to_end(job, 1600.0, False, "its wall limit is over")
    ledger.ended(job, 1601.0, 143, None, "its wall limit is over")
    assert backend.poll(handle, other.name).note == "ended with 143: its wall limit is over"


def test_what_the_batch_system_refuses(ledger: Ledger, backend: LocalValidationBackend, tmp_path: Path) -> None:
    """A job that cannot be is a UsageError; a state that cannot be opened a PoolError."""
    with pytest.raises(UsageError, match="largest node has 8"):
        backend.start(replace(RUN, cores=9))
    with pytest.raises(PoolError):
        LocalValidationBackend(str(tmp_path / "none"), "alice", "alice").find(RUN.name)

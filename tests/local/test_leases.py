"""A lease is found again by a daemon that knows nothing of it, and the settings that a daemon is given reach it."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolError, UsageError
from drainwise.features import host
from drainwise.features.facts import HostFacts
from drainwise.local import control, leases
from drainwise.local.job import ENDED, RUNNING, WAITING, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.lease.files import LeaseOutcome, kill
from drainwise.local.lease.start import LeaseRequest, start_lease
from drainwise.local.leases import DaemonSettings, Leases
from drainwise.local.store import DaemonStore
from drainwise.local.wake import Sleeper
from drainwise.node.settings import NodeSettings, SettingsFile
from drainwise.processes.process import Process, birth_of
from real_daemons.waiting import wait_for


@dataclasses.dataclass
class Begun:
    """A state in which job 1 is to start and a daemon has ended since, and the leases of the next one."""

    store: DaemonStore
    job: LocalJob
    leases: Leases
    sleeper: Sleeper
    file: SettingsFile
    said: list[str]

    @property
    def directory(self) -> str:
        """Of the job's lease."""
        return self.store.lease_directory(self.job.run)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    tmp_path.chmod(0o700)
    said: list[str] = []
    with DaemonStore(str(tmp_path), create=True) as store, closing(Sleeper(str(tmp_path))) as sleeper:
        store.set_account(AccountQuota("alice", 8))
        store.set_nodes([LocalNode("node1", 8)])
        store.submit(JobRequest("alice", "al", 8, ("pilot",), 3600), time.time())
        job = store.begin_start(1, "node1", int(time.time()))
        assert job is not None
        os.mkdir(os.path.dirname(store.lease_directory(job.run)), 0o700)
        file = SettingsFile(f"{tmp_path}/none", NodeSettings({}))
        yield Begun(store, job, Leases(store, sleeper, DaemonSettings(), file, said.append), sleeper, file, said)


def test_a_lease_whose_daemon_ended_right_after_its_start_is_found_again(begun: Begun) -> None:
    """Nothing was written down but that it begins; it is the job's lease from then on, and no second one is made."""
    host = HostFacts(total_cpu=8, jobslots=8, phys_cores=8, log_cores=0)
    asked = LeaseRequest("1", 8, ("/bin/sleep", "60"), 3600, {})
    supervisor = start_lease(begun.directory, asked, host, None, begun.job.started, 1.0)
    try:
        assert begun.leases.settle(begun.job, time.time())
        [found] = begun.store.live()
        assert (found.state, found.supervisor) == (RUNNING, supervisor)
        assert begun.leases.settle(found, time.time())
        assert begun.said == ["job 1 found again on node1"]
        assert list(begun.sleeper._handles) == [begun.job.run]
    finally:
        assert kill(supervisor, begun.directory)
    assert not begun.leases.settle(found, time.time())
    assert (begun.store.live(), begun.sleeper._handles) == ([], {})


def test_a_job_that_is_due_gets_sigterm(begun: Begun, tmp_path: Path) -> None:
    """Not before its lease ends; it is sent, written down and told."""
    host = HostFacts(total_cpu=8, jobslots=8, phys_cores=8, log_cores=0)
    ready, told = tmp_path / "ready", tmp_path / "told"
    script = f"trap 'echo > {told}' TERM; echo > {ready}; while :; do sleep 0.01; done"
    asked = LeaseRequest("1", 8, ("/bin/sh", "-c", script), 3600, {})
    supervisor = start_lease(begun.directory, asked, host, None, begun.job.started, 1.0)
    try:
        assert begun.leases.settle(begun.job, time.time())
        wait_for(ready.exists, what="the command to run")
        [found] = begun.store.live()
        begun.leases.enforce(found, found.lease_end - 1)
        assert begun.store.live() == [found]
        begun.leases.enforce(found, found.lease_end)
        [sent] = begun.store.live()
        assert (sent.term_sent, sent.kill_sent) == (found.lease_end, None)
        assert begun.said[1:] == ["job 1 sent SIGTERM: its wall limit is over"]
        wait_for(told.exists, what="SIGTERM")
    finally:
        assert kill(supervisor, begun.directory)


def test_a_start_that_made_no_lease_is_put_back(begun: Begun) -> None:
    """The job waits again, and no lease can come to be from it any more."""
    assert not begun.leases.settle(begun.job, begun.job.started - 5.0)
    [found] = begun.store.jobs()
    assert found.not_before == begun.job.started + 1.0, "the next run has another name"
    assert (found.state, begun.said) == (WAITING, ["job 1 not started: its start was interrupted"])
    assert not os.path.exists(begun.directory)


OWN = Process(os.getpid(), birth_of(os.getpid()) or 0)
"""A supervisor that lives as long as the test."""


def leases_where(begun: Begun, mocker: MockerFixture, **said: object) -> dict[str, Any]:
    """The same state, with the functions that look at a lease or end it replaced by what they say."""
    usual = {"find_lease": None, "outcome_of": None, "kill": True, "is_alive": True, "remove_lease": None}
    return {
        name: mocker.patch.object(leases, name, autospec=True, side_effect=value)
        if isinstance(value, (Exception, list))
        else mocker.patch.object(leases, name, autospec=True, return_value=value)
        for name, value in {**usual, **said}.items()
    }


@pytest.mark.parametrize(("client", "shown"), [("paper", 99), ("alice", None)])
def test_a_job_that_starts_is_written_down_watched_and_told(
    begun: Begun, mocker: MockerFixture, client: str, shown: int | None
) -> None:
    """Its client is told of a planned shutdown where it reads such files."""
    begun.file.settings = NodeSettings({"client_default": client})
    start = leases_where(begun, mocker, start_lease=OWN)["start_lease"]
    assert begun.leases.start(begun.job, 8, 24, 99, 5.0)
    host = leases.made_up_host(8, begun.file.settings)
    asked = LeaseRequest("1", 8, ("pilot",), 3600, {}, 24, begun.file.settings)
    start.assert_called_once_with(begun.directory, asked, host, shown, begun.job.started, 10.0)
    [job] = begun.store.live()
    assert (job.state, job.supervisor, list(begun.sleeper._handles)) == (RUNNING, OWN, [job.run])
    assert begun.said == ["job 1 of alice started on node1, 8 cores"]


@pytest.mark.parametrize("fault", [UsageError("why"), PoolError("why"), OSError("why")])
def test_a_job_that_cannot_start_ends_or_is_tried_again(begun: Begun, mocker: MockerFixture, fault: Exception) -> None:
    """What is wrong with the job itself will be so the next time."""
    removed = leases_where(begun, mocker, start_lease=fault)["remove_lease"]
    assert not begun.leases.start(begun.job, 8, 8, None, begun.job.started + 5.0)
    [job] = begun.store.jobs(ended=True)
    if isinstance(fault, UsageError):
        assert (job.state, job.note, job.ended) == (ENDED, "cannot be run: why", begun.job.started + 5.0)
    else:
        assert (job.state, job.note, job.not_before) == (WAITING, "why", begun.job.started + 15.0)
        assert begun.said == ["job 1 not started: why"]
        removed.assert_called_once_with(begun.directory)


@pytest.mark.parametrize(
    ("outcome", "said", "note"),
    [
        (LeaseOutcome(0, None, 7.0, 3.0), "job 1 ended with 0", ""),
        (LeaseOutcome(None, 9, 7.0, 3.0), "job 1 ended by signal 9", ""),
        (None, "job 1 ended: its lease supervisor vanished", "its lease supervisor vanished"),
    ],
)
def test_a_lease_that_is_over_gives_its_cores_back_once_nothing_is_left(
    begun: Begun, mocker: MockerFixture, outcome: LeaseOutcome | None, said: str, note: str
) -> None:
    """How it ended is written down; of one whose supervisor is gone what is left is ended first."""
    begun.store.started(begun.job, OWN, 1.0)
    [job] = begun.store.live()
    does = leases_where(begun, mocker, find_lease=OWN, is_alive=False, kill=False, outcome_of=outcome)
    holds = begun.leases.settle(job, 7.0)
    does["outcome_of"].assert_called_with(begun.directory, OWN)
    if outcome is None:
        assert holds and begun.store.live() == [job]
        does["kill"].assert_called_once_with(OWN, begun.directory)
        does["kill"].return_value = True
        holds = begun.leases.settle(job, 7.0)
    assert not holds
    [ended] = begun.store.jobs(ended=True)
    found = (ended.code, ended.signal, ended.cpu_seconds) if outcome else (None, None, None)
    assert found == ((outcome.code, outcome.signal, 3.0) if outcome else (None, None, None))
    assert (ended.state, ended.ended, ended.note, begun.said) == (ENDED, 7.0, note, [said])


def test_a_supervisor_whose_record_the_job_removed_is_known_by_the_state(begun: Begun, mocker: MockerFixture) -> None:
    begun.store.started(begun.job, OWN, 1.0)
    [job] = begun.store.live()
    does = leases_where(begun, mocker, is_supervisor=True)
    assert begun.leases.settle(job, 7.0) and begun.leases.settle(job, 8.0)
    does["is_supervisor"].assert_called_once_with(OWN, begun.directory)
    assert begun.said == ["job 1 found again on node1"], "and is known from then on"


def test_a_start_that_made_a_lease_after_all_is_left_to_the_next_round(begun: Begun, mocker: MockerFixture) -> None:
    """Nobody ends it; one whose place is taken by nothing that lives is cleared up."""
    does = leases_where(begun, mocker, abandon=False, find_lease=[None, OWN])
    assert begun.leases.settle(begun.job, 7.0)
    does["find_lease"].side_effect = lambda _directory: None
    does["outcome_of"].side_effect = [None, LeaseOutcome(0, None, 7.0)]
    assert begun.leases.settle(begun.job, 7.0)
    does["kill"].assert_not_called()
    does["outcome_of"].side_effect = None
    assert not begun.leases.settle(begun.job, 7.0)
    does["kill"].assert_called_once_with(None, begun.directory)


def test_who_does_not_end_is_killed_with_patience_for_one_at_a_time(begun: Begun, mocker: MockerFixture) -> None:
    """The first time nothing is waited for, then a second for one job, and for none again within five."""
    does = leases_where(begun, mocker, start_lease=OWN, terminate=True)
    assert begun.leases.start(begun.job, 8, 8, None, 5.0)
    [job] = begun.store.live()
    at = float(job.lease_end)
    waited = []
    for later in (0, 9, 10, 11, 13, 16):
        begun.leases.enforce(job, at + later)
        waited.append([call.args[2] for call in does["kill"].call_args_list])
        [job] = begun.store.live()
    assert waited[-1] == [0.0, 1.0, 0.0, 1.0] and waited[1] == []
    does["terminate"].assert_called_once_with(OWN, begun.directory)
    assert (job.term_sent, job.kill_sent, job.note) == (at, at + 16, "its wall limit is over")
    assert begun.said[1:] == [f"job 1 {what}: its wall limit is over" for what in ("sent SIGTERM", "killed")]
    does["is_alive"].return_value = False
    does["outcome_of"].return_value = LeaseOutcome(None, 9, at + 17)
    assert not begun.leases.settle(job, at + 17)
    assert begun.said[-1] == "job 1 ended by signal 9: its wall limit is over"
    assert begun.sleeper._handles == {}
    begun.leases.enforce(job, at + 30)
    assert len(does["kill"].call_args_list) == 4, "nobody is there any more"


@pytest.mark.parametrize(
    ("real", "cores", "made_up"),
    [((4, 8), 8, (4, 8)), ((4, 8), 4, (4, 0)), ((4, 8), 2, (2, 0)), ((4, 0), 4, (4, 0)), ((4, 0), 8, (8, 0))],
)
def test_a_node_of_as_many_cores_as_this_machine_is_this_machine(
    mocker: MockerFixture, real: tuple[int, int], cores: int, made_up: tuple[int, int]
) -> None:
    """Another has physical cores alone."""
    mocker.patch.object(host, "cores", autospec=True, return_value=real)
    made = leases.made_up_host(cores, NodeSettings({}))
    assert (made.phys_cores, made.log_cores or 0) == made_up


def test_a_daemon_in_the_background_has_the_settings_and_nodes_that_it_was_given(
    tmp_path: Path, mocker: MockerFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The fresh interpreter's program; whoever started it is told when it cannot serve."""
    settings, nodes = DaemonSettings(kill_wait=3.5, repair=7.0), [LocalNode("n1", 8)]
    spec = [str(tmp_path), dataclasses.asdict(settings), [dataclasses.astuple(node) for node in nodes]]
    mocker.patch.object(sys, "argv", ["serve", json.dumps(spec)])
    mocker.patch.object(os, "fork", autospec=True, return_value=0)
    mocker.patch.object(os, "_exit", autospec=True, side_effect=SystemExit)
    served = mocker.patch.object(control, "_serve", autospec=True, side_effect=PoolError("there\nis one"))
    with pytest.raises(SystemExit):
        control.serve()
    served.assert_called_once_with(str(tmp_path), settings, nodes)
    assert capfd.readouterr().out == f"refused {PoolError.exit_code} there is one\n"

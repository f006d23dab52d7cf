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

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolError
from drainwise.features.facts import HostFacts
from drainwise.local import control
from drainwise.local.job import RUNNING, WAITING, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.lease.files import kill
from drainwise.local.lease.start import LeaseRequest, start_lease
from drainwise.local.leases import DaemonSettings, Leases
from drainwise.local.store import DaemonStore
from drainwise.local.wake import Sleeper
from drainwise.node.settings import NodeSettings
from drainwise.node.settings_file import SettingsFile
from real_daemons.waiting import wait_for


@dataclasses.dataclass
class Begun:
    """A state in which job 1 is to start and a daemon has ended since, and the leases of the next one."""

    store: DaemonStore
    job: LocalJob
    leases: Leases
    sleeper: Sleeper
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
        yield Begun(store, job, Leases(store, sleeper, DaemonSettings(), file, said.append), sleeper, said)


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
    assert not begun.leases.settle(begun.job, time.time())
    [found] = begun.store.jobs()
    assert (found.state, begun.said) == (WAITING, ["job 1 not started: its start was interrupted"])
    assert not os.path.exists(begun.directory)


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

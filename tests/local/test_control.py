"""Starting and stopping the daemon, as whoever asks for it is told; real ones are in tests/daemons."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import DrainwiseError, PoolError, UsageError
from drainwise.local import control
from drainwise.local.control import start_daemon, stop_daemon
from drainwise.local.daemon_lock import FoundDaemon
from drainwise.local.job import AccountQuota, JobRequest, LocalNode
from drainwise.local.leases import DaemonSettings
from drainwise.local.store import DaemonStore
from drainwise.processes.children import isolated_program
from drainwise.processes.process import Process

DAEMON = FoundDaemon(Process(4711, 1), 0.0)


def test_a_daemon_is_a_program_of_its_own_and_says_its_pid(tmp_path: Path, mocker: MockerFixture) -> None:
    """Nothing of whoever starts it is its own: no terminal, no directory, no session."""
    said = subprocess.CompletedProcess([], 0, b"chatter\nready 123\n")
    ran = mocker.patch.object(subprocess, "run", autospec=True, return_value=said)
    settings, nodes = DaemonSettings(repair=7.0), [LocalNode("n1", 8)]
    assert start_daemon(str(tmp_path), settings, nodes) == 123
    spec = json.dumps([str(tmp_path), dataclasses.asdict(settings), [dataclasses.astuple(node) for node in nodes]])
    ran.assert_called_once_with(
        isolated_program("drainwise.local.control:serve", spec),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        start_new_session=True,
        check=False,
        timeout=60.0,
    )


@pytest.mark.parametrize(
    ("said", "fault", "words"),
    [
        (b"refused 2 there is one", UsageError, "^there is one$"),
        (b"refused 1 there is one", PoolError, "^there is one$"),
        (b"", PoolError, "the daemon died while it started: it printed nothing"),
        (b"Traceback\nKeyError: \xff", PoolError, "the daemon died while it started: KeyError"),
        (OSError("no memory"), PoolError, "the daemon cannot be started: no memory"),
        (subprocess.TimeoutExpired("python", 60), PoolError, "the daemon cannot be started: .*timed out"),
    ],
)
def test_a_daemon_that_does_not_come_says_why(
    tmp_path: Path, mocker: MockerFixture, said: bytes | Exception, fault: type[DrainwiseError], words: str
) -> None:
    ran = mocker.patch.object(subprocess, "run", autospec=True)
    ran.side_effect = [subprocess.CompletedProcess([], 1, said) if isinstance(said, bytes) else said]
    with pytest.raises(DrainwiseError, match=words) as raised:
        start_daemon(str(tmp_path), DaemonSettings())
    assert type(raised.value) is fault


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """A state with one job that has begun."""
    tmp_path.chmod(0o700)
    with DaemonStore(str(tmp_path), create=True) as store:
        store.set_account(AccountQuota("alice", 8))
        store.set_nodes([LocalNode("node1", 8)])
        store.submit(JobRequest("alice", "al", 8, ("pilot",), 3600), time.time())
        store.begin_start(1, "node1", int(time.time()))
    return str(tmp_path)


def test_a_daemon_is_asked_to_stop_and_waited_for(directory: str, mocker: MockerFixture) -> None:
    """Should somebody have stopped it, it is woken."""
    sent = mocker.patch.object(control, "send", autospec=True, return_value=True)
    found = mocker.patch.object(control, "find_daemon", autospec=True, side_effect=[DAEMON, DAEMON, None])
    assert stop_daemon(directory, kill=False) == "the daemon has stopped; 1 leases go on"
    assert sent.call_args_list == [mocker.call(DAEMON.process, one) for one in (signal.SIGTERM, signal.SIGCONT)]
    assert found.call_args_list == [mocker.call(directory)] * 3


@pytest.mark.parametrize(
    ("found", "is_sent", "words"),
    [
        (FoundDaemon(None, 0.0), True, "holds the daemon's lock who cannot be asked to stop"),
        (DAEMON, False, "holds the daemon's lock who cannot be asked to stop"),
        (DAEMON, True, r"the daemon \(pid 4711\) does not stop; kill -9 does it no harm"),
    ],
)
def test_a_daemon_that_does_not_stop_is_said(
    directory: str, mocker: MockerFixture, found: FoundDaemon, is_sent: bool, words: str
) -> None:
    mocker.patch.object(control, "send", autospec=True, return_value=is_sent)
    mocker.patch.object(control, "find_daemon", autospec=True, return_value=found)
    mocker.patch.object(control, "_STOP_SECONDS", -1.0)
    with pytest.raises(PoolError, match=words):
        stop_daemon(directory, kill=True)


def test_its_leases_end_where_that_is_asked_for(directory: str, mocker: MockerFixture) -> None:
    """Whatever becomes of them, nothing is held any more."""
    daemon = mocker.patch.object(control, "Daemon", autospec=True)
    assert stop_daemon(directory, kill=True) == "no daemon ran; 1 leases were ended"
    assert daemon.call_args.args[:2] == (directory, DaemonSettings(kill_wait=2.0))
    daemon.return_value.close.assert_called_once_with()
    daemon.return_value.end_leases.side_effect = PoolError("left")
    with pytest.raises(PoolError, match="left"):
        stop_daemon(directory, kill=True)
    assert daemon.return_value.close.call_count == 2
    with DaemonStore(directory) as store:
        [job] = store.live()
        store.ended(job, 1.0, 0, None, "")
    assert stop_daemon(directory, kill=True) == "no daemon ran; 0 leases were ended"
    assert stop_daemon(directory, kill=False) == "no daemon ran; no leases"


def test_a_daemon_serves_until_it_is_asked_to_stop_and_says_what_ended_it(
    directory: str, mocker: MockerFixture
) -> None:
    daemon = mocker.patch.object(control, "Daemon", autospec=True).return_value
    handlers = mocker.patch.object(signal, "signal", autospec=True)
    daemon.run.side_effect = RuntimeError("why")
    control._serve(directory, DaemonSettings(), [])
    given = dict(call.args for call in handlers.call_args_list)
    assert given.pop(signal.SIGTERM)() is daemon.stop.return_value
    assert given == dict.fromkeys((signal.SIGINT, signal.SIGHUP), signal.SIG_IGN)
    daemon.run.assert_called_once_with(control._let_go)
    daemon.close.assert_called_once_with()
    path = Path(directory, control.LOG)
    assert path.read_text().endswith(" died: RuntimeError: why\n") and path.stat().st_mode & 0o777 == 0o600


def test_who_started_it_is_let_go(mocker: MockerFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """It is told the pid, and the daemon's output leads nowhere from then on."""
    led, opened = mocker.patch.object(os, "dup2", autospec=True), len(os.listdir("/proc/self/fd"))
    control._let_go()
    assert [call.args[1] for call in led.call_args_list] == [1, 2]
    assert capfd.readouterr().out == f"ready {os.getpid()}\n"
    assert len(os.listdir("/proc/self/fd")) <= opened

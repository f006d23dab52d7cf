"""One daemon per directory; whether it lives is the kernel's word, whether it works is in its last round."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.local.daemon_lock import DaemonLock, find_daemon, require_daemon

pytestmark = pytest.mark.daemons  # it runs real processes

NOW = 1795249000.0


def test_without_a_daemon_it_is_told_how_to_start_one(tmp_path: Path) -> None:
    assert find_daemon(str(tmp_path)) is None
    with pytest.raises(PoolUnreachable, match="drainwise local start"):
        require_daemon(str(tmp_path), NOW)


def test_a_second_daemon_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    first = DaemonLock(str(tmp_path))
    with pytest.raises(PoolError, match=rf"serves it already \(pid {os.getpid()}\)"):
        DaemonLock(str(tmp_path))
    first.release()
    DaemonLock(str(tmp_path)).release()


def test_a_daemon_counts_from_its_first_round_until_it_is_stuck(tmp_path: Path) -> None:
    lock = DaemonLock(str(tmp_path))
    with pytest.raises(PoolUnreachable, match="not done a round yet"):
        require_daemon(str(tmp_path), NOW)
    lock.stamp(NOW)
    require_daemon(str(tmp_path), NOW + 9)
    for other in (NOW + 11, NOW - 11):
        with pytest.raises(PoolUnreachable, match="does not answer"):
            require_daemon(str(tmp_path), other)
    lock.release()
    with pytest.raises(PoolUnreachable, match="no daemon"):
        require_daemon(str(tmp_path), NOW)


def test_who_looks_does_not_keep_a_daemon_from_starting(tmp_path: Path) -> None:
    DaemonLock(str(tmp_path)).release()
    program = (
        "import sys, drainwise.local.daemon_lock as p\nprint(flush=True)\n"
        "while True: assert p.find_daemon(sys.argv[1]) is None or True"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    looker = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], env=environment, stdout=subprocess.PIPE)
    try:
        assert looker.stdout is not None and looker.stdout.readline()
        for _ in range(50):
            DaemonLock(str(tmp_path)).release()
    finally:
        looker.kill()
        looker.communicate()


def test_a_daemon_that_was_killed_is_gone_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, signal; from drainwise.local.daemon_lock import DaemonLock\n"
        "lock = DaemonLock(sys.argv[1]); lock.stamp(float(sys.argv[2])); print(flush=True); signal.pause()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, str(tmp_path), str(time.time())]
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert daemon.stdout is not None and daemon.stdout.readline()
    found = find_daemon(str(tmp_path))
    assert found is not None and found.process is not None and found.process.pid == daemon.pid
    require_daemon(str(tmp_path), time.time())
    daemon.send_signal(signal.SIGKILL)
    daemon.communicate()
    assert find_daemon(str(tmp_path)) is None
    DaemonLock(str(tmp_path)).release()

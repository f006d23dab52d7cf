"""The `Pool` protocol on the state: no answer without a live daemon, an order for one run alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable
from drainwise.local import pool as pool_module
from drainwise.local.daemon_lock import DaemonLock
from drainwise.local.job import AccountQuota, JobRequest, LocalNode
from drainwise.local.pool import LocalPool
from drainwise.local.store import DaemonStore, LocalStore
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Ending
from drainwise.processes.process import Process

NOW = int(time.time())


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DaemonLock]:
    """A state with one running pilot, and the lock that a daemon would hold."""
    tmp_path.chmod(0o700)
    with DaemonStore(str(tmp_path), create=True) as store:
        store.set_account(AccountQuota("alice", 4))
        store.set_nodes([LocalNode("node1", 8)])
        store.submit(JobRequest("alice", "al", 8, ("pilot",), 3600), NOW)
        job = store.begin_start(1, "node1", NOW)
        assert job is not None
        store.started(job, Process(1, 1), NOW)
    held = DaemonLock(str(tmp_path))
    yield held
    held.release()


def test_a_snapshot_is_what_the_state_says_while_the_daemon_works(lock: DaemonLock, tmp_path: Path) -> None:
    lock.stamp(time.time())
    snapshot = LocalPool(str(tmp_path)).snapshot(NOW)
    [pilot] = snapshot.pilots
    assert (pilot.name, pilot.user, pilot.account, pilot.cores) == ("1", "al", "alice", 8)


def test_a_stuck_daemon_is_no_answer_and_takes_no_order(lock: DaemonLock, tmp_path: Path) -> None:
    lock.stamp(time.time())
    pool = LocalPool(str(tmp_path))
    [pilot] = pool.snapshot(NOW).pilots
    lock.stamp(time.time() - 11)
    with pytest.raises(PoolUnreachable, match="does not answer"):
        pool.snapshot(NOW)
    with pytest.raises(PoolUnreachable, match="does not answer"):
        pool.give_order(pilot, NOW + 3600, "reclaim")
    lock.stamp(time.time())
    assert [one.deadline for one in pool.snapshot(NOW).pilots] == [None]
    pool.give_order(pilot, NOW + 3600, "reclaim")
    assert [one.deadline for one in pool.snapshot(NOW).pilots] == [NOW + 3600]


def test_the_end_of_a_run_is_remembered_and_none_that_lies_ahead(lock: DaemonLock, tmp_path: Path) -> None:
    lock.stamp(time.time())
    pool = LocalPool(str(tmp_path))
    with DaemonStore(str(tmp_path)) as store:
        [job] = store.live()
        assert pool.endings([job.run], NOW) == {}
        store.ended(job, NOW + 60.5, 0, None, "", 12.5)
    assert pool.endings([job.run, "another"], NOW + 59) == {}
    assert pool.endings([job.run, "another"], NOW + 60) == {job.run: Ending(job.run, NOW + 60, False, 12.5)}


def test_where_nothing_is_there_is_no_answer(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(PoolUnreachable):
            LocalPool(str(path)).snapshot(NOW)
    assert list(tmp_path.iterdir()) == []


def test_orders_come_and_go_and_the_daemon_is_woken_for_each(
    lock: DaemonLock, tmp_path: Path, mocker: MockerFixture
) -> None:
    """Also what a pilot is asked to return, which is shown where that is acted on."""
    woken = mocker.patch.object(pool_module, "wake_daemon", autospec=True)
    lock.stamp(time.time())
    pool = LocalPool(str(tmp_path), is_for_parts=True)
    [pilot] = pool.snapshot(NOW).pilots
    pool.give_order(pilot, NOW + 3600, "reclaim")
    pool.withdraw_order(pilot, "not wanted")
    assert [one.deadline for one in pool.snapshot(NOW).pilots] == [None]
    pool.ask_for_part(pilot, PartialReturn(3, NOW + 3600, 2), "reclaim")
    assert [one.asked for one in pool.snapshot(NOW).pilots] == [3]
    assert [one.asked for one in LocalPool(str(tmp_path)).snapshot(NOW).pilots] == [0]
    assert woken.call_args_list == [mocker.call(str(tmp_path))] * 3
    closed = mocker.spy(LocalStore, "close")
    lock.stamp(time.time() - 11)
    with pytest.raises(PoolUnreachable):
        pool.withdraw_order(pilot, "reclaim")
    assert (len(woken.call_args_list), closed.call_count) == (3, 1)

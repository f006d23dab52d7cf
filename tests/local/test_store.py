"""Every change is a whole transaction; an order reaches one run and no other; what cannot be kept is refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolUnreachable, RunEnded, UsageError
from drainwise.local.database import STATE
from drainwise.local.job import ENDED, RUNNING, STARTING, WAITING, AccountQuota, JobRequest, LocalNode
from drainwise.local.store import DaemonStore, LocalStore
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import PilotReport
from drainwise.processes.process import Process

NOW = 1795249000
NOBODY = 65534
REQUEST = JobRequest("alice", "alice", 8, ("sleep", "60"), 3600, environment={"A": "ä b"})


@pytest.fixture
def store(volatile: Path) -> DaemonStore:
    volatile.chmod(0o700)
    store = DaemonStore(str(volatile), create=True)
    store.set_account(AccountQuota("alice", 16))
    store.set_nodes([LocalNode("node1", 16)])
    return store


def running(store: DaemonStore, request: JobRequest = REQUEST, now: int = NOW) -> str:
    """Submit and start one job; its run."""
    [job_id] = store.submit(request, now)
    job = store.begin_start(job_id, "node1", now)
    assert job is not None
    store.started(job, Process(4242, 99), now)
    return job.run


def test_what_was_submitted_is_there_for_the_next_who_opens_the_state(store: DaemonStore) -> None:
    ids = store.submit(REQUEST, NOW, 3)
    store.close()
    with LocalStore(store.directory) as again:
        jobs = again.jobs()
        assert [job.job_id for job in jobs] == ids == [1, 2, 3]
        assert jobs[0].request == REQUEST and jobs[0].state == WAITING
        assert again.accounts() == (AccountQuota("alice", 16),) and again.nodes() == (LocalNode("node1", 16),)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (JobRequest("bob", "bob", 1, ("true",), 60), "no account is called bob; there are alice"),
        (JobRequest("alice", "a", 17, ("true",), 60), "the largest node has 16"),
        (JobRequest("alice", "a", 1, (), 60), "command"),
    ],
)
def test_a_job_that_could_never_run_is_refused_and_leaves_nothing(
    store: DaemonStore, request_: JobRequest, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        store.submit(request_, NOW, 5)
    assert store.jobs() == []


def test_the_start_of_a_job_is_written_down_once(store: DaemonStore) -> None:
    [job_id] = store.submit(REQUEST, NOW)
    job = store.begin_start(job_id, "node1", NOW)
    assert job is not None and (job.state, job.run) == (STARTING, f"{job_id}@{NOW}")
    assert store.begin_start(job_id, "node1", NOW + 5) is None
    store.started(job, Process(4242, 99), NOW)
    [live] = store.live()
    assert (live.state, live.supervisor) == (RUNNING, Process(4242, 99))


def test_a_start_that_came_to_nothing_waits_again_with_its_reason(store: DaemonStore) -> None:
    [job_id] = store.submit(REQUEST, NOW)
    job = store.begin_start(job_id, "node1", NOW)
    assert job is not None
    store.not_started(job, NOW, NOW + 10, "No space left on device")
    [again] = store.jobs()
    assert (again.state, again.run, again.note) == (WAITING, "", "No space left on device")
    assert store.state(NOW + 9).waiting == () and len(store.state(NOW + 10).waiting) == 1
    assert store.earliest_retry(NOW) == NOW + 10


def test_a_job_removed_while_its_start_came_to_nothing_is_not_tried_again(store: DaemonStore) -> None:
    [job_id] = store.submit(REQUEST, NOW)
    job = store.begin_start(job_id, "node1", NOW)
    assert job is not None
    store.remove([job_id], NOW)
    store.not_started(job, NOW, NOW, "no")
    found = store.job(job_id)
    assert found is not None and found.state == ENDED


def test_removing_ends_what_waits_at_once_and_marks_what_runs(store: DaemonStore) -> None:
    run = running(store)
    [waiting] = store.submit(REQUEST, NOW)
    assert store.remove([1, waiting], NOW) == [1, waiting]
    assert [job.run for job in store.live() if job.removed] == [run]
    found = store.job(waiting)
    assert found is not None and found.state == ENDED
    assert store.remove([1, waiting], NOW) == []


def test_removing_an_unknown_job_removes_none(store: DaemonStore) -> None:
    ids = store.submit(REQUEST, NOW, 2)
    with pytest.raises(UsageError, match="job 99"):
        store.remove([*ids, 99], NOW)
    assert all(job.state == WAITING for job in store.jobs())


def test_an_order_reaches_the_run_it_names_and_no_other(store: DaemonStore) -> None:
    """Attack 50: between ranking and order the run ends, and its job or another one runs in its place."""
    run = running(store)
    other = running(store, now=NOW + 1)
    [job] = [job for job in store.live() if job.run == run]
    store.ended(job, NOW + 5, 0, None, "")
    for wrong in (run, f"{job.job_id}@{NOW + 9}", f"{other}0", other[:-1], "", "%", "1' OR 1=1 --"):
        with pytest.raises(RunEnded, match="does not run any more"):
            store.order(wrong, NOW + 60, NOW, "reclaim")
    assert [live.deadline for live in store.live()] == [None]
    store.order(other, NOW + 60, NOW, "reclaim")
    assert [live.deadline for live in store.live()] == [NOW + 60]


def test_an_order_is_withdrawn_from_the_run_it_names_while_it_is_not_too_late(store: DaemonStore) -> None:
    run = running(store)
    other = running(store, now=NOW + 1)
    for one in (run, other):
        store.order(one, NOW + 60, NOW, "bob waits")
    store.withdraw_order(run, NOW + 59, "bob has left")
    assert {live.run: live.deadline for live in store.live()} == {run: None, other: NOW + 60}
    store.withdraw_order(run, NOW + 59, "the same again")
    texts = [event.text for event in store.events(1)]
    assert texts[-2:] == [f"ordered to end by {NOW + 60}: bob waits", "order withdrawn: bob has left"]
    store.order(run, NOW + 600, NOW, "a new reason, with more time than the first gave")
    with pytest.raises(ActionRefused, match="its deadline has come"):
        store.withdraw_order(other, NOW + 60, "late")
    [job] = [job for job in store.live() if job.run == other]
    store.signalled(job, NOW + 60, False, "its deadline has come")
    with pytest.raises(ActionRefused, match="it is being ended"):
        store.withdraw_order(other, NOW + 59, "the clock was set back")
    for wrong in (f"1@{NOW + 9}", "%", "1' OR 1=1 --"):
        with pytest.raises(RunEnded, match="does not run any more"):
            store.withdraw_order(wrong, NOW, "wrong")


def test_only_runs_that_have_ended_are_told_of_as_ended(store: DaemonStore) -> None:
    first, second = running(store), running(store, now=NOW + 1)
    job = store.live()[0]
    store.ended(job, NOW + 50.5, 0, None, "", 12.25)
    [found] = store.ended_runs([first, second, f"1@{NOW + 9}", "99@1", "", "x"])
    assert (found.run, found.ended, found.cpu_seconds, found.was_ended) == (first, NOW + 50.5, 12.25, False)


def test_a_state_of_the_version_before_is_taken_over(volatile: Path) -> None:
    """Format 1 had no CPU time, format 2 no parts of leases; what it knew stays."""
    volatile.chmod(0o700)
    with DaemonStore(str(volatile), create=True) as store:
        store.set_account(AccountQuota("alice", 16))
        store.set_nodes([LocalNode("node1", 16)])
        running(store)
    with sqlite3.connect(volatile / STATE) as before:
        before.execute("ALTER TABLE jobs DROP COLUMN cpu_seconds")
        before.execute("DROP TABLE parts")
        before.execute("PRAGMA user_version = 1")
    before.close()
    with DaemonStore(str(volatile)) as store:
        [job] = store.live()
        assert job.cpu_seconds is None
        store.ended(job, NOW + 5, 0, None, "", 3.0)
    with LocalStore(str(volatile)) as store:
        assert [job.cpu_seconds for job in store.jobs(ended=True)] == [3.0]


def test_a_part_is_asked_of_one_run_as_long_as_it_runs(store: DaemonStore) -> None:
    """At least one core stays with it; 0 asks for none any more; the end of the run ends it."""
    run = running(store)
    cores = store.live()[0].cores
    with pytest.raises(ActionRefused, match=f"expected 0 to {cores - 1}"):
        store.ask_for_part(run, cores, None, 1, NOW, "all")
    with pytest.raises(RunEnded):
        store.ask_for_part("99@1", 1, None, 1, NOW, "nobody's")
    store.ask_for_part(run, 2, NOW + 60, 2, NOW, "two")
    assert store.parts() == {run: PartialReturn(2, NOW + 60, 2)} == store.state(NOW).parts
    store.ask_for_part(run, 0, None, 1, NOW, "none")
    assert store.parts() == {}
    store.ask_for_part(run, 1, None, 1, NOW, "one")
    store.ended(store.live()[0], NOW + 5, 0, None, "")
    assert store.parts() == {}


def test_a_deadline_comes_nearer_and_never_moves_away(store: DaemonStore) -> None:
    run = running(store)
    store.order(run, NOW + 60, NOW, "first")
    store.order(run, NOW + 60, NOW, "the same again")
    store.order(run, NOW + 30, NOW, "sooner")
    with pytest.raises(ActionRefused, match="cannot be moved later"):
        store.order(run, NOW + 31, NOW, "later")
    assert [job.deadline for job in store.live()] == [NOW + 30]
    assert [event.text for event in store.events(1)][-1] == f"ordered to end by {NOW + 30}: sooner"


def test_a_report_comes_back_as_it_was_and_goes_with_its_run(store: DaemonStore) -> None:
    run = running(store)
    report = PilotReport(NOW, used_cpu=7.5, last_job_start=NOW, can_postpone_last_job=False, add_uncom_time=1e9 / 3)
    store.set_reports({run: report})
    assert store.state(NOW).reports == {run: report}
    [job] = store.live()
    store.ended(job, NOW, 0, None, "")
    assert store.state(NOW).reports == {}


def test_old_jobs_are_forgotten_with_the_names_of_their_directories(store: DaemonStore) -> None:
    run = running(store)
    [job] = store.live()
    store.ended(job, NOW, 0, None, "")
    young = running(store, now=NOW + 100)
    assert store.forget(NOW + 50) == [store.lease_directory(run)]
    assert [job.run for job in store.jobs(ended=True)] == [young]
    assert store.events(job.job_id) == []


def test_a_number_is_never_given_twice(store: DaemonStore) -> None:
    running(store)
    [job] = store.live()
    store.ended(job, NOW, 0, None, "")
    store.forget(NOW + 50)
    assert store.submit(REQUEST, NOW) == [2]


def test_an_account_with_jobs_stays(store: DaemonStore) -> None:
    running(store)
    with pytest.raises(UsageError, match="1 of its jobs wait or run"):
        store.drop_account("alice")
    [job] = store.live()
    store.ended(job, NOW, 0, None, "")
    store.drop_account("alice")
    with pytest.raises(UsageError, match="none of that name"):
        store.drop_account("alice")


def test_clients_at_once_lose_nothing(store: DaemonStore) -> None:
    """Four processes submit ten jobs each, one by one, into one state."""
    program = (
        "import sys; from drainwise.local.store import LocalStore; from drainwise.local.job import JobRequest\n"
        "store = LocalStore(sys.argv[1])\n"
        "for _ in range(10): print(*store.submit(JobRequest('alice', 'a', 1, ('true',), 60), 1.0))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", program, store.directory], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [int(line) for client in clients for line in client.communicate(timeout=60)[0].split()]
    assert sorted(printed) == list(range(1, 41)) == [job.job_id for job in store.jobs()]


def test_a_client_that_is_killed_in_its_transaction_leaves_nothing_behind(store: DaemonStore) -> None:
    program = (
        "import os, sys; from drainwise.local.database import Database\n"
        "with Database(sys.argv[1]).transaction() as change:\n"
        "    change.execute(\"INSERT INTO accounts VALUES ('half', 1)\")\n"
        "    os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-c", program, store.directory], env=environment, check=False, timeout=60)
    assert ran.returncode == -9
    store.set_account(AccountQuota("whole", 1))
    assert [account.name for account in store.accounts()] == ["alice", "whole"]


def test_a_state_that_is_held_for_too_long_is_said_to_be(store: DaemonStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drainwise.local.database._BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(os.path.join(store.directory, STATE), isolation_level=None)
    second = LocalStore(store.directory)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(PoolUnreachable, match="held by another process"):
        second.set_account(AccountQuota("bob", 1))
    holder.close()
    second.set_account(AccountQuota("bob", 1))
    second.close()


def test_the_state_is_its_owners_alone(store: DaemonStore) -> None:
    assert stat.S_IMODE(os.stat(os.path.join(store.directory, STATE)).st_mode) == 0o600


def test_a_directory_that_is_made_is_private(volatile: Path) -> None:
    LocalStore(str(volatile / "new" / "state"), create=True).close()
    assert stat.S_IMODE((volatile / "new" / "state").stat().st_mode) == 0o700


def test_a_directory_where_others_may_write_is_refused(volatile: Path) -> None:
    """Whoever writes there could have commands run as the daemon's user."""
    volatile.chmod(0o770)
    with pytest.raises(UsageError, match="others may write"):
        LocalStore(str(volatile), create=True)


def test_where_no_state_is_the_way_to_make_one_is_told(volatile: Path) -> None:
    volatile.chmod(0o700)
    for path in (volatile, volatile / "nothing"):
        with pytest.raises(UsageError, match="drainwise local start"):
            LocalStore(str(path))
    assert list(volatile.iterdir()) == []


def test_where_the_state_cannot_be_kept_is_said_in_one_clear_error(volatile: Path) -> None:
    volatile.chmod(0o700)
    file = volatile / "file"
    file.write_text("")
    for path in (file, file / "below", Path("/proc/self/drainwise")):
        with pytest.raises(UsageError, match="the state cannot be kept there"):
            LocalStore(str(path), create=True)


def test_a_directory_that_may_not_be_written_is_a_clear_error() -> None:
    """As another user where the tests run as root, who may write everywhere."""
    base = tempfile.mkdtemp(prefix="drainwise-")
    place = os.path.join(base, "closed")
    os.mkdir(place, 0o500)
    if os.geteuid() == 0:
        os.chmod(base, 0o755)
        os.chown(place, NOBODY, NOBODY)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            LocalStore(place, create=True)
        except UsageError as fault:
            os.write(writer, str(fault).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    shutil.rmtree(base)
    assert text.startswith(place) and "the state cannot be kept there" in text and "--directory" in text


@pytest.mark.parametrize(
    "content", [b"this is no database, only some text that is long enough to be looked at" * 9, b"\0" * 4096]
)
def test_a_file_that_is_no_state_is_refused_and_left_as_it_is(volatile: Path, content: bytes) -> None:
    volatile.chmod(0o700)
    (volatile / STATE).write_bytes(content)
    with pytest.raises(UsageError, match=STATE):
        LocalStore(str(volatile), create=True)
    assert (volatile / STATE).read_bytes() == content


def test_the_state_of_another_version_is_refused(store: DaemonStore) -> None:
    store.close()
    with sqlite3.connect(os.path.join(store.directory, STATE)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match="format 7"):
        LocalStore(store.directory)

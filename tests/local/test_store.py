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

from drainwise.errors import ActionRefused, PoolUnreachable, RunEnded, UsageError
from drainwise.local.database import STATE
from drainwise.local.job import ENDED, RUNNING, STARTING, WAITING, Account, JobRequest, Node
from drainwise.local.ledger import Ledger
from drainwise.local.processes import Process
from drainwise.local.store import Store
from drainwise.pilotad.report import PilotReport

NOW = 1795249000
NOBODY = 65534
REQUEST = JobRequest("alice", "alice", 8, ("sleep", "60"), 3600, environment={"A": "ä b"})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    tmp_path.chmod(0o700)
    store = Ledger(str(tmp_path), create=True)
    store.set_account(Account("alice", 16))
    store.set_nodes([Node("node1", 16)])
    return store


def running(ledger: Ledger, request: JobRequest = REQUEST, now: int = NOW) -> str:
    """Submit and start one job; its run."""
    [job_id] = ledger.submit(request, now)
    job = ledger.begin_start(job_id, "node1", now)
    assert job is not None
    ledger.started(job, Process(4242, 99), now)
    return job.run


def test_what_was_submitted_is_there_for_the_next_who_opens_the_state(ledger: Ledger) -> None:
    ids = ledger.submit(REQUEST, NOW, 3)
    ledger.close()
    with Store(ledger.directory) as store:
        jobs = store.jobs()
        assert [job.job_id for job in jobs] == ids == [1, 2, 3]
        assert jobs[0].request == REQUEST and jobs[0].state == WAITING
        assert store.accounts() == (Account("alice", 16),) and store.nodes() == (Node("node1", 16),)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (JobRequest("bob", "bob", 1, ("true",), 60), "no account is called bob; there are alice"),
        (JobRequest("alice", "a", 17, ("true",), 60), "the largest node has 16"),
        (JobRequest("alice", "a", 1, (), 60), "command"),
    ],
)
def test_a_job_that_could_never_run_is_refused_and_leaves_nothing(
    ledger: Ledger, request_: JobRequest, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        ledger.submit(request_, NOW, 5)
    assert ledger.jobs() == []


def test_the_start_of_a_job_is_written_down_once(ledger: Ledger) -> None:
    [job_id] = ledger.submit(REQUEST, NOW)
    job = ledger.begin_start(job_id, "node1", NOW)
    assert job is not None and (job.state, job.run) == (STARTING, f"{job_id}@{NOW}")
    assert ledger.begin_start(job_id, "node1", NOW + 5) is None
    ledger.started(job, Process(4242, 99), NOW)
    [live] = ledger.live()
    assert (live.state, live.keeper) == (RUNNING, Process(4242, 99))


def test_a_start_that_came_to_nothing_waits_again_with_its_reason(ledger: Ledger) -> None:
    [job_id] = ledger.submit(REQUEST, NOW)
    job = ledger.begin_start(job_id, "node1", NOW)
    assert job is not None
    ledger.not_started(job, NOW, NOW + 10, "No space left on device")
    [again] = ledger.jobs()
    assert (again.state, again.run, again.note) == (WAITING, "", "No space left on device")
    assert ledger.state(NOW + 9).waiting == () and len(ledger.state(NOW + 10).waiting) == 1
    assert ledger.earliest_retry(NOW) == NOW + 10


def test_a_job_removed_while_its_start_came_to_nothing_is_not_tried_again(ledger: Ledger) -> None:
    [job_id] = ledger.submit(REQUEST, NOW)
    job = ledger.begin_start(job_id, "node1", NOW)
    assert job is not None
    ledger.remove([job_id], NOW)
    ledger.not_started(job, NOW, NOW, "no")
    found = ledger.job(job_id)
    assert found is not None and found.state == ENDED


def test_removing_ends_what_waits_at_once_and_marks_what_runs(ledger: Ledger) -> None:
    run = running(ledger)
    [waiting] = ledger.submit(REQUEST, NOW)
    assert ledger.remove([1, waiting], NOW) == [1, waiting]
    assert [job.run for job in ledger.live() if job.removed] == [run]
    found = ledger.job(waiting)
    assert found is not None and found.state == ENDED
    assert ledger.remove([1, waiting], NOW) == []


def test_removing_an_unknown_job_removes_none(ledger: Ledger) -> None:
    ids = ledger.submit(REQUEST, NOW, 2)
    with pytest.raises(UsageError, match="job 99"):
        ledger.remove([*ids, 99], NOW)
    assert all(job.state == WAITING for job in ledger.jobs())


def test_an_order_reaches_the_run_it_names_and_no_other(ledger: Ledger) -> None:
    """Attack 50: between ranking and order the run ends, and its job or another one runs in its place."""
    run = running(ledger)
    other = running(ledger, now=NOW + 1)
    [job] = [job for job in ledger.live() if job.run == run]
    ledger.ended(job, NOW + 5, 0, None, "")
    for wrong in (run, f"{job.job_id}@{NOW + 9}", f"{other}0", other[:-1], "", "%", "1' OR 1=1 --"):
        with pytest.raises(RunEnded, match="does not run any more"):
            ledger.order(wrong, NOW + 60, NOW, "reclaim")
    assert [live.deadline for live in ledger.live()] == [None]
    ledger.order(other, NOW + 60, NOW, "reclaim")
    assert [live.deadline for live in ledger.live()] == [NOW + 60]


def test_an_order_is_taken_back_from_the_run_it_names_while_it_is_not_too_late(ledger: Ledger) -> None:
    run = running(ledger)
    other = running(ledger, now=NOW + 1)
    for one in (run, other):
        ledger.order(one, NOW + 60, NOW, "bob waits")
    ledger.take_back(run, NOW + 59, "bob has left")
    assert {live.run: live.deadline for live in ledger.live()} == {run: None, other: NOW + 60}
    ledger.take_back(run, NOW + 59, "the same again")
    texts = [event.text for event in ledger.events(1)]
    assert texts[-2:] == [f"asked to be gone by {NOW + 60}: bob waits", "not asked to leave any more: bob has left"]
    ledger.order(run, NOW + 600, NOW, "a new reason, with more time than the first gave")
    with pytest.raises(ActionRefused, match="its deadline has come"):
        ledger.take_back(other, NOW + 60, "late")
    [job] = [job for job in ledger.live() if job.run == other]
    ledger.told_to_end(job, NOW + 60, False, "its deadline has come")
    with pytest.raises(ActionRefused, match="it is being ended"):
        ledger.take_back(other, NOW + 59, "the clock was set back")
    for wrong in (f"1@{NOW + 9}", "%", "1' OR 1=1 --"):
        with pytest.raises(RunEnded, match="does not run any more"):
            ledger.take_back(wrong, NOW, "wrong")


def test_only_runs_that_have_ended_are_told_of_as_ended(ledger: Ledger) -> None:
    first, second = running(ledger), running(ledger, now=NOW + 1)
    job = ledger.live()[0]
    ledger.ended(job, NOW + 50.5, 0, None, "", 12.25)
    [found] = ledger.ended_runs([first, second, f"1@{NOW + 9}", "99@1", "", "x"])
    assert (found.run, found.ended, found.cpu_seconds, found.was_ended) == (first, NOW + 50.5, 12.25, False)


def test_a_state_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    """Format 1 had no CPU time; what it knew stays."""
    tmp_path.chmod(0o700)
    with Ledger(str(tmp_path), create=True) as ledger:
        ledger.set_account(Account("alice", 16))
        ledger.set_nodes([Node("node1", 16)])
        running(ledger)
    with sqlite3.connect(tmp_path / STATE) as before:
        before.execute("ALTER TABLE jobs DROP COLUMN cpu_seconds")
        before.execute("PRAGMA user_version = 1")
    before.close()
    with Ledger(str(tmp_path)) as ledger:
        [job] = ledger.live()
        assert job.cpu_seconds is None
        ledger.ended(job, NOW + 5, 0, None, "", 3.0)
    with Store(str(tmp_path)) as store:
        assert [job.cpu_seconds for job in store.jobs(ended=True)] == [3.0]


def test_a_deadline_comes_nearer_and_never_moves_away(ledger: Ledger) -> None:
    run = running(ledger)
    ledger.order(run, NOW + 60, NOW, "first")
    ledger.order(run, NOW + 60, NOW, "the same again")
    ledger.order(run, NOW + 30, NOW, "sooner")
    with pytest.raises(ActionRefused, match="not given until"):
        ledger.order(run, NOW + 31, NOW, "later")
    assert [job.deadline for job in ledger.live()] == [NOW + 30]
    assert [event.text for event in ledger.events(1)][-1] == f"asked to be gone by {NOW + 30}: sooner"


def test_a_report_comes_back_as_it_was_and_goes_with_its_run(ledger: Ledger) -> None:
    run = running(ledger)
    report = PilotReport(NOW, used_cpu=7.5, last_job_start=NOW, can_postpone_last_job=False, add_uncom_time=1e9 / 3)
    ledger.set_reports({run: report})
    assert ledger.state(NOW).reports == {run: report}
    [job] = ledger.live()
    ledger.ended(job, NOW, 0, None, "")
    assert ledger.state(NOW).reports == {}


def test_old_jobs_are_forgotten_with_the_names_of_their_directories(ledger: Ledger) -> None:
    run = running(ledger)
    [job] = ledger.live()
    ledger.ended(job, NOW, 0, None, "")
    young = running(ledger, now=NOW + 100)
    assert ledger.forget(NOW + 50) == [ledger.lease_directory(run)]
    assert [job.run for job in ledger.jobs(ended=True)] == [young]
    assert ledger.events(job.job_id) == []


def test_a_number_is_never_given_twice(ledger: Ledger) -> None:
    running(ledger)
    [job] = ledger.live()
    ledger.ended(job, NOW, 0, None, "")
    ledger.forget(NOW + 50)
    assert ledger.submit(REQUEST, NOW) == [2]


def test_an_account_with_jobs_stays(ledger: Ledger) -> None:
    running(ledger)
    with pytest.raises(UsageError, match="1 of its jobs wait or run"):
        ledger.drop_account("alice")
    [job] = ledger.live()
    ledger.ended(job, NOW, 0, None, "")
    ledger.drop_account("alice")
    with pytest.raises(UsageError, match="none of that name"):
        ledger.drop_account("alice")


def test_clients_at_once_lose_nothing(ledger: Ledger) -> None:
    """Four processes submit ten jobs each, one by one, into one state."""
    program = (
        "import sys; from drainwise.local.store import Store; from drainwise.local.job import JobRequest\n"
        "store = Store(sys.argv[1])\n"
        "for _ in range(10): print(*store.submit(JobRequest('alice', 'a', 1, ('true',), 60), 1.0))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", program, ledger.directory], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [int(line) for client in clients for line in client.communicate(timeout=60)[0].split()]
    assert sorted(printed) == list(range(1, 41)) == [job.job_id for job in ledger.jobs()]


def test_a_client_that_is_killed_in_its_transaction_leaves_nothing_behind(ledger: Ledger) -> None:
    program = (
        "import os, sys; from drainwise.local.database import Database\n"
        "with Database(sys.argv[1]).transaction() as change:\n"
        "    change.execute(\"INSERT INTO accounts VALUES ('half', 1)\")\n"
        "    os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-c", program, ledger.directory], env=environment, check=False, timeout=60)
    assert ran.returncode == -9
    ledger.set_account(Account("whole", 1))
    assert [account.name for account in ledger.accounts()] == ["alice", "whole"]


def test_a_state_that_is_held_for_too_long_is_said_to_be(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drainwise.local.database._BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(os.path.join(ledger.directory, STATE), isolation_level=None)
    second = Store(ledger.directory)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(PoolUnreachable, match="held by another process"):
        second.set_account(Account("bob", 1))
    holder.close()
    second.set_account(Account("bob", 1))
    second.close()


def test_the_state_is_its_owners_alone(ledger: Ledger) -> None:
    assert stat.S_IMODE(os.stat(os.path.join(ledger.directory, STATE)).st_mode) == 0o600


def test_a_directory_that_is_made_is_private(tmp_path: Path) -> None:
    Store(str(tmp_path / "new" / "state"), create=True).close()
    assert stat.S_IMODE((tmp_path / "new" / "state").stat().st_mode) == 0o700


def test_a_directory_where_others_may_write_is_refused(tmp_path: Path) -> None:
    """Whoever writes there could have commands run as the daemon's user."""
    tmp_path.chmod(0o770)
    with pytest.raises(UsageError, match="others may write"):
        Store(str(tmp_path), create=True)


def test_where_no_state_is_the_way_to_make_one_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UsageError, match="drainwise local start"):
            Store(str(path))
    assert list(tmp_path.iterdir()) == []


def test_where_the_state_cannot_be_kept_is_said_in_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below", Path("/proc/self/drainwise")):
        with pytest.raises(UsageError, match="the state cannot be kept there"):
            Store(str(path), create=True)


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
            Store(place, create=True)
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
def test_a_file_that_is_no_state_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(UsageError, match=STATE):
        Store(str(tmp_path), create=True)
    assert (tmp_path / STATE).read_bytes() == content


def test_the_state_of_another_version_is_refused(ledger: Ledger) -> None:
    ledger.close()
    with sqlite3.connect(os.path.join(ledger.directory, STATE)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match="format 7"):
        Store(ledger.directory)

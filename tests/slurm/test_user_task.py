"""What is done for a job as its user: the notice is put where the job looks, and its report read where it may lie."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.node import JOB_STATUS
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd, parse_site_ad
from drainwise.slurm.node_agent import user_task
from drainwise.slurm.node_agent.user_task import SHARED, UserTask, UserTaskResult, result_in, run_tasks

NOW = 1_795_000_000


@pytest.fixture
def task(tmp_path: Path) -> Iterator[UserTask]:
    """A job of 8 cores with an empty $JOBSTATUS and an empty WorkDir."""
    (tmp_path / JOB_STATUS).mkdir()
    (tmp_path / "home").mkdir()
    tree = os.open(tmp_path, os.O_PATH)
    yield UserTask(tree, os.geteuid(), None, 8, bytes(tmp_path / "home"), False, NOW - 600, stale=NOW - 300)
    os.close(tree)


def report(directory: Path, used: float, written: int = NOW) -> None:
    """A report of `used` of 8 cores, written at a time."""
    file = directory / ".pilot.ad"
    file.write_text(f"USED_FRACTION1k = {used / 8 * 1024:.0f}\nLAST_EXP_JOB_END = {written + 500}\n")
    os.utime(file, (written, written))


def results(*tasks: UserTask) -> list[tuple[str, UserTaskResult]]:
    """The results in the order in which they are sent; a later one of a task takes the place of an earlier."""
    sent: list[bytes] = []
    run_tasks({str(number): task for number, task in enumerate(tasks)}, sent.append)
    return [result_in(line) for line in b"".join(sent).splitlines()]


def used_cores(task: UserTask) -> float | None:
    """The cores in the report that counts at last; None without one."""
    last = results(task)[-1][1].report
    return None if last is None else last.used_cpu


def test_a_report_in_jobstatus_counts_and_the_work_dir_is_not_looked_at(task: UserTask, tmp_path: Path) -> None:
    report(tmp_path / JOB_STATUS, 3)
    report(tmp_path / "home", 5)
    ((key, found),) = results(task)
    assert found.report is not None
    assert (key, found.report.used_cpu, found.in_work_dir, found.fault) == ("0", 3, False, "")


def test_who_says_nothing_is_looked_for_among_the_glideins(
    task: UserTask, tmp_path: Path, mocker: MockerFixture
) -> None:
    """And who reports is not."""
    looked = mocker.patch.object(user_task, "startds", autospec=True, return_value={"17": [4711]})
    mocker.patch.object(user_task, "read_glideins", autospec=True, return_value=PilotReport(NOW, used_cpu=6.0))
    pilot = replace(task, job="17")
    assert used_cores(pilot) == 6
    report(tmp_path / JOB_STATUS, 3)
    assert used_cores(pilot) == 3
    looked.assert_called_once_with(os.geteuid(), {"17"})


def test_no_report_is_read_without_cores(task: UserTask, tmp_path: Path) -> None:
    """Neither there nor in the WorkDir."""
    report(tmp_path / JOB_STATUS, 3)
    report(tmp_path / "home", 5)
    assert results(replace(task, cores=None)) == [("0", UserTaskResult(None, "", ""))]


def test_without_a_report_in_jobstatus_that_of_the_work_dir_counts(task: UserTask, tmp_path: Path) -> None:
    report(tmp_path / "home", 5)
    first, second = results(task)
    assert first[1].report is None and second[1].report is not None
    assert (second[0], second[1].report.used_cpu, second[1].in_work_dir) == ("0", 5, True)


def test_what_an_earlier_job_left_in_the_work_dir_is_no_report(task: UserTask, tmp_path: Path) -> None:
    """One of the second in which the job began is its own."""
    report(tmp_path / "home", 5, task.started - 1)
    assert used_cores(task) is None
    report(tmp_path / "home", 5, task.started)
    assert used_cores(task) == 5


def test_a_stale_report_in_jobstatus_is_still_the_jobs(task: UserTask, tmp_path: Path) -> None:
    """The WorkDir's does not take its place."""
    report(tmp_path / JOB_STATUS, 3, task.stale - 1)
    report(tmp_path / "home", 5)
    assert used_cores(task) == 3


def test_a_report_in_a_shared_work_dir_is_nobodys(task: UserTask, tmp_path: Path) -> None:
    """Nothing is said where there is none."""
    assert results(replace(task, shared=True))[-1][1].refused == results(task)[0][1].refused
    report(tmp_path / "home", 5)
    assert results(replace(task, shared=True))[-1] == ("0", UserTaskResult(None, SHARED, ""))


def test_a_work_dir_that_cannot_be_opened_is_said(task: UserTask, tmp_path: Path) -> None:
    """One that is not there is no fault."""
    (tmp_path / "file").touch()
    assert results(replace(task, work_dir=bytes(tmp_path / "file")))[-1][1].refused.startswith("WorkDir: ")
    assert "WorkDir" not in results(replace(task, work_dir=bytes(tmp_path / "gone")))[-1][1].refused


def test_what_jobstatus_refuses_is_said_before_what_the_work_dir_does(task: UserTask, tmp_path: Path) -> None:
    """It is where a pilot looks first."""
    for directory in (tmp_path / JOB_STATUS, tmp_path / "home"):
        (directory / ".pilot.ad").mkdir()
    assert results(replace(task, work_dir=b""))[-1][1].refused == (refused := ".pilot.ad: not a regular file")
    (tmp_path / "home" / ".pilot.ad").rmdir()
    (tmp_path / "home" / ".pilot.ad").symlink_to("elsewhere")
    (tmp_path / "file").touch()
    for where in ("home", "file"):
        assert results(replace(task, work_dir=bytes(tmp_path / where)))[-1][1].refused == refused


def test_a_notice_of_long_ago_is_removed_from_a_work_dir_of_one_job(task: UserTask, tmp_path: Path) -> None:
    """Another job there may still need it."""
    file = tmp_path / "home" / ".site.ad"
    file.write_text('VACATE_DESIRED = True\nPAYLOAD_DEADLINE = 1000000000\nSITE_AD_RUN = "9@999990000"\n')
    results(replace(task, shared=True))
    assert file.exists()
    results(task)
    assert not file.exists()


def test_the_notice_comes_and_goes(task: UserTask, tmp_path: Path) -> None:
    """In $JOBSTATUS, whether a report is wanted or not."""
    file = tmp_path / JOB_STATUS / ".site.ad"
    ad = SiteAd(True, NOW + 600)
    results(replace(task, notice=ad, cores=None))
    assert parse_site_ad(file.read_bytes())[0] == ad
    results(task)
    assert not file.exists()


def test_a_jobstatus_that_is_not_the_jobs_is_refused(task: UserTask, tmp_path: Path) -> None:
    """One that is another user's, is absent, or is a link; nothing is written through it."""
    notice = replace(task, notice=SiteAd(True, NOW + 600), work_dir=b"")
    ((_, found),) = results(replace(notice, uid=task.uid + 1))
    assert (found.report, found.refused) == (None, "$JOBSTATUS: not the job's user")
    (tmp_path / JOB_STATUS).rmdir()
    assert results(notice) == [("0", UserTaskResult(None, "$JOBSTATUS: absent", ""))]
    (tmp_path / JOB_STATUS).symlink_to(tmp_path / "home")
    assert results(notice)[0][1].refused.startswith("$JOBSTATUS: ")
    assert os.listdir(tmp_path / "home") == []


def test_a_notice_that_cannot_be_put_is_a_fault_and_the_report_is_read(task: UserTask, tmp_path: Path) -> None:
    report(tmp_path / JOB_STATUS, 3)
    (tmp_path / JOB_STATUS / ".site.ad" / "full").mkdir(parents=True)
    ((_, found),) = results(replace(task, notice=SiteAd(True, NOW + 600)))
    assert found.report is not None and found.report.used_cpu == 3
    assert ".site.ad" in found.fault


def test_every_task_has_its_result(task: UserTask) -> None:
    """Also where there are more than are sent at a time."""
    many = [replace(task, work_dir=b"")] * 40
    assert [key for key, _ in results(*many)] == [str(number) for number in range(40)]


def test_the_newest_of_a_silent_jobs_checkpoints_counts(task: UserTask, tmp_path: Path) -> None:
    """In the WorkDir or a directory below it, since its start, and of no file that a link leads to."""
    home = tmp_path / "home"
    task = replace(task, checkpoints=("*.ckpt", "restart/*"))
    (home / "restart").mkdir(parents=True)
    for name, age in (("a.ckpt", 100), ("restart/b", 50), ("c.log", 10), ("old.ckpt", 900)):
        (home / name).write_bytes(b"x")
        os.utime(home / name, (NOW - age, NOW - age))
    (home / "link.ckpt").symlink_to(home / "c.log")
    (home / "later.ckpt").mkdir()
    [*_, (_, last)] = results(task)
    assert (last.saved, last.report, last.in_work_dir) == (NOW - 50, None, False)
    os.utime(home / "restart" / "b", (time.time() + 9000,) * 2)
    assert results(task)[-1][1].saved == 0, "a time to come is none"
    assert results(replace(task, shared=True))[-1][1].saved == 0, "whose file it is nobody can tell"
    assert results(replace(task, checkpoints=()))[-1][1].saved == 0

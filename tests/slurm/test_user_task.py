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
from drainwise.pilotad.attributes import GLIDEIN_AD
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


STARTD = {"comm": b"condor_startd\n", "cgroup": b"0::/\n", "environ": b"HOME=/\0SLURM_JOB_ID=17\0"}
TREE = b"0::/system.slice/slurmstepd.scope/job_18/step_0/user/task_0\n"


@pytest.fixture
def processes(mocker: MockerFixture) -> dict[str, dict[str, bytes]]:
    """What /proc says of processes by pid; at first this one is the startd of job 17. Of others it says nothing."""
    told = {str(os.getpid()): dict(STARTD)}

    def read(path: str, _limit: int, _below: int | None = None) -> bytes:
        _, _, pid, name = path.split("/")
        if pid not in told:
            raise ProcessLookupError
        return told[pid][name]

    mocker.patch.object(user_task, "read_bounded", autospec=True, side_effect=read)
    return told


@pytest.mark.parametrize(
    ("changed", "job"),
    [
        ({}, "17"),
        ({"environ": b"SLURM_JOBID=17\0SLURM_JOB_ID=18"}, "17"),
        ({"environ": b"MY_SLURM_JOB_ID=18\0"}, ""),
        ({"cgroup": TREE}, "18"),
        ({"cgroup": b"9:x:/\n3:cpuset:/slurm/uid_99/job_18/step_batch\n1:y:/"}, "18"),
        ({"cgroup": TREE.replace(b"job_18", b"job_x")}, "17"),
        ({"cgroup": TREE.replace(b"job_18", b"my_18")}, "17"),
        ({"comm": b"sleep\n"}, ""),
    ],
)
def test_a_startd_is_its_control_groups_jobs_or_the_one_that_slurm_told_it(
    processes: dict[str, dict[str, bytes]], changed: dict[str, bytes], job: str
) -> None:
    ((own, told),) = processes.items()
    told |= changed
    assert user_task.startds(os.geteuid(), {"17", "18"}) == ({job: [own]} if job else {})
    assert user_task.startds(os.geteuid(), {"7"}) == user_task.startds(os.geteuid() + 1, {"17", "18"}) == {}


def test_startds_are_looked_for_within_bounds(
    processes: dict[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In number and in time; a process that has ended meanwhile is passed over."""
    (own,) = processes
    monkeypatch.setattr(os, "listdir", lambda _: ["self", "1000000000", own, own, own])
    processes["self"] = STARTD
    monkeypatch.setattr(user_task, "MOST_STARTDS", 2)
    assert user_task.startds(os.geteuid(), {"17"}) == {"17": [own, own]}
    monkeypatch.setattr(user_task, "SECONDS", -1.0)
    assert user_task.startds(os.geteuid(), {"17"}) == {}


def glidein_below(place: Path, cores: int) -> Path:
    """A glidein with a payload on so many cores, and the directory in which its startd runs."""
    (place / "execute" / "dir_1").mkdir(parents=True)
    (place / "log").mkdir()
    (place / "log" / "StartdLog").touch()
    (place / "execute" / "dir_1" / ".machine.ad").write_text(f"Cpus = {cores}\n")
    (place / "execute" / "dir_1" / ".job.ad").write_text(f"JobCurrentStartDate = {time.time():.0f}\n")
    return place / "log"


def test_the_glidein_of_a_startd_reports_for_its_job(
    task: UserTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture
) -> None:
    """Once, however many processes its startd has; whoever has just ended is passed over."""
    mocker.patch.object(user_task, "startds", autospec=True, return_value={"17": ["self", "1000000000", "self"]})
    pilot = replace(task, job="17", work_dir=b"", stale=NOW)
    monkeypatch.chdir(glidein_below(tmp_path / "glidein", 3))
    opened = len(os.listdir("/proc/self/fd"))
    ((_, first), (_, last)) = results(pilot)
    assert len(os.listdir("/proc/self/fd")) <= opened
    assert (first.report, first.in_work_dir) == (None, False)
    assert last.report is not None
    assert (last.report.used_cpu, last.report.source, last.in_work_dir) == (3, GLIDEIN_AD, False)
    assert [key for key, _ in results(pilot, replace(pilot, job="18"))] == ["0", "1", "0"]
    # It takes the place of a stale report, wherever that was; once its startd has gone, that stands again.
    report(tmp_path / "home", 5, NOW - 1)
    old = replace(pilot, work_dir=task.work_dir)
    assert [one.report and (one.report.used_cpu, one.in_work_dir) for _, one in results(old)] == [
        *(None, (5, True)),
        (3, False),
    ]
    os.utime("StartdLog", (NOW, NOW))
    assert [one.report and (one.report.used_cpu, one.in_work_dir) for _, one in results(old)][2] == (5, True)


def test_a_glidein_that_cannot_be_read_is_said_where_nothing_else_is(
    task: UserTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture
) -> None:
    mocker.patch.object(user_task, "startds", autospec=True, return_value={"17": ["self"]})
    monkeypatch.chdir(log := glidein_below(tmp_path / "glidein", 3))
    ad = log.parent / "execute" / "dir_1" / ".job.ad"
    ad.unlink()
    ad.mkdir()
    pilot = replace(task, job="17", work_dir=b"")
    assert results(pilot)[-1] == ("0", UserTaskResult(refused="the glidein's files: not a regular file"))
    (tmp_path / JOB_STATUS / ".pilot.ad").mkdir()
    assert results(pilot)[-1][1].refused == ".pilot.ad: not a regular file"
    report(tmp_path / "home", 5, NOW - 1)
    assert results(replace(pilot, work_dir=task.work_dir, stale=NOW))[-1][1].in_work_dir, "a stale report stands"


def test_no_report_is_read_without_cores(task: UserTask, tmp_path: Path) -> None:
    """Neither there nor in the WorkDir."""
    report(tmp_path / JOB_STATUS, 3)
    report(tmp_path / "home", 5)
    assert results(replace(task, cores=0)) == [("0", UserTaskResult(None, "", ""))]


def test_without_a_report_in_jobstatus_that_of_the_work_dir_counts(
    task: UserTask, tmp_path: Path, mocker: MockerFixture
) -> None:
    report(tmp_path / "home", 5)
    first, second = results(task)
    assert first[1].report is None and second[1].report is not None
    assert (second[0], second[1].report.used_cpu, second[1].in_work_dir) == ("0", 5, True)
    looked = mocker.patch.object(user_task, "startds", autospec=True)
    assert results(replace(task, job="17")) == [first, second], "whoever reports in either is no glidein"
    looked.assert_not_called()


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
    results(replace(task, notice=ad, cores=0))
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
    sent: list[bytes] = []
    run_tasks({str(number): replace(task, work_dir=b"") for number in range(40)}, sent.append)
    assert [[result_in(line)[0] for line in lines.splitlines()] for lines in sent] == [
        [str(number) for number in range(begin, min(begin + 16, 40))] for begin in (0, 16, 32)
    ]


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

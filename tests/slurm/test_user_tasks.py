"""A child speaks for the tasks that it was given, and whatever it sends harms no other user's jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent import user_tasks
from drainwise.slurm.node_agent.as_user import ChildOutcome, Identity, Send, Users
from drainwise.slurm.node_agent.jobs import NodeJob
from drainwise.slurm.node_agent.user_task import SHARED, UserTask, UserTaskResult, result_line
from drainwise.slurm.node_agent.user_tasks import UserTasks
from drainwise.slurm.node_agent.work_dirs import WorkDirs

ALICE, MALLORY = 54321, 54322
NOW = 1_795_000_000
JOBS_TOGETHER, WORK_DIR_PERIOD, GLIDEIN_PERIOD, SLOW_PERIOD = 32, 300, 60, 600

Step = Callable[[Send], None]


def job_of(uid: int, number: int, cores: int = 1) -> NodeJob:
    facts = SlurmJob(number, states=frozenset({RUNNING}), start=NOW, cores=cores, node_count=1)
    lease = SlurmLease(job=str(number), uid=uid, gid=uid, started=NOW)
    return NodeJob("node1", lease, (number, 1), -1, str(number), facts)


HERS = job_of(ALICE, 11).name


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (result_line(HERS, UserTaskResult(None, "said by mallory", ""))[:-1], "a result of another user's task"),
        (result_line("7", UserTaskResult(None, "", ""))[:-1], "a result of another user's task"),
        (b"rubbish", "no result of a task: "),
        (b"[" * 100_000, "no result of a task: "),
        (b'["node1/12/(12, 1)",{"heartbeat":1e999},"","",false]', "no result of a task: "),
    ],
)
def test_what_a_child_sends_counts_for_its_own_tasks_alone(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, fault: str
) -> None:
    jobs = {job.key: job for job in (job_of(ALICE, 11), job_of(MALLORY, 12))}

    def run(_self: Users, work: Mapping[Identity, object], _seconds: float) -> dict[Identity, ChildOutcome]:
        hers = result_line(HERS, UserTaskResult(None, "said by alice", ""))[:-1]
        return {who: ChildOutcome((hers if who.uid == ALICE else sent,), "") for who in work}

    monkeypatch.setattr(Users, "run", run)
    faults: dict[str, str] = {}
    tasks = UserTasks(lambda _job, _text: None, faults.__setitem__)
    found = tasks.run(jobs, dict.fromkeys(jobs), NOW, read=True)
    assert {key: result.refused for key, result in found.items()} == {("node1", "11"): "said by alice"}
    assert faults[f"user {ALICE}"] == "" and faults[f"user {MALLORY}"].startswith(fault)
    assert [tasks.is_slow(uid, NOW) for uid in (ALICE, MALLORY)] == [False, True]
    assert not any(tasks.is_slow(uid, NOW + 60) for uid in (ALICE, MALLORY))  # it holds up no later round


@pytest.mark.parametrize("cores", [0, 8])
def test_no_report_is_read_while_the_cores_of_a_job_are_not_known(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    """It could not be held to them."""
    job = job_of(ALICE, 11, cores)
    given: list[UserTask] = []

    def run(_self: Users, work: Mapping[Identity, Step], _seconds: float) -> dict[Identity, ChildOutcome]:
        for step in work.values():
            step(lambda _data: None)
        return {who: ChildOutcome((), "") for who in work}

    monkeypatch.setattr(Users, "run", run)
    monkeypatch.setattr(user_tasks, "run_tasks", lambda tasks, _send: given.extend(tasks.values()))
    UserTasks(lambda _job, _text: None, lambda _place, _text: None).run({job.key: job}, {job.key: None}, NOW, read=True)
    assert [task.cores for task in given] == [cores]


class Round:
    """A round of user tasks; what the children answer, by a job's name, and what they were given."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.noted: list[tuple[str, str]] = []
        self.faults: dict[str, str] = {}
        self.tasks = UserTasks(lambda job, text: self.noted.append((job.lease.job, text)), self.faults.__setitem__)
        self.answers: dict[str, UserTaskResult] = {}
        self.fault = ""
        self.given: dict[Identity, Mapping[str, UserTask]] = {}
        self.lost = mocker.patch.object(Users, "lost", autospec=True, return_value=0)

        def results(_: Users, tasks: Mapping[Identity, Mapping[str, UserTask]], *_more: object) -> object:
            self.given = dict(tasks)
            names = {name for some in tasks.values() for name in some}
            return {name: one for name, one in self.answers.items() if name in names}, dict.fromkeys(tasks, self.fault)

        mocker.patch.object(Users, "results", autospec=True, side_effect=results)

    def run(self, *jobs: NodeJob, read: bool = True, now: int = NOW) -> list[UserTask]:
        """Do it for these jobs; the tasks that were given."""
        self.noted.clear()
        by_key = {job.key: job for job in jobs}
        self.found = self.tasks.run(by_key, dict.fromkeys(by_key), now, read, NOW - 9, ("*.ckpt",))
        return [task for some in self.given.values() for task in some.values()]


def lease_of(job: str = "11", work_dir: bytes = b"/home", cores: int | None = None) -> SlurmLease:
    return SlurmLease(job, ALICE, ALICE, NOW - 7, cores=cores, work_dir=work_dir)


PILOT = replace(job_of(ALICE, 11, 8), lease=lease_of())
WHOLE = UserTask(-1, ALICE, None, 8, b"/home", False, NOW, "11", NOW - 9, ("*.ckpt",))
ONLY_NOTICE = replace(WHOLE, cores=0, work_dir=b"", job="")


def facts_of(**changed: Any) -> SlurmJob:
    assert PILOT.facts is not None
    return replace(PILOT.facts, **changed)


@pytest.mark.parametrize(
    ("job", "task"),
    [
        (PILOT, WHOLE),
        (replace(PILOT, facts=None), None),
        (replace(PILOT, facts=facts_of(start=None)), replace(ONLY_NOTICE, started=NOW - 7)),
        (replace(PILOT, facts=facts_of(comments=("somebody's",))), ONLY_NOTICE),
        (replace(PILOT, facts=facts_of(het=10)), ONLY_NOTICE),
        (replace(PILOT, facts=facts_of(node_count=2, node="node[1-2]")), WHOLE),
        (
            replace(PILOT, facts=facts_of(node_count=2, node="node[0-1]"), lease=lease_of(cores=3)),
            replace(WHOLE, cores=3, work_dir=b"", job=""),
        ),
        (replace(PILOT, lease=lease_of(work_dir=b"home")), replace(WHOLE, work_dir=b"")),
        (replace(PILOT, look_again=NOW + 1), replace(WHOLE, work_dir=b"")),
        (replace(PILOT, look_again=NOW, look_inside=NOW), WHOLE),
        (replace(PILOT, look_inside=NOW + 1), replace(WHOLE, job="")),
    ],
    ids=["pilot", "unknown", "no start", "foreign", "het", "first", "second", "relative", "again", "due", "inside"],
)
def test_what_is_looked_at_for_a_job(mocker: MockerFixture, job: NodeJob, task: UserTask | None) -> None:
    """Its report where it can be published; its WorkDir and its processes on the first node, now and then."""
    assert Round(mocker).run(replace(job)) == ([] if task is None else [task])


def test_without_a_look_only_notices_are_written(mocker: MockerFixture) -> None:
    assert Round(mocker).run(replace(PILOT), read=False) == [ONLY_NOTICE]


def test_whose_children_do_not_end_is_asked_for_little_and_then_for_nothing(mocker: MockerFixture) -> None:
    one = Round(mocker)
    one.lost.return_value = 1
    assert one.run(replace(PILOT)) == [replace(WHOLE, work_dir=b"", job="")]
    one.lost.return_value = 2
    assert one.run(replace(PILOT)) == []


def test_a_child_has_so_many_jobs_and_no_more(mocker: MockerFixture) -> None:
    """Those in one directory share it, whoever's child looks."""
    one = Round(mocker)
    one.run(*(job_of(ALICE, number) for number in range(100, 100 + JOBS_TOGETHER + 1)), replace(PILOT))
    assert {who: len(some) for who, some in one.given.items()} == {
        Identity(ALICE, ALICE, 0): JOBS_TOGETHER,
        Identity(ALICE, ALICE, 1): 2,
    }
    other = replace(PILOT, lease=lease_of("12"), identity=(12, 1))
    assert [task.shared for task in one.run(replace(PILOT), other)] == [True, True]


def test_a_slow_file_server_is_left_alone_for_a_while(mocker: MockerFixture) -> None:
    """Its fault stands that long; what a child did not answer is no result."""
    one, job = Round(mocker), replace(PILOT, refused="before")
    one.fault = "slow"
    assert one.run(job) == [WHOLE] and one.found == {}
    assert (one.faults, one.noted) == ({f"user {ALICE}": "slow"}, [("11", "before"), ("11", "")])
    assert one.tasks.is_slow(ALICE, NOW)
    one.fault, one.faults = "", {}
    one.tasks._fault = one.faults.__setitem__
    for now, is_told in ((NOW + SLOW_PERIOD - 1, False), (NOW + SLOW_PERIOD, True)):
        [task] = one.run(replace(job, look_again=0, look_inside=0), now=now)
        assert (bool(task.work_dir), one.faults) == (is_told, {f"user {ALICE}": ""} if is_told else {})


SAYS = PilotReport(NOW, used_cpu=4.0)
TOLD = PilotReport(NOW, used_cpu=6.0, source=GLIDEIN_AD)


def test_what_a_job_has_said_is_kept_until_it_is_looked_at_again(mocker: MockerFixture) -> None:
    """A glidein between two looks; a refusal until all was looked at."""
    one, job = Round(mocker), replace(PILOT)

    def after(result: UserTaskResult, now: int) -> tuple[UserTaskResult, list[bool]]:
        one.answers = {job.name: result}
        [task] = one.run(job, now=now)
        return one.found[job.key], [bool(task.work_dir), bool(task.job)]

    found, looks = after(UserTaskResult(refused="not sound", saved=100, fault="full"), NOW)
    assert looks == [True, True] and one.noted == [("11", "not sound"), ("11", "full")]
    assert (job.look_again, job.look_inside, job.reports) == (NOW + WORK_DIR_PERIOD, NOW + GLIDEIN_PERIOD, False)
    assert (job.saved, job.saves_each, found.report, job.is_glidein) == (100, 0, None, False)
    found, looks = after(UserTaskResult(saved=160), NOW + 1)
    assert looks == [False, False] and (job.saved, job.saves_each, job.refused) == (160, 60, "not sound")
    found, looks = after(UserTaskResult(TOLD, saved=160), NOW + GLIDEIN_PERIOD)
    assert looks == [False, True] and (found.report, job.is_glidein, job.refused) == (TOLD, True, "")
    assert (job.saves_each, job.reports, job.look_inside) == (60, True, NOW + 2 * GLIDEIN_PERIOD)
    found, looks = after(UserTaskResult(), NOW + GLIDEIN_PERIOD + 1)
    assert looks == [False, False] and found.report == TOLD, "what was told at the last look"
    found, looks = after(UserTaskResult(SAYS), NOW + GLIDEIN_PERIOD + 2)
    assert found.report == SAYS and job.glidein is None and job.is_glidein
    found, looks = after(UserTaskResult(), NOW + 2 * GLIDEIN_PERIOD)
    assert looks == [False, True] and found.report is None
    found, looks = after(UserTaskResult(SAYS, "one file"), NOW + WORK_DIR_PERIOD)
    assert looks == [True, True] and (job.look_again, job.refused) == (NOW + WORK_DIR_PERIOD, "one file")
    after(UserTaskResult(), NOW + WORK_DIR_PERIOD)
    assert job.refused == "" and job.look_again == NOW + 2 * WORK_DIR_PERIOD


def test_a_report_in_a_directory_of_two_jobs_is_nobodys(mocker: MockerFixture) -> None:
    """slurmctld is asked when it has changed; while that is silent it counts as before."""
    one, job, said = Round(mocker), replace(PILOT), mocker.create_autospec(WorkDirs, instance=True)

    def counts(heartbeat: int, alone: object, is_there: bool = True) -> bool:
        said.is_alone.side_effect = [alone] if isinstance(alone, (bool, Exception)) else AssertionError
        one.noted.clear()
        found = {job.key: UserTaskResult(PilotReport(heartbeat), in_work_dir=is_there)}
        one.tasks.tell_apart(found, {job.key: job}, said, NOW)
        result = found[job.key]
        if result.report is None:
            assert (result.refused, result.in_work_dir, one.noted) == (SHARED, False, [("11", SHARED)])
        return result.report is not None

    assert counts(1, "nobody is asked", is_there=False) and job.apart is None
    assert not counts(1, PoolUnreachable("silent")), "nobody knows yet"
    assert counts(1, True) and counts(1, "nobody is asked")
    assert counts(2, PoolUnreachable("silent"))
    assert not counts(2, False) and not counts(2, "nobody is asked") and job.refused == SHARED
    assert not counts(3, PoolUnreachable("silent")) and counts(3, True)

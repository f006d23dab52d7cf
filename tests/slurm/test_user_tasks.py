"""A child speaks for the tasks that it was given, and whatever it sends harms no other user's jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent import user_tasks
from drainwise.slurm.node_agent.as_user import ChildOutcome, Identity, Send, Users
from drainwise.slurm.node_agent.jobs import NodeJob
from drainwise.slurm.node_agent.user_task import UserTask, UserTaskResult, result_line
from drainwise.slurm.node_agent.user_tasks import UserTasks

ALICE, MALLORY = 54321, 54322
NOW = 1_795_000_000

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

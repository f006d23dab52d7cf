"""Which notices are brought to WorkDirs, removed from there and tried again, from one round to the next.

The children that do it as their users are in `test_work_dir`: here they are asked, and answer as a test says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent.as_user import Identity, Users
from drainwise.slurm.node_agent.jobs import NodeJob
from drainwise.slurm.node_agent.user_task import WorkDirTask
from drainwise.slurm.node_agent.work_dirs import WorkDirNotices, WorkDirs

ALICE = 54321
NOW = 1_795_000_000
LOOK_PERIOD, RETRY, LONGEST = 300, 300, 86_400
AD, OTHER = SiteAd(True, NOW + 600), SiteAd(True, NOW + 900)
HOME = b"/home/alice"
Key = tuple[str, str]


def job_of(number: int, work_dir: bytes = HOME, uid: int = ALICE) -> NodeJob:
    lease = SlurmLease(job=str(number), uid=uid, gid=uid + 1, started=NOW - 50, work_dir=work_dir)
    facts = SlurmJob(number, states=frozenset({RUNNING}), start=NOW - 100, cores=8, node_count=1)
    return NodeJob("n1", lease, (number, 1), -1, str(number), facts)


@dataclass
class Agent:
    """The notices of an agent, its jobs, and what slurmctld and the users' children say.

    stands: what a child says of a job's file, None: nothing in time. asked: the tasks of the last call.
    """

    node: Path
    questions: list[str] = field(default_factory=list)
    silent: bool = False
    listed: str = ""
    slow: bool = False
    lost: int = 0
    stands: dict[str, tuple[bool, str] | None] = field(default_factory=dict)
    asked: dict[str, tuple[Identity, WorkDirTask]] = field(default_factory=dict)
    noted: list[str] = field(default_factory=list)
    jobs: dict[Key, NodeJob] = field(default_factory=dict)
    now: int = NOW

    def __post_init__(self) -> None:
        self.start_again()

    def start_again(self) -> None:
        """Another agent, which knows what is written down."""
        self.work_dirs = WorkDirs(SlurmCommands())
        self.notices = WorkDirNotices(lambda job, text: self.noted.append(f"{job.lease.job} {text}"), self.work_dirs)

    def start(self, *jobs: NodeJob) -> None:
        """These jobs run, and slurmctld lists them."""
        self.jobs |= {job.key: job for job in jobs}
        self.listed = "".join(f"{job.lease.job}|{job.lease.work_dir.decode()}|\n" for job in self.jobs.values())

    def _asked(self, call: Callable[[dict[str, int]], None], node: str) -> dict[str, WorkDirTask]:
        self.asked, self.noted[:] = {}, []
        directory = os.open(self.node, os.O_RDONLY)
        call({node: directory} if node else {})
        os.close(directory)
        return {name.partition("/")[2]: task for name, (_, task) in self.asked.items()}

    def bring(self, notice: SiteAd | None, later: int = 0, node: str = "n1") -> dict[str, WorkDirTask]:
        """Bring it to all jobs, some seconds later; the tasks by job."""
        self.now += later
        notices = dict.fromkeys(self.jobs, notice)
        return self._asked(
            lambda nodes: self.notices.bring(self.jobs, notices, nodes, self.now, lambda _uid, _now: self.slow), node
        )

    def clear(self, later: int = 0, node: str = "n1") -> dict[str, WorkDirTask]:
        """Clear up; the tasks by job."""
        self.now += later
        return self._asked(lambda nodes: self.notices.clear(self.jobs, nodes, self.now), node)

    def written(self) -> list[str]:
        """Of which jobs it is written down that a notice may stand."""
        return sorted(path.name for path in self.node.iterdir())


@pytest.fixture
def agent(tmp_path: Path, mocker: MockerFixture) -> Iterator[Agent]:
    made = Agent(tmp_path)

    def start(_: SlurmCommands, *words: str) -> SimpleNamespace:
        made.questions.append(" ".join(words))
        if made.silent:
            raise PoolUnreachable("silent")
        return SimpleNamespace(output=made.listed.encode)

    def results(
        _: Users, tasks: Mapping[Identity, Mapping[str, WorkDirTask]], *_more: object
    ) -> tuple[dict[str, tuple[bool, str]], dict[Identity, str]]:
        found: dict[str, tuple[bool, str]] = {}
        for who, some in tasks.items():
            made.asked |= {name: (who, task) for name, task in some.items()}
            for name, task in some.items():
                said = made.stands.get(name.partition("/")[2], (task.notice is not None, ""))
                found |= {} if said is None else {name: said}
        return found, dict.fromkeys(tasks, "")

    mocker.patch.object(SlurmCommands, "start", autospec=True, side_effect=start)
    mocker.patch.object(Users, "results", autospec=True, side_effect=results)
    mocker.patch.object(Users, "lost", autospec=True, side_effect=lambda *_: made.lost)
    yield made


def test_a_notice_is_brought_looked_after_now_and_then_and_removed(agent: Agent) -> None:
    agent.start(job_of(17), job_of(18, b"/home/alice/2"))
    assert agent.bring(None) == {} and agent.questions == []
    tasks = agent.bring(AD)
    others = {"17": b"/home/alice/2", "18": HOME}
    assert tasks == {
        job: WorkDirTask(path, ALICE, f"{job}@{NOW - 100}", f".site.ad.{job}.n1", AD, True, (others[job],))
        for job, path in (("17", HOME), ("18", b"/home/alice/2"))
    }
    assert {who for who, _ in agent.asked.values()} == {Identity(ALICE, ALICE + 1)}
    assert agent.questions == [
        f"squeue --noheader --all --local --user={ALICE}"
        " --states=running,configuring,suspended,stopped,signaling,resizing --Format=JobID:|,WorkDir:|"
    ]
    assert agent.written() == [".work_dir.17", ".work_dir.18"] and agent.noted == ["17 ", "18 "]
    assert agent.bring(AD, LOOK_PERIOD - 1) == {} and len(agent.questions) == 1
    assert len(agent.bring(AD, 1)) == 2 and len(agent.questions) == 2
    assert {task.notice for task in agent.bring(OTHER, 1).values()} == {OTHER}
    gone = agent.bring(None, 1)
    assert [(task.notice, task.alone, task.others) for task in gone.values()] == [(None, False, ())] * 2
    assert agent.written() == [] and agent.bring(None, LOOK_PERIOD) == {} == agent.clear()


def test_what_was_written_down_is_read_when_an_agent_begins_and_not_again(agent: Agent) -> None:
    """A file that comes there later is not the agent's own."""
    agent.start(job_of(17))
    assert agent.clear() == {}
    agent.bring(AD)
    record = (agent.node / ".work_dir.17").read_text()
    (agent.node / ".work_dir.18").write_text(record.replace('"17', '"18'))
    assert agent.clear() == {}
    agent.start_again()
    assert list(agent.clear()) == ["18"]


@pytest.mark.parametrize(
    ("changed", "said", "tried_after"),
    [((False, "in the way"), "in the way", RETRY), (None, "WorkDir: the work was not done", RETRY)],
)
def test_what_is_in_the_way_is_said_each_round_and_tried_again(
    agent: Agent, changed: tuple[bool, str] | None, said: str, tried_after: int
) -> None:
    agent.start(job_of(17))
    agent.stands["17"] = changed
    assert list(agent.bring(AD)) == ["17"] and agent.noted == [f"17 {said}"]
    assert agent.bring(AD, tried_after - 1) == {} and agent.noted == [f"17 {said}"]
    assert agent.written() == [".work_dir.17"]
    assert list(agent.bring(AD, 1)) == ["17"]


@pytest.mark.parametrize(
    "job",
    [
        job_of(17, uid=0),
        job_of(17, b"home"),
        job_of(17, b"/home/\nalice"),
        replace(job_of(17), facts=None),
    ],
    ids=["root", "relative", "line end", "not known"],
)
def test_what_is_no_place_of_one_user_gets_no_notice(agent: Agent, job: NodeJob) -> None:
    agent.start(job)
    assert agent.bring(AD) == {} and agent.questions == [] and agent.written() == []


@pytest.mark.parametrize("why", ["silent", "slow", "lost", "no node"])
def test_a_notice_waits_for_who_does_not_answer(agent: Agent, why: str) -> None:
    """And is brought in the next round."""
    agent.start(job_of(17))
    agent.silent, agent.slow, agent.lost = why == "silent", why == "slow", int(why == "lost")
    assert agent.bring(AD, node="n2" if why == "no node" else "n1") == {} and agent.written() == []
    agent.silent, agent.slow, agent.lost = False, False, 0
    assert list(agent.bring(AD, 1)) == ["17"]


@pytest.mark.parametrize("listed", ["17|/home/alice|\n18|/home/alice|\n", "17|/home/bob|\n", "18|/home/alice|\n", ""])
def test_a_directory_that_may_be_another_jobs_gets_none(agent: Agent, listed: str) -> None:
    """Asked again after a while; one that stands there goes."""
    agent.start(job_of(17))
    whole, agent.listed = agent.listed, listed
    assert agent.bring(AD) == {} and agent.written() == []
    agent.listed = whole
    assert agent.bring(AD, LOOK_PERIOD - 1) == {}
    assert list(agent.bring(AD, 1)) == ["17"]
    agent.listed = listed
    assert [task.alone for task in agent.bring(AD, LOOK_PERIOD).values()] == [False]
    assert agent.written() == [".work_dir.17"], "it may stand there still"


def test_two_jobs_here_in_one_directory_get_none(agent: Agent) -> None:
    """Nobody is asked whether they are alone; what stands there for the first one goes before the other begins."""
    agent.start(job_of(17))
    agent.bring(AD)
    assert agent.clear(1) == {}
    agent.start(job_of(18))
    questions = len(agent.questions)
    assert [(job, task.notice, task.alone) for job, task in agent.clear(1).items()] == [("17", None, False)]
    assert agent.written() == [] and agent.bring(AD, 1) == {} and len(agent.questions) == questions


@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_notice_of_a_job_that_has_ended_goes_or_is_tried_until_it_is_old(agent: Agent, is_restarted: bool) -> None:
    """Also by an agent that finds it written down."""
    agent.start(job_of(17))
    agent.bring(AD)
    (agent.node / ".work_dir.18").write_text("{")
    (agent.node / "other").touch()
    if is_restarted:
        agent.start_again()
    assert agent.clear(1) == {} and agent.written() == [".work_dir.17", ".work_dir.18", "other"]
    del agent.jobs["n1", "17"]
    assert agent.clear(1, node="") == {}
    ended = agent.now
    agent.stands["17"] = None
    assert list(agent.clear()) == ["17"]
    assert agent.clear(RETRY - 1) == {}
    agent.stands["17"] = (True, "")
    assert list(agent.clear(1)) == ["17"] == list(agent.clear(1))
    agent.stands["17"] = (False, "in the way")
    assert list(agent.clear(ended + LONGEST - agent.now)) == ["17"] and ".work_dir.17" in agent.written()
    agent.clear(1)
    assert agent.written() == [".work_dir.18", "other"] and agent.clear(RETRY) == {}


def test_another_job_of_the_same_number_is_another_one(agent: Agent) -> None:
    """What stands for the first goes, and is brought for the second by its own name."""
    agent.start(job_of(17))
    agent.bring(AD)
    agent.start(replace(job_of(17), identity=(17, 2), facts=replace(job_of(17).facts or SlurmJob(17), start=None)))
    agent.stands["17"] = (True, "")
    assert [task.run for task in agent.clear(1).values()] == [f"17@{NOW - 100}"]
    assert [task.run for task in agent.bring(AD, 1).values()] == [f"17@{NOW - 50}"]
    assert agent.clear(1) == {}

"""slurmctld's words, recorded from both releases, as facts; and a user's words as nothing but his own loss."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import granted_by_limit, is_shortened
from drainwise.slurm.jobs.scontrol_jobs import TOGETHER, JobAnswer, ask, between_marks, job_in, questions, understood
from drainwise.slurm.jobs.values import ENDLESS_MINUTES
from made_up_scontrol import MadeUpScontrol

from .recorded_cluster import recorded

GIB = 1 << 30
# What stands behind the marks of the recorded sessions, in their order.
ASKED = {
    "plain": "10",
    "foreign": "11",
    "hostile": "12",
    "array": "13",
    "het": "14",
    "nodes": "16",
    "unlimited": "17",
    "shortened": "18",
    "cancelled": "21",
    "held": "22",
    "unknown": "4000000",
    "task": "13_3",
    "component": "14+0",
}


def blocks(version: str) -> dict[str, str]:
    """What stands behind each mark."""
    found = between_marks(recorded(version, "scontrol.txt").decode("utf-8", "replace"), "mark", len(ASKED) + 1)
    assert found is not None
    return dict(zip([*ASKED, "node"], found))


@pytest.fixture(params=["22.05", "24.11"])
def said(request: pytest.FixtureRequest) -> dict[str, str]:
    return blocks(request.param)


def test_a_plain_job(said: dict[str, str]) -> None:
    facts = job_in(said["plain"], 10)
    assert facts is not None
    assert (facts.label, facts.single, facts.uid, facts.states) == ("10", True, 1001, frozenset({"RUNNING"}))
    assert facts.start is not None and facts.end == facts.start + 600 == facts.start + 60 * (facts.limit or 0)
    assert (facts.cores, facts.restarts, facts.memory_on_node(2)) == (2, 0, 500 << 20)
    assert len(facts.comments) == 1 and facts.comments[0].startswith('{"drainwise":1,')


def test_long_limits_and_memory_by_core(said: dict[str, str]) -> None:
    facts = job_in(said["foreign"], 11)
    assert facts is not None
    assert facts.limit == 49 * 60
    assert facts.memory_on_node(2) == 3 * GIB
    assert facts.comments == ("see",)


@pytest.mark.parametrize(
    ("written", "comment"),
    [
        ("AdminComment=  StdErr=/home/x ", ""),  # 24.11
        ("AdminComment= StdErr= StdIn=/dev/null ", ""),  # 26.05
        ("AdminComment= SystemComment=x  StdErr= ", ""),
        ("AdminComment=mine  StdErr=/home/x ", "mine"),
        ("AdminComment=mine StdErr= ", "mine"),
        ("AdminComment= see StdErr= ", " "),
    ],
)
def test_an_empty_comment_is_nobodys(said: dict[str, str], written: str, comment: str) -> None:
    """As somebody leaves it who types what the check prints; as each release shows it."""
    block = re.sub(r"AdminComment=.*?StdErr=\S*\s", written, said["foreign"])
    assert written in block
    facts = job_in(block, 11)
    assert facts is not None and facts.comments == (comment,)


def test_a_user_who_writes_like_slurm_is_unclear_himself(said: dict[str, str]) -> None:
    """HOSTILE 41: a job whose name holds line ends and every field."""
    assert job_in(said["hostile"], 12) is None
    answer = understood([said["hostile"], said["plain"]], {"12": "12", "10": "10"})
    assert answer.jobs.keys() == {"10"}
    assert answer.unclear == {"12"}


def test_parts_of_a_whole_are_known_by_their_labels(said: dict[str, str]) -> None:
    """A task of an array and a component by themselves; the whole array is not clear."""
    assert job_in(said["array"], 13) is None
    task = job_in(said["task"], 13)
    assert task is not None and (task.label, task.single, task.states) == ("13_3", True, frozenset({"PENDING"}))
    assert job_in(said["het"], 14) is None
    component = job_in(said["component"], 14)
    assert component is not None and (component.label, component.single) == ("14+0", False)


def test_several_nodes(said: dict[str, str]) -> None:
    """The memory of one node is not that of all."""
    facts = job_in(said["nodes"], 16)
    assert facts is not None
    assert (facts.single, facts.node_count) == (False, 2)
    assert facts.memory_on_node(1) == GIB


def test_no_limit_and_what_an_order_makes_of_it(said: dict[str, str]) -> None:
    unlimited, shortened = job_in(said["unlimited"], 17), job_in(said["shortened"], 18)
    assert unlimited is not None and (unlimited.limit, unlimited.end) == (None, None)
    assert shortened is not None and shortened.limit == 4_294_441_706 > ENDLESS_MINUTES
    assert granted_by_limit(shortened) is None and is_shortened(shortened)
    assert shortened.start is not None and shortened.end is not None and shortened.end > shortened.start


def test_what_does_not_run(said: dict[str, str]) -> None:
    for name, job, state in (("cancelled", 21, "CANCELLED"), ("held", 22, "PENDING")):
        facts = job_in(said[name], job)
        assert facts is not None and state in facts.states


def test_the_node_and_who_is_unknown(said: dict[str, str]) -> None:
    answer = understood([said["unknown"], said["node"]], {"4000000": "4000000"}, ("node1",))
    assert answer == JobAnswer({}, frozenset(), {"node1": 64}, extras={"node1": ""})


def test_without_its_marks_an_answer_is_incomplete() -> None:
    """HOSTILE 54: cut anywhere, and with marks of another run."""
    text = recorded("24.11", "scontrol.txt").decode("utf-8", "replace")
    end = text.rindex("scontrol: show hostnames mark14")
    for cut in (0, 10, len(text) // 2, end):
        assert between_marks(text[:cut], "mark", 14) is None
    assert between_marks(text, "mork", 14) is None
    assert between_marks(text, "mark", 14) is not None


def test_an_echo_is_not_needed() -> None:
    """A scontrol without readline prints its prompt and no echo."""
    text = "scontrol: mark0\nscontrol: JobId=7 JobName=x\nscontrol: mark1\nscontrol: \n"
    assert between_marks(text, "mark", 1) == ["scontrol: JobId=7 JobName=x\nscontrol: "]


@given(st.text(alphabet=st.sampled_from(list("abc=,:-+_() \n\t\x1b\"'\\{}0123456789")), max_size=80))
def test_no_name_of_a_job_changes_anothers_facts(name: str) -> None:
    """Whatever alice calls her job, its facts are the true ones or none, and bob's are the true ones."""
    before = blocks("24.11")["plain"]
    block = before.replace("JobName=wrap", f"JobName=wrap{name} EndTime=1\nJobId=10 UserId=root(0)", 1)
    true = job_in(before, 10)
    answer = understood([block, before.replace("JobId=10", "JobId=11", 1)], {"10": "10", "11": "11"})
    assert "10" not in answer.jobs
    assert true is not None and answer.jobs["11"].end == true.end
    assert answer.jobs["11"].uid == true.uid


def test_marks_are_never_the_same(tmp_path: Path) -> None:
    """Nobody can write one into the name of a job beforehand. And no answer at all is said to be none."""
    script = tmp_path / "scontrol"
    script.write_text(f"#!/bin/sh\ncat >>{tmp_path}/asked\necho Unable to contact slurm controller >&2\nexit 1\n")
    os.chmod(script, 0o755)
    for _ in range(2):
        with pytest.raises(PoolUnreachable, match="Unable to contact"):
            ask(SlurmCommands(str(tmp_path), 5.0), {"17": "17"})
    lines = (tmp_path / "asked").read_text().splitlines()
    marks = {line.split()[-1] for line in lines if "hostnames" in line}
    assert len(marks) == 4
    assert all(len(mark) > 20 and mark.isalnum() for mark in marks)
    assert questions(["show job 17_3", "show node n1"], "m") == (
        "show hostnames m0\nshow job 17_3\nshow hostnames m1\nshow node n1\nshow hostnames m2\n"
    )


def test_many_jobs_are_asked_for_in_several_runs(tmp_path: Path) -> None:
    """Each has a time limit of its own; every answer is its own job's."""
    slurm = MadeUpScontrol(str(tmp_path), sys.executable, blocks("24.11")["plain"])
    numbers = range(1000, 1000 + 2 * TOGETHER)
    for number in numbers:
        slurm.job(number, number, 1_795_248_000, 1_795_248_000 + number, {})
    answer = ask(SlurmCommands(str(tmp_path), 30.0), {str(number): str(number) for number in numbers}, ("n1",))
    assert {job: (facts.number, facts.uid) for job, facts in answer.jobs.items()} == {
        str(number): (number, number) for number in numbers
    }
    assert (answer.cpus, answer.unclear) == ({"n1": 64}, frozenset())
    assert [sum(line.startswith("show hostnames") for line in call) - 1 for call in slurm.calls()] == [64, 64, 1]
    assert slurm.complaints() == ""

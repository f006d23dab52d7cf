"""Jobs out of the lines of plain squeue, as real ones printed them; and AdminComments out of those of scontrol."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.admin_comment import published_in
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import JobAnswer
from drainwise.slurm.jobs.squeue_lines import FIELDS, RUN_FIELDS, jobs_of_lines
from drainwise.slurm.jobs.values import COMPLETING, minutes_in, waiting_tasks
from drainwise.slurm.pool import old_release
from drainwise.slurm.pool.old_release import texts_in
from whole_jobs import lines_of

from .recorded_cluster import START, VERSIONS, jobs, recorded

RUNS = (
    "1|1|N/A|N/A|1795339052|1795342652|100000|0|alice|atlas|RUNNING|None|3|1|node1|"
    "1:00:00|OK|cpu=3,mem=6G,node=1,billing=3|1|N/A|N/A|N/A|N/A|||(null)|0|main|(null)|"
)
ARRAY = (
    "11|11|1-5%1|N/A|1795346280|1795349880|100000|0|bob|cms|PENDING|Priority|2|1||"
    "10:00|OK|cpu=2,mem=4G,node=1|1|gres/gpu:a100:1,gres/fpga:2|N/A|N/A|N/A|node3|node[1-2]|maint|1G|main,short|a&b|[c*2]|"
)
ALONE = (
    "6|6|N/A|N/A|1795342652|1795346252|0|1|bob|cms|PENDING|Priority|2|3||"
    "1-00:00:00|NO|cpu=2,mem=8000M,node=2|4|N/A|gres:gpu:3|cpu=2,gres/fpga=1|N/A|||(null)|0|main|(null)|"
)


def test_what_is_used_of_a_job() -> None:
    one, array, alone = jobs_of_lines(f"{RUNS}\n{ARRAY}\n{ALONE}\n".encode())
    assert (one.label, one.user, one.account, one.cores, one.node) == ("1", "alice", "atlas", 3, "node1")
    assert (set(one.states), one.start, one.end, one.limit) == ({"RUNNING"}, 1795339052, 1795342652, 60)
    assert (one.memory, one.features, one.whole_nodes, one.odd) == (6 << 30, "", False, "")
    assert (array.array, array.task, array.tasks, array.at_once, array.node) == (11, None, 5, 1, "")
    assert (array.partitions, array.features, array.limit) == (("main", "short"), "a&b|[c*2]", 10)
    assert (alone.whole_nodes, alone.node_count, alone.priority, alone.limit) == (True, 2, 0, 1440)
    assert array.gres == (("fpga", 2), ("gpu", 1), ("gpu:a100", 1))
    assert (array.required, array.excluded, array.reservation, array.disk) == ("node3", "node[1-2]", "maint", 1024)
    # Of a job on two nodes: a part of its GPUs, and what two of its tasks want.
    assert (alone.gres, alone.ranks, one.gres, one.required, one.disk) == ((("fpga", 2), ("gpu", 2)), 4, (), "", 0)


def test_a_sentence_stands_for_its_word() -> None:
    """As 22.05 and 24.11 print them for jobs that wait for room in one of several partitions, and for a maintenance."""
    taken = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    for sentence, word in ((taken, "Resources"), ("ReqNodeNotAvail, UnavailableNodes:n1", "ReqNodeNotAvail")):
        (job,) = jobs_of_lines(ALONE.replace("Priority", sentence).encode())
        assert job.reason == word


def test_a_task_of_an_array() -> None:
    (task,) = jobs_of_lines(RUNS.replace("1|1|N/A", "18|17|2", 1).encode())
    assert (task.label, task.array, task.task, task.tasks) == ("17_2", 17, 2, 1)


@pytest.mark.parametrize(
    ("tasks", "count", "at_once"),
    [
        ("7", 1, None),
        ("1-20", 20, None),
        ("1-20%3", 20, 3),
        ("1-20%0", 20, None),
        ("1-20%²", 20, None),
        ("1-9:2", 5, None),
        ("1,3,10-12", 5, None),
        ("?", 1, None),
        ("1-2,...", 2, None),
    ],
)
def test_tasks_that_wait_together(tasks: str, count: int, at_once: int | None) -> None:
    assert waiting_tasks(tasks) == (count, at_once)


def test_a_held_job_without_cores_hides_no_other() -> None:
    """As 22.05 has it before it has looked at a job: any user can have such a job."""
    (job,) = jobs_of_lines(ALONE.replace("|2|3||", "|N/A|3||").encode())
    assert job.cores == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_written_lines_say_what_the_json_says(version: str) -> None:
    """Of the recorded cluster: those lines are written by a test, and read as real ones."""
    known = {job.number: job for job in jobs(version)}
    found = {job.number: job for job in jobs_of_lines(lines_of(known.values()).encode())}
    for number, job in known.items():
        states = frozenset({COMPLETING}) if COMPLETING in job.states else job.states
        assert found[number] == replace(job, states=states, name="", comment="", comments=())


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [
        ("1:00:00", 60),
        ("10:00", 10),
        ("2-03:04:05", 3064),
        ("UNLIMITED", None),
        ("49710-06:28:00", 71582788),
        ("INVALID", 1 << 31),  # a lease without end that was shortened
        ("x", None),
    ],
)
def test_limits(limit: str, minutes: int | None) -> None:
    assert minutes_in(limit) == minutes


@pytest.mark.parametrize("line", ["x", RUNS.partition("|")[2], RUNS.rpartition("|main")[0], "squeue: error", "|" * 30])
def test_another_line_is_an_incomplete_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable, match="no job"):
        jobs_of_lines(f"{RUNS}\n{line}\n".encode())


@pytest.mark.parametrize(
    ("place", "word"), [("|3|1|node1", f"|{2**31}|1|node1"), ("1795342652", "1" + "0" * 17), ("|3|1|", "|3|999999|")]
)
def test_odd_numbers_are_named(place: str, word: str) -> None:
    (job,) = jobs_of_lines(RUNS.replace(place, word).encode())
    assert job.odd


@given(st.lists(st.one_of(st.sampled_from(RUNS.split("|")), st.text(max_size=8)), min_size=len(FIELDS)))
def test_whatever_stands_there_is_a_job_or_an_incomplete_answer(words: list[str]) -> None:
    try:
        jobs_of_lines("|".join(words).encode("utf-8", "surrogatepass"))
    except PoolUnreachable as fault:
        assert "no job" in str(fault)


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_lines_of_runs(version: str) -> None:
    """The typed fields of each kind of job."""
    states = {job.number: job for job in jobs_of_lines(recorded(version, "runs.txt"), RUN_FIELDS[:-1])}
    start = START[version]
    one, asked, endless = states[1], states[2], states[3]
    assert (one.label, one.states, one.start, one.end) == ("1", frozenset({"RUNNING"}), start, start + 3600)
    assert (one.single, one.array) == (True, None)
    assert asked.end == start + 732
    assert endless.end is None
    assert (states[11].label, states[11].array, states[4].label) == ("4_1", 4, "4_2")
    assert states[5].node_count == 2
    assert (states[8].het, states[9].het) == (8, 8)
    assert (states[6].states, states[6].restarts) == (frozenset({"COMPLETING"}), 1)
    assert all(job.can_requeue for job in states.values())


@pytest.mark.parametrize("line", ["x", "17", "17|17|N/A|N/A|RUNNING|1|2|1|1|1|0|9|", "a|b|c|d|e|f|g|h|i|j|k|l|m|"])
def test_a_line_that_is_no_run_is_an_incomplete_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable):
        jobs_of_lines(line.encode(), RUN_FIELDS)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_comment_is_found(version: str) -> None:
    """A report of a node's, as scontrol prints it."""
    found, unclear = texts_in(recorded(version, "scontrol.txt"), [10])
    (comment,) = found[10].comments
    assert published_in(comment) is not None
    assert not unclear


FORGED = b'JobId=17 JobName=x AdminComment={"drainwise":1}  \n'


def test_a_forged_line_makes_its_victim_unclear() -> None:
    """HOSTILE 43: before or behind the true one; who spells a comment in its own name is unclear itself."""
    true = b"JobId=17 JobName=pilot UserId=alice(1001) AdminComment=mine  WorkDir=/home\n"

    def seen(answer: bytes) -> tuple[dict[int, tuple[str, ...]], set[int]]:
        found, unclear = texts_in(answer, [17])
        return {job: texts.comments for job, texts in found.items() if texts.comments}, unclear

    for answer in (FORGED + true, true + b"JobId=18 JobName=a\n" + FORGED):
        assert seen(answer) == ({}, {17})
    assert seen(true) == ({17: ("mine",)}, set())
    assert seen(true.replace(b"pilot", b"a AdminComment=b")) == ({}, {17})


def test_who_is_unclear_is_asked_alone(mocker: MockerFixture) -> None:
    """Before 23.02: its own answer counts, of which an empty comment is none; the others keep what their lines say."""
    lines = FORGED + b"JobId=17 JobName=x\nJobId=18 JobName=y UserId=a(1) AdminComment=its  WorkDir=/h\n"
    listed = [SlurmJob(number, states=frozenset({"RUNNING"})) for number in (16, 17, 18)]
    alone = {"17": SlurmJob(17, comments=("mine",), name="pilot", comment="c"), "16": SlurmJob(16, comments=("",))}
    ask = mocker.patch.object(old_release, "ask", autospec=True, return_value=JobAnswer(alone, frozenset(), {}))
    commands = mocker.create_autospec(SlurmCommands, instance=True)
    found = old_release.with_details(listed, commands, lambda *command: lines)
    ask.assert_called_once_with(commands, {"17": "17"})
    assert [(job.comments, job.name, job.comment) for job in found] == [
        ((), "", ""),
        (("mine",), "pilot", "c"),
        (("its",), "y", ""),
    ]
    assert old_release.with_details([], commands, lambda *command: pytest.fail("nothing runs")) == []


@pytest.mark.parametrize(("forged", "is_asked"), [(256, True), (257, False)])
def test_where_many_are_unclear_the_json_of_all_tells(mocker: MockerFixture, forged: int, is_asked: bool) -> None:
    lines = b"".join(2 * FORGED.replace(b"17", b"%d" % number) for number in range(1, forged + 1))
    listed = [SlurmJob(number, states=frozenset({"RUNNING"})) for number in range(1, forged + 1)]
    ask = mocker.patch.object(old_release, "ask", autospec=True, return_value=JobAnswer({}, frozenset(), {}))
    asked: list[str] = []

    def answer_to(*command: str) -> bytes:
        asked.append(command[0])
        return lines if command[0] == "scontrol" else b'{"jobs": [], "errors": []}'

    old_release.with_details(listed, mocker.create_autospec(SlurmCommands, instance=True), answer_to)
    assert (ask.called, asked) == (is_asked, ["scontrol"] if is_asked else ["scontrol", "squeue"])

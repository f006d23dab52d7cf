"""Jobs out of the lines of plain squeue, as real ones printed them; and AdminComments out of those of scontrol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import PoolUnreachable
from drainwise.slurm.admin_comment import published_in
from drainwise.slurm.job_comments import comments_in
from drainwise.slurm.job_lines import FIELDS, jobs_of_lines, minutes_in

from .recorded_cluster import VERSIONS, recorded

RUNS = (
    "1|1|N/A|N/A|alice|atlas|RUNNING|None|3|1|node1|1795339052|1795342652|"
    "1:00:00|0|100000|OK|cpu=3,mem=6G,node=1,billing=3|main|(null)|"
)
ARRAY = (
    "11|11|1-5%1|N/A|bob|cms|PENDING|Priority|2|1||1795346280|1795349880|"
    "10:00|0|100000|OK|cpu=2,mem=4G,node=1|main,short|a&b|[c*2]|"
)
ALONE = (
    "6|6|N/A|N/A|bob|cms|PENDING|Priority|2|2||1795342652|1795346252|"
    "1-00:00:00|1|0|NO|cpu=2,mem=8000M,node=2|main|(null)|"
)


def test_what_is_used_of_a_job() -> None:
    one, array, alone = jobs_of_lines("\n".join([RUNS, ARRAY, ALONE, ""]).encode())
    assert (one.label, one.user, one.account, one.cores, one.node) == ("1", "alice", "atlas", 3, "node1")
    assert (set(one.states), one.start, one.end, one.limit) == ({"RUNNING"}, 1795339052, 1795342652, 60)
    assert (one.memory, one.features, one.whole_nodes, one.odd) == (6 << 30, "", False, "")
    assert (array.array, array.task, array.tasks, array.at_once, array.node) == (11, None, 5, 1, "")
    assert (array.partitions, array.features, array.limit) == (("main", "short"), "a&b|[c*2]", 10)
    assert (alone.whole_nodes, alone.node_count, alone.priority, alone.limit) == (True, 2, 0, 1440)


def test_a_task_of_an_array() -> None:
    (task,) = jobs_of_lines(RUNS.replace("1|1|N/A", "18|17|2", 1).encode())
    assert (task.label, task.array, task.task, task.tasks) == ("17_2", 17, 2, 1)


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
def test_another_line_is_half_an_answer(line: str) -> None:
    with pytest.raises(PoolUnreachable, match="no job"):
        jobs_of_lines(f"{RUNS}\n{line}\n".encode())


@pytest.mark.parametrize(
    ("place", "word"), [("|3|1|node1", f"|{2**31}|1|node1"), ("1795342652", "1" + "0" * 17), ("|3|1|", "|3|999999|")]
)
def test_odd_numbers_are_named(place: str, word: str) -> None:
    (job,) = jobs_of_lines(RUNS.replace(place, word).encode())
    assert job.odd


@given(st.lists(st.one_of(st.sampled_from(RUNS.split("|")), st.text(max_size=8)), min_size=len(FIELDS)))
def test_whatever_stands_there_is_a_job_or_half_an_answer(words: list[str]) -> None:
    try:
        jobs_of_lines("|".join(words).encode("utf-8", "surrogatepass"))
    except PoolUnreachable as fault:
        assert "no job" in str(fault)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_comment_is_found(version: str) -> None:
    """A report of a node's, as scontrol prints it."""
    comments, unclear = comments_in(recorded(version, "scontrol.txt"), [10])
    assert published_in(comments[10]) is not None
    assert not unclear


FORGED = b'JobId=17 JobName=x AdminComment={"drainwise":1}  \n'


def test_a_forged_line_makes_its_victim_unclear() -> None:
    """HOSTILE 43: before or behind the true one; who spells a comment in its own name is unclear itself."""
    true = b"JobId=17 JobName=pilot UserId=alice(1001) AdminComment=mine  WorkDir=/home\n"
    for answer in (FORGED + true, true + b"JobId=18 JobName=a\n" + FORGED):
        assert comments_in(answer, [17]) == ({}, {17})
    assert comments_in(true, [17]) == ({17: "mine"}, set())
    assert comments_in(true.replace(b"pilot", b"a AdminComment=b"), [17]) == ({}, {17})

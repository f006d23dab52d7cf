"""The mark of orders in a job's AdminComment: what is written and read, who carries it, and what is left to others."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import FRESH, PilotReport
from drainwise.slurm.jobs.admin_comment import (
    Published,
    comment_text,
    is_ours,
    published_in,
    without_directories_text,
)
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.order_mark import OrderMarks, carriers_of, entries_in, marked, unmarked, with_entry
from drainwise.slurm.jobs.publish import batch
from made_up_scontrol import MadeUpScontrol, recorded_job

from .recorded_cluster import recorded
from .test_snapshot import RUNNING

T0 = 1795270000
REPORT = comment_text(
    Published(
        4294967294,
        T0,
        "n" * 64,
        PilotReport(
            T0,
            used_cpu=1023.125,
            last_job_start=T0,
            first_exp_job_end=T0,
            last_exp_job_end=T0,
            last_max_job_end=T0,
            add_uncom_time=1e15,
            add_final_exp_waste=1e15,
            priority_factor=-(2**31),
            can_postpone_last_job=True,
        ),
        FRESH,
    )
)


@given(
    st.lists(st.tuples(st.integers(1, 2**32 - 2), st.integers(0, 4102444800)), min_size=1, max_size=40),
    st.sampled_from(["", REPORT, without_directories_text(17, T0, "n1")]),
)
def test_what_is_marked_is_read_and_the_report_is_as_it_was(changes: list[tuple[int, int]], comment: str) -> None:
    """The newest entries, one for each job; never longer than a comment may be."""
    now = comment
    for job, end in changes:
        now = marked(now, with_entry(entries_in(now), str(job), end))
        assert entries_in(now)[str(job)] == str(end)
    assert len(entries_in(now)) <= 16 and len(now) <= 1024 and is_ours(now)
    assert batch([("17", now)])
    assert unmarked(now) == comment or (not comment and published_in(now) is None)
    assert published_in(now) == published_in(comment)
    assert marked(now, {}) == (comment or '{"drainwise":1}')


@pytest.mark.parametrize("comment", ["", "see", 'x,"orders":"17:1"}', '{"drainwise":1,"orders":"17"}', REPORT])
def test_what_is_no_mark_of_ours_says_nothing(comment: str) -> None:
    assert entries_in(comment) == {}


@pytest.mark.parametrize("spelled", ['{"drainwise":', '{"drainwise":1,"job":1', f'{{"drainwise":1,"x":"{"a" * 990}"}}'])
def test_a_comment_that_a_user_spells_in_a_name_can_be_marked(spelled: str) -> None:
    """Then two stand there, and both sides pass the job over; it does not end the agent."""
    now = marked(spelled, {"17": str(T0)})
    assert entries_in(now) == {"17": str(T0)}
    assert batch([("17", now)])


def test_a_long_text_that_looks_like_a_mark_is_read_at_once() -> None:
    """Where each part could be taken in two ways it would take for ever."""
    spelled = '{"drainwise":1,"orders":"1:' + "1111111111:" * 80
    assert entries_in(f"{spelled}x") == {}


def test_who_carries_the_mark_of_a_node() -> None:
    """The running job with the smallest number, alone on its node, with no comment or one of ours, that can be told."""
    jobs = [
        replace(RUNNING, number=30),
        replace(RUNNING, number=21, comments=(REPORT,)),
        replace(RUNNING, number=20, comments=("see",)),
        replace(RUNNING, number=19, node_count=2),
        replace(RUNNING, number=18, het=18),
        replace(RUNNING, number=17, comments=(without_directories_text(17, RUNNING.start or 0, "n1"),)),
        replace(RUNNING, number=16, states=frozenset({"PENDING"}), node=""),
        replace(RUNNING, number=15, states=frozenset({"RUNNING", "COMPLETING"})),
        replace(RUNNING, number=14, node="n2"),
    ]
    found = carriers_of(jobs)
    assert [one.number for one in found["n1"]] == [21, 30]
    assert [one.number for one in found["n2"]] == [14]


@pytest.fixture
def cluster(tmp_path: Path) -> MadeUpScontrol:
    """A slurmctld with jobs 17 and 18."""
    template = recorded_job(recorded("24.11", "scontrol.txt").decode("utf-8", "replace"), 10)
    made = MadeUpScontrol(str(tmp_path / "bin"), sys.executable, template)
    for number in (17, 18):
        made.job(number, 1000, T0, T0 + 3600, {})
    return made


def marks_of(cluster: MadeUpScontrol) -> OrderMarks:
    made = OrderMarks(SlurmCommands(cluster.bin_dir, 10))
    made.learn([replace(RUNNING, number=number) for number in (18, 17)])
    return made


def test_a_node_is_marked_in_the_comment_of_its_first_job_that_is_still_there(cluster: MadeUpScontrol) -> None:
    marks = marks_of(cluster)
    assert (marks.has_carrier("n1"), marks.has_carrier("n2"), marks.entry("n1", 5)) == (True, False, None)
    assert marks.write("n1", 5, T0 + 600) == ""
    assert (marks.entry("n1", 5), marks.entry("n1", 6), marks.entry("n2", 5)) == (str(T0 + 600), None, None)
    assert (entries_in(cluster.comment(17)), cluster.comment(18)) == ({"5": str(T0 + 600)}, "")
    cluster.end(17)
    assert marks.write("n1", 6, T0 + 700) == ""
    assert entries_in(cluster.comment(18)) == {"6": str(T0 + 700)}
    assert (marks.entry("n1", 5), marks.entry("n1", 6)) == (None, str(T0 + 700))


def test_few_of_a_nodes_jobs_are_tried(cluster: MadeUpScontrol) -> None:
    """The jobs that end are gone from the next snapshot."""
    for number in (19, 20):
        cluster.job(number, 1000, T0, T0 + 3600, {})
    for number in (17, 18, 19):
        cluster.end(number)
    for numbers, is_marked in (((17, 18, 19, 20), False), ((18, 19, 20), True)):
        marks = OrderMarks(SlurmCommands(cluster.bin_dir, 10))
        marks.learn([replace(RUNNING, number=number) for number in numbers])
        assert marks.write("n1", 5, T0 + 600) == ""
        assert bool(cluster.comment(20)) is is_marked


@pytest.mark.parametrize("mode", ["down", "refuse"])
def test_a_mark_that_cannot_be_written_is_told_and_one_that_nobody_carries_is_not(
    cluster: MadeUpScontrol, mode: str
) -> None:
    """The node's agent looks some time later anyhow."""
    marks = marks_of(cluster)
    cluster.mode(mode)
    assert marks.write("n1", 5, T0 + 600).startswith("n1 is not marked: ")
    assert (marks.entry("n1", 5), marks.write("n2", 5, T0 + 600)) == (None, "")

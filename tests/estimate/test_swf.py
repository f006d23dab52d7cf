"""A real log is played: jobs are asked for with what is known then, and the estimate comes closer than the request."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.estimate.records.record import NOT_A_ROW, lines_in
from drainwise_tasks.estimate.records.swf_rows import NO_REQUEST, NO_RUN_TIME
from drainwise_tasks.estimate.swf import AFTER, LoggedJob, compare, read_swf

EXCERPT = Path(__file__).parents[2] / "scripts" / "local_demo" / "lcg-excerpt.swf"


def read(text: str) -> tuple[list[LoggedJob], Counter[str]]:
    skips: Counter[str] = Counter()
    return list(read_swf(lines_in(io.BytesIO(text.encode()), skips), skips)), skips


def row(run: object = 60, requested: object = 600, submit: object = 1000, wait: object = -1) -> str:
    """One line of a log."""
    return f"1 {submit} {wait} {run} 1 -1 -1 1 {requested} -1 1 7 3 -1 -1 -1 -1 -1\n"


def test_columns() -> None:
    """Submit and a known wait make the start; group, user and request the kind; further columns do no harm."""
    found, skips = read("; a comment\n" + row() + row(wait=50) + row().strip() + " {1,2} q\n")
    first = LoggedJob(("3", "7", "600"), 1000, 60, 600)
    assert found == [first, first._replace(start=1050), first] and not skips


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (row(run=-1), NO_RUN_TIME),
        (row(run="nan"), NOT_A_ROW),
        (row(run=-7), "end before start"),
        (row(requested=-1), NO_REQUEST),
        (row(requested=0), NO_REQUEST),
        (row(requested="nan"), NOT_A_ROW),
        (row(submit=-1), NOT_A_ROW),
        (row(wait="nan"), NOT_A_ROW),
        ("1 2 3\n", NOT_A_ROW),
        (row(run="x"), NOT_A_ROW),
    ],
)
def test_wrong_rows_are_counted(line: str, reason: str) -> None:
    """Each has its reason and costs itself alone."""
    found, skips = read(row() + line)
    assert len(found) == 1 and skips == {reason: 1}


def test_nothing_is_known_before_it_has_ended() -> None:
    """Six jobs start together: all are taken at their request, since nobody has ended; a later one is estimated.

    By a tenth, by which ages are told apart.
    """
    same = LoggedJob(("g", "u", "600"), 0, 50, 600)
    together = compare([same] * 6)[0]
    assert together.estimated.ratio(0.01) == together.asked.ratio(0.01) == pytest.approx(12, rel=0.01)
    later = compare([*[same] * 6, same._replace(start=50)])[0]
    assert later.estimated.ratio(0.01) == pytest.approx(1, rel=0.1) and later.estimated.jobs == 7


def test_those_that_run_are_known() -> None:
    """Of 35 jobs that started together five short ones have ended: a job that starts now is one of the others."""
    short, long = (LoggedJob(("g", "u", "90000"), 0, seconds, 90_000) for seconds in (60, 5000))
    start = compare([*[short] * 5, *[long] * 30, long._replace(start=3000)])[0]
    assert start.estimated.jobs == 36
    best = start.estimated.ratio(0.01)
    assert best is not None and best < 8, "by the short ones alone it would be 83, by the request 18"


@given(
    st.lists(
        st.builds(
            LoggedJob,
            st.tuples(st.sampled_from("ab"), st.sampled_from("xy")),
            st.integers(0, 9000),
            st.integers(0, 30_000),
            st.integers(1, 30_000),
        ),
        max_size=30,
    )
)
def test_each_job_is_asked_as_often_as_it_lives(jobs: list[LoggedJob]) -> None:
    """At its start, and at each moment that it outlives; request and estimate are held against the same jobs."""
    for at in compare(jobs):
        alive = sum(1 for job in jobs if not at.after or job.seconds > at.after)
        assert at.asked.jobs == at.estimated.jobs == alive


def test_on_a_real_log_the_estimate_is_closer() -> None:
    """The excerpt of the LHC Computing Grid's log in this repository: closer in the middle and at nine in ten."""
    found, skips = read(EXCERPT.read_text())
    assert len(found) > 200 and not skips
    start, *later = compare(found)
    for share in (0.5, 0.9):
        asked, estimated = start.asked.ratio(share), start.estimated.ratio(share)
        assert asked is not None and estimated is not None and estimated < asked
    assert [one.after for one in later] == list(AFTER[1:])

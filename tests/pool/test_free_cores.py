"""Free cores count as far as the jobs that wait could use them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.facts import Account
from drainwise.pool.free_cores import Hole, WaitingJobs, usable_cores, waiting_jobs


@pytest.mark.parametrize(
    ("holes", "waiting", "usable"),
    [
        ([Hole(3, True)] * 10, [WaitingJobs(8, 5)], 0),
        ([Hole(24, True)], [WaitingJobs(8, 5)], 24),
        ([Hole(24, True)], [WaitingJobs(8, 2)], 16),
        ([Hole(23, True)], [WaitingJobs(8, 5)], 16),
        ([Hole(23, True)], [WaitingJobs(8, 5), WaitingJobs(1, 100)], 23),
        ([Hole(8, False), Hole(8, False)], [WaitingJobs(1, 100)], 2),
        ([Hole(8, False)], [WaitingJobs(8, 1)], 8),
        ([Hole(9, True), Hole(8, True)], [WaitingJobs(8, 1), WaitingJobs(9, 1)], 17),
        ([], [WaitingJobs(8, 1)], 0),
        ([Hole(8, True)], [], 0),
    ],
    ids=[
        "too small", "whole node", "few jobs", "rest", "two kinds", "static slots", "static fits", "tight", "full",
        "nobody",
    ],
)  # fmt: skip
def test_jobs_are_counted_where_they_fit(holes: list[Hole], waiting: list[WaitingJobs], usable: int) -> None:
    assert usable_cores(holes, waiting) == usable


@given(
    st.lists(st.builds(Hole, st.integers(0, 64), st.booleans()), max_size=8),
    st.lists(st.builds(WaitingJobs, st.integers(1, 32), st.integers(0, 9)), max_size=4),
)
def test_never_more_than_there_is_or_is_wanted(holes: list[Hole], waiting: list[WaitingJobs]) -> None:
    usable = usable_cores(holes, waiting)
    assert 0 <= usable <= min(sum(hole.cores for hole in holes), sum(one.cores * one.jobs for one in waiting))


@pytest.mark.parametrize(
    ("in_use", "owed", "wanted", "per_job", "found"),
    [
        (0.0, 16.0, 24.0, 8.0, [WaitingJobs(8, 2)]),
        (0.1, 16.1 - 1e-12, 24.0, 8.0, [WaitingJobs(8, 2)]),
        (0.0, 10.0, 10.0, 2.5, [WaitingJobs(3, 3)]),
        (0.0, 16.0, 16.0, 8.0 + 1e-9, [WaitingJobs(8, 2)]),
        (0.0, 7.0, 24.0, 8.0, []),
        (9.0, 8.0, 24.0, 1.0, []),
    ],
    ids=["whole jobs", "a difference of floats", "an average", "a mean of floats", "less than a job", "over quota"],
)
def test_whole_jobs_wait_that_their_account_is_owed_cores_for(
    in_use: float, owed: float, wanted: float, per_job: float, found: list[WaitingJobs]
) -> None:
    assert waiting_jobs([Account("a", in_use, owed, wanted, 1.0, per_job)]) == found

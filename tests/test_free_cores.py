"""Free cores count as far as the jobs that wait could use them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.free_cores import Hole, Waiting, usable_cores


@pytest.mark.parametrize(
    ("holes", "waiting", "usable"),
    [
        ([Hole(3, True)] * 10, [Waiting(8, 5)], 0),
        ([Hole(24, True)], [Waiting(8, 5)], 24),
        ([Hole(24, True)], [Waiting(8, 2)], 16),
        ([Hole(23, True)], [Waiting(8, 5)], 16),
        ([Hole(23, True)], [Waiting(8, 5), Waiting(1, 100)], 23),
        ([Hole(8, False), Hole(8, False)], [Waiting(1, 100)], 2),
        ([Hole(8, False)], [Waiting(8, 1)], 8),
        ([Hole(9, True), Hole(8, True)], [Waiting(8, 1), Waiting(9, 1)], 17),
        ([], [Waiting(8, 1)], 0),
        ([Hole(8, True)], [], 0),
    ],
    ids=[
        "too small", "whole node", "few jobs", "rest", "two kinds", "static slots", "static fits", "tight", "full",
        "nobody",
    ],
)  # fmt: skip
def test_jobs_are_counted_where_they_fit(holes: list[Hole], waiting: list[Waiting], usable: int) -> None:
    assert usable_cores(holes, waiting) == usable


@given(
    st.lists(st.builds(Hole, st.integers(0, 64), st.booleans()), max_size=8),
    st.lists(st.builds(Waiting, st.integers(1, 32), st.integers(0, 9)), max_size=4),
)
def test_never_more_than_there_is_or_is_wanted(holes: list[Hole], waiting: list[Waiting]) -> None:
    usable = usable_cores(holes, waiting)
    assert 0 <= usable <= min(sum(hole.cores for hole in holes), sum(one.cores * one.jobs for one in waiting))

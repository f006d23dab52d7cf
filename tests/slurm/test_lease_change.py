"""When a lease counts as shortened, and which ends make one be seen as such."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ActionRefused
from drainwise.slurm import ENDLESS
from drainwise.slurm.jobs.job import (
    SlurmJob,
    granted_by_limit,
    is_shortened,
    lease_end,
    shortened_end,
    sooner_end,
    steps_to,
)
from drainwise.slurm.jobs.values import ENDLESS_MINUTES

T0 = 1795270000


def run(end: int | None, limit: int | None = None) -> SlurmJob:
    return SlurmJob(17, start=T0, end=end, limit=limit)


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_a_shortened_lease_is_seen_to_be_shortened_and_never_ends_later(rest: int, lease: int) -> None:
    """Whatever the deadline: at most two seconds before it, never after it, and no lease of that length."""
    end, deadline = T0 + lease, T0 + rest
    if deadline > end:
        with pytest.raises(ActionRefused):
            sooner_end(T0, end, deadline)
        return
    sooner = sooner_end(T0, end, deadline)
    assert deadline - 2 <= sooner <= deadline
    assert sooner < end
    # What Slurm makes of the time limit: the whole minutes that the lease needs now.
    assert is_shortened(run(sooner, -(-(sooner - T0) // 60)))


@pytest.mark.parametrize("limit", [1, 60, 1440])
def test_an_ordinary_lease_is_not_shortened(limit: int) -> None:
    assert not is_shortened(run(T0 + limit * 60, limit))
    assert not is_shortened(run(T0 + ENDLESS))


def test_when_a_lease_is_shortened() -> None:
    """An end before the granted one; not the same, not a later one, not an unknown one."""
    granted = T0 + 600
    assert shortened_end(run(T0 + 600), granted) is None
    assert shortened_end(run(T0 + 601), granted) is None
    assert shortened_end(run(T0 + 599), granted) == T0 + 599
    assert shortened_end(run(None), granted) is None
    assert shortened_end(run(T0 + 599), None) == T0 + 599
    assert shortened_end(run(T0 + 365 * 86400), None) is None


def test_a_lease_without_end() -> None:
    """Slurm gives it a year; with an order to it, a limit of thousands of years."""
    endless, shortened = run(T0 + ENDLESS), run(T0 + 3600, ENDLESS_MINUTES + 5)
    assert (lease_end(endless), is_shortened(endless), granted_by_limit(endless)) == (None, False, None)
    assert (lease_end(shortened), is_shortened(shortened), granted_by_limit(shortened)) == (T0 + 3600, True, None)


def test_a_suspended_run_whose_end_moved_is_not_shortened() -> None:
    """Slurm moves the end by the time of the suspension, which is no whole minute, and leaves the limit."""
    assert not is_shortened(run(T0 + 3617, 60))


@given(st.integers(0, 10**6), st.integers(-600, 600))
def test_an_end_is_reached_without_a_change_of_the_limit(lease: int, beyond: int) -> None:
    """By Slurm's own rule for a new end, as it was measured; and never past what was wanted."""
    end, limit = T0 + lease, 100
    wanted = end + beyond
    for step in steps_to(end, wanted):
        assert min(end, wanted) <= step <= max(end, wanted)
        limit += int((step - end + 30) / 60)
        end = step
    assert (end, limit) == (wanted, 100)

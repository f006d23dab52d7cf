"""A clock that is set changes no duration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.workload import running_since

from .work import T0, final_waste, payload, uncommitted, workload_of

steps = st.integers(-1_000_000, 1_000_000)


@given(steps, st.lists(st.integers(0, 5000), max_size=10))
def test_the_sums_stay_and_the_times_move(step: int, starts: list[int]) -> None:
    """Used cores, uncommitted time and final waste are the same; every time lies so much later."""
    running = [running_since(payload(f"p{n}", cores=n + 1, expected=500 + n), T0 + at) for n, at in enumerate(starts)]
    workload = workload_of(*running)
    moved = workload.moved(step)
    assert (moved.used, uncommitted(moved)) == (workload.used, uncommitted(workload))
    assert final_waste(moved, 100) == final_waste(workload, 100)
    assert moved.last_start == workload.last_start + step
    assert moved.first_end == (None if workload.first_end is None else workload.first_end + step)
    assert moved.last_max_end == (None if workload.last_max_end is None else workload.last_max_end + step)
    assert list(moved.running) == list(workload.running)


@given(steps)
def test_a_lease_is_as_long_as_before(step: int) -> None:
    """With or without a known end."""
    assert Lease(8, T0, T0 + 100).moved(step) == Lease(8, T0 + step, T0 + 100 + step)
    assert Lease(8, T0, None).moved(step) == Lease(8, T0 + step, None)

"""A payload that overruns gets an estimate that can still come true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.estimates import move_overdue, next_estimate
from drainwise.pilot.decide.workload import RunningPayload, Workload, running_since

from .work import T0, payload, workload_of, workloads

moments = st.floats(T0 - 1e5, T0 + 1e8)


@given(moments, moments, moments, moments)
def test_an_estimate_is_never_in_the_past(start: float, expected: float, maximum: float, now: float) -> None:
    """Whatever the times, also with a clock that was set back: after now, and at most the maximum or a second away."""
    found = next_estimate(RunningPayload(payload("p"), start, expected, maximum), now)
    assert now < found <= max(maximum, now + 1)


def test_it_moves_by_a_tenth_and_at_least_a_minute() -> None:
    """Who ran for ten hours is given one more, who ran for a minute another one, and nobody more than the maximum."""
    assert next_estimate(RunningPayload(payload("p"), T0, T0 + 60, T0 + 9e4), T0 + 60) == T0 + 120
    assert next_estimate(RunningPayload(payload("p"), T0, T0 + 36000, T0 + 9e4), T0 + 36000) == T0 + 39600
    assert next_estimate(RunningPayload(payload("p"), T0, T0 + 36000, T0 + 37000), T0 + 36000) == T0 + 37000


def test_one_that_lies_ahead_is_kept() -> None:
    """Nothing is touched before its time."""
    assert next_estimate(RunningPayload(payload("p"), T0, T0 + 60, T0 + 600), T0 + 59) == T0 + 60


@given(workloads(whole=False), st.floats(0, 20_000))
def test_afterwards_no_estimate_has_passed(workload: Workload, later: float) -> None:
    """All that were overdue moved, nobody else did, and it is said whether anybody was."""
    now = T0 + later
    before = dict(workload.running)
    overdue = {name for name, running in before.items() if running.expected_end <= now}
    assert move_overdue(workload, now) == bool(overdue)
    assert all(running.expected_end > now for running in workload.running.values())
    assert {name for name, running in workload.running.items() if running != before[name]} == overdue


def test_a_long_payload_moves_rarely() -> None:
    """From an estimate of a minute to a day at its maximum takes a few dozen reports, not a thousand."""
    workload = workload_of(running_since(payload("p", maximum=86400, expected=60), T0))
    now, moves = float(T0), 0
    while (end := workload.first_end) is not None and end < T0 + 86400:
        now = end
        moves += move_overdue(workload, now)
    assert moves < 80

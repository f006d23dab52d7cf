"""When the next cycle begins."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.agent.loop import LONGEST_PAUSE, rest


def test_a_cycle_begins_each_period() -> None:
    assert rest(60, 0, seconds=5) == 55


def test_a_cycle_that_takes_longer_than_the_period_leaves_a_rest() -> None:
    assert rest(60, 0, seconds=100) == 6


def test_pauses_double_from_one_period_to_the_longest() -> None:
    assert [rest(60, failures, seconds=8) for failures in range(1, 7)] == [60, 120, 240, 480, 600, 600]


@given(st.floats(1, 86400), st.integers(0, 10_000), st.floats(0, 10_000))
def test_it_is_never_beyond_the_bounds(period: float, failures: int, seconds: float) -> None:
    assert 0 < rest(period, failures, seconds) <= max(period, LONGEST_PAUSE)

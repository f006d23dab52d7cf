"""ETE: last success, else the rule's moving average, else what was stated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.choice.work import SHORTEST, UNKNOWN, WEIGHT, MovingAverage, expected_time


def test_the_order_of_what_is_believed() -> None:
    average = MovingAverage(7.0, 3)
    assert expected_time(5.0, average, 9.0) == 5.0
    assert expected_time(None, average, 9.0) == 7.0
    assert expected_time(None, MovingAverage(), 9.0) == 9.0
    assert expected_time(None, None, None) == UNKNOWN
    assert expected_time(0.0, None, None) == SHORTEST


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=WEIGHT))
def test_up_to_its_weight_it_is_the_mean_of_all(times: list[float]) -> None:
    average = MovingAverage()
    for seconds in times:
        average.add(seconds)
    assert average.seconds == pytest.approx(sum(times) / len(times), abs=1e-6)


def test_old_times_fade() -> None:
    """A rule that changes is believed to have changed after some hundred jobs."""
    average = MovingAverage()
    for _ in range(10_000):
        average.add(1000.0)
    for _ in range(500):
        average.add(10.0)
    assert 10.0 < average.seconds < 20.0 and average.weight == WEIGHT

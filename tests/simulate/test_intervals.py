"""Confidence intervals are those of the textbooks, and a quantile is a value that was seen."""

from __future__ import annotations

import math
import random

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from drainwise_simulate.intervals import Interval, mean, quantile, ratio, student


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 99, 1000, 20_000])
@pytest.mark.parametrize("share", [0.6, 0.9, 0.975, 0.995])
def test_student(freedom: int, share: float) -> None:
    """As scipy has it; beyond ten thousand degrees of freedom the normal distribution is as good."""
    assert student(share, freedom) == pytest.approx(
        scipy.stats.t.ppf(share, freedom), rel=1e-12 if freedom < 20_000 else 1e-4
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_the_interval_of_a_mean(values: list[float]) -> None:
    """Student's, as scipy has it."""
    found = mean(values)
    assert found.low is not None and found.high is not None
    spread = scipy.stats.sem(values)
    if spread > 1e-6:
        low, high = scipy.stats.t.interval(0.95, len(values) - 1, loc=sum(values) / len(values), scale=spread)
        assert found.low == pytest.approx(low, abs=1e-6, rel=1e-9)
        assert found.high == pytest.approx(high, abs=1e-6, rel=1e-9)


def test_one_value_has_no_interval() -> None:
    """Nothing can be said of how sure it is."""
    assert mean([3.0]) == Interval(3.0) == ratio([6.0], [2.0]) and str(mean([3.0])) == "3"
    assert ratio([1.0], [0.0]) is None
    assert str(Interval(3.14159, 3.0, 3.28318)) == "3.14 ± 0.14"


def test_a_ratio_is_one_of_sums() -> None:
    """A small pair does not count as much as a large one; what is always twice as much is so for sure."""
    found = ratio([10.0, 1000.0], [1.0, 1000.0])
    assert found is not None and found.value == pytest.approx(1010 / 1001)
    twice = ratio([2.0, 4.0, 7.0], [1.0, 2.0, 3.5])
    assert twice is not None and twice.value == 2 and twice.half == pytest.approx(0, abs=1e-12)


def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says() -> None:
    """Of 400 samples of 12 pairs whose true ratio is 1.5, nine in ten and more have it in their interval."""
    dice, inside = random.Random(3), 0
    for _ in range(400):
        below = [dice.uniform(50, 150) for _ in range(12)]
        found = ratio([1.5 * one + dice.gauss(0, 30) for one in below], below)
        assert found is not None and found.low is not None and found.high is not None
        inside += found.low <= 1.5 <= found.high
    assert 0.90 <= inside / 400 <= 0.99


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 9)), min_size=1, max_size=20), st.floats(0.01, 1))
def test_a_quantile_is_a_value_seen(weighted: list[tuple[float, float]], share: float) -> None:
    """Up to it lies at least that share of the weight, and before it less."""
    found, total = quantile(weighted, share), math.fsum(weight for _, weight in weighted)
    assert found in [value for value, _ in weighted]
    assert math.fsum(weight for value, weight in weighted if value <= found) >= share * total * (1 - 1e-6)
    assert math.fsum(weight for value, weight in weighted if value < found) <= share * total * (1 + 1e-6)


def test_what_never_comes_is_infinite() -> None:
    """Half is there, the rest never is."""
    waits = [(0.0, 4.0), (math.inf, 4.0)]
    assert (quantile(waits, 0.5), quantile(waits, 0.95), quantile([], 0.5)) == (0.0, math.inf, 0.0)

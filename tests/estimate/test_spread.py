"""How far estimates are off."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.estimate.spread import Spread, percentile


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=50), st.floats(0.01, 1))
def test_error_ratios_are_right_to_half_a_per_cent(pairs: list[tuple[float, float]], share: float) -> None:
    """The ratio that a share keeps to, however many there are; it does not matter which of both is larger."""
    spread = Spread()
    for estimate, truth in pairs:
        spread.add(estimate, truth)
    exact = sorted(max(a, b) / min(a, b) for a, b in pairs)
    at = exact[max(0, math.ceil(share * len(exact) - 1e-12) - 1)]
    found = spread.ratio(share)
    assert found is not None and math.isclose(found, at, rel_tol=0.0051)


def test_nothing_has_no_error_ratio() -> None:
    """And times below a second count as a second."""
    spread = Spread()
    assert spread.ratio(0.5) is None
    spread.add(0, 0.5)
    assert spread.ratio(1) == 1


values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30).map(sorted)


def test_the_example() -> None:
    """[1, 2, 3, 4] at 75 → 3.25; one value is every percentile; none is an error."""
    assert percentile([1, 2, 3, 4], 75) == 3.25
    assert percentile([7], 95) == 7
    assert percentile([1, 2, 3, 4, 5], 100) == 5
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)


@given(values, st.floats(0, 100), st.floats(0, 100))
def test_it_rises_and_stays_between_the_ends(ordered: list[float], one: float, other: float) -> None:
    """A higher rank is never a lower value; 0 and 100 are the ends."""
    low, high = sorted((one, other))
    slack = 1e-9 * (1 + abs(ordered[0]) + abs(ordered[-1]))
    assert percentile(ordered, low) <= percentile(ordered, high) + slack
    assert ordered[0] - slack <= percentile(ordered, one) <= ordered[-1] + slack


@given(values)
def test_the_middle_is_the_median(ordered: list[float]) -> None:
    """At 50 it is what the standard library calls the median."""
    assert percentile(ordered, 50) == pytest.approx(statistics.median(ordered), rel=1e-9, abs=1e-6)

"""How long a payload is expected to run by its events, and how far estimates are off."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from drainwise.estimate.expected_end import wall_time
from drainwise.estimate.spread import Spread


@given(st.floats(allow_nan=True), st.floats(allow_nan=True), st.integers(-1, 9), st.floats(allow_nan=True), st.floats())
def test_wall_time_is_a_time_or_nothing(
    cpu_time: float, events: float, cores: int, power: float, efficiency: float
) -> None:
    """HOSTILE 36: NaN, negative, zero events or cores: None, never a wrong number."""
    found = wall_time(cpu_time, events, cores, power, efficiency)
    if found is not None:
        assert cpu_time >= 0 and events > 0 and cores >= 1 and power > 0 and 0 < efficiency <= 100
        assert 600 <= found < math.inf


def test_wall_time_by_hand() -> None:
    """288 HS06 s per event, 1000 events on 8 cores of 10 HS06 at 90 per cent: 4000 s, and 600 of base time."""
    assert wall_time(288, 1000, 8, 10) == 4600
    assert wall_time(288, 1000, 8, 10, cpu_efficiency=0) is None


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

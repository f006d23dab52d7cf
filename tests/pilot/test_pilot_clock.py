"""The pilot's clock runs evenly and follows a clock that is set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.runner import STEP, PilotClock


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_clock_that_is_set_is_one_step(step: float, elapsed: float) -> None:
    """HOSTILE 53: until `step` is asked nothing moves; then `now` is the machine's clock, and the step is told once."""
    now = {"wall": 1.7e9, "steady": 5.0}
    clock = PilotClock(lambda: now["wall"], lambda: now["steady"])
    now["wall"] += step + elapsed
    now["steady"] += elapsed
    assert clock.now() == pytest.approx(1.7e9 + elapsed)
    told = clock.step()
    if abs(step) < STEP - 1e-3:
        assert told == 0 and clock.now() == pytest.approx(1.7e9 + elapsed)
    elif abs(step) > STEP + 1e-3:
        assert told == pytest.approx(step) and clock.now() == pytest.approx(now["wall"])
    assert clock.step() == 0


def test_the_real_clocks_agree() -> None:
    """It tells UNIX time."""
    clock = PilotClock()
    assert clock.step() == 0

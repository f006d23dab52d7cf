"""A pause doubles from the first to the longest, and ends with a success."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.service import Backoff, delay


def test_pauses_double_from_the_first_to_the_longest() -> None:
    assert [delay(failures, 60, 600) for failures in range(8)] == [0, 60, 120, 240, 480, 600, 600, 600]


@given(st.integers(1, 1 << 40), st.floats(1e-3, 86400), st.floats(1e-3, 86400))
def test_a_pause_stays_between_the_first_and_the_longest(failures: int, first: float, longest: float) -> None:
    """Where the longest is shorter than the first, the first holds."""
    assert first <= delay(failures, first, longest) <= max(first, longest)


def test_a_try_is_due_at_first_after_each_pause_and_after_a_success() -> None:
    backoff = Backoff(first=1, longest=4)
    assert backoff.is_over(100.0)
    now, pauses = 100.0, []
    for _ in range(4):
        backoff.failed(now)
        pauses.append(backoff.seconds)
        assert not backoff.is_over(now) and not backoff.is_over(now + backoff.seconds - 0.01)
        now += backoff.seconds
        assert backoff.is_over(now)
    assert pauses == [1, 2, 4, 4]
    assert backoff.failures == 4
    backoff.failed(now)
    backoff.succeeded()
    assert backoff.is_over(now) and backoff.failures == 0 and backoff.seconds == 0


def test_a_clock_that_is_turned_back_holds_nothing_up() -> None:
    backoff = Backoff(first=1, longest=60)
    backoff.failed(1_000_000.0)
    assert backoff.is_over(500_000.0)

"""When the next round is due."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.slurm.agent_pace import LONGEST_PAUSE, Pace


def test_agents_have_phases_of_their_own() -> None:
    """The first round is somewhere in the first period, the others a period later each."""
    pace = Pace(30, 1000.0, 0.5)
    assert pace.due == 1015.0
    pace.succeeded(1015.2)
    assert pace.due == 1045.0


def test_rounds_that_could_not_be_done_are_left_out() -> None:
    """Nothing is made up for after a pause of the machine."""
    pace = Pace(30, 1000.0, 0.0)
    pace.succeeded(5000.0)
    assert 5000.0 <= pace.due <= 5030.0


@settings(max_examples=50)
@given(st.floats(1, 3600), st.lists(st.floats(0, 0.999), min_size=1, max_size=60))
def test_pauses_grow_and_stay_bounded(period: float, chances: list[float]) -> None:
    """Never shorter than three quarters of a period, never longer than the limit and its quarter."""
    pace, now, longest = Pace(period, 0.0, 0.0), 0.0, max(LONGEST_PAUSE, period) * 1.25
    for chance in chances:
        pace.failed(now, chance)
        assert 0.75 * period * 0.999 <= pace.due - now <= longest * 1.001
        assert now < pace.greet_due <= now + period + 1e-6
        now = pace.due
    pace.succeeded(now)
    assert pace.due - now <= period * 1.001
    assert pace.greet_due <= now


def test_a_greeting_that_is_answered_ends_the_silence() -> None:
    """A new job got an answer: the round that was put off is due now. Otherwise a greeting changes nothing."""
    pace = Pace(30, 0.0, 0.9)
    pace.succeeded(1.0, is_round=False)
    assert pace.due == 27.0
    for now in (0.0, 30.0, 90.0):
        pace.failed(now, 0.5)
    pace.succeeded(95.0, is_round=False)
    assert pace.due == 95.0

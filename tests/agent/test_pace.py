"""When the next cycle begins."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drainwise.agent.cycle import Cycle
from drainwise.agent.cycle_facts import CycleBasis
from drainwise.agent.loop import LONGEST_PAUSE, rest, until_due
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.history import History

from .memory_pool import NOW, SETTINGS


def test_a_cycle_begins_each_period() -> None:
    assert rest(60, 0, seconds=5) == 55


def test_a_cycle_that_takes_longer_than_the_period_leaves_a_rest() -> None:
    assert rest(60, 0, seconds=100) == 6


def test_pauses_double_from_one_period_to_the_longest() -> None:
    assert [rest(60, failures, seconds=8) for failures in range(1, 7)] == [60, 120, 240, 480, 600, 600]


def test_a_cycle_comes_when_a_run_is_to_be_warned_or_requeued() -> None:
    """A little before its deadline; nothing is due of one that just ends, and in a dry run."""
    one = Pilot("1@9", "1", "n1", "a", "alice", 8, NOW - 99, deadline=NOW + 100, lead=30, vacate=15)
    for pilot, acting, seconds in (
        (one, True, 55),
        (replace(one, deadline=NOW + 40), True, 25),
        (replace(one, lead=None), True, math.inf),
        (one, False, math.inf),
    ):
        basis = CycleBasis(Snapshot(NOW, (pilot,), ()), NOW, SETTINGS, History())
        assert until_due(Cycle(NOW, 1.0, None, None, "", acting, basis=basis), NOW) == seconds


@given(st.floats(1, 86400), st.integers(0, 10_000), st.floats(0, 10_000))
def test_it_is_never_beyond_the_bounds(period: float, failures: int, seconds: float) -> None:
    assert 0 < rest(period, failures, seconds) <= max(period, LONGEST_PAUSE)

"""How long a payload is expected to run: a quantile of those that ran longer than it has, never less than it has."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from drainwise.estimate.expected_end import History, wall_time, widening
from drainwise.estimate.percentile import percentile
from drainwise.estimate.run_times import RunTimes
from drainwise.estimate.spread import Spread

times = st.lists(st.floats(0, 1e6), max_size=40)


@given(times, st.integers(1, 20), st.floats(0, 1e6), st.floats(0, 1))
def test_a_quantile_of_the_last_longer_ones(seconds: list[float], window: int, elapsed: float, quantile: float) -> None:
    """The same as sorting the last ones and taking those above; None when there is none."""
    kept = RunTimes(window)
    for one in seconds:
        kept.add(one)
    longer = sorted(one for one in seconds[-window:] if one > elapsed or not elapsed)
    found = kept.quantile_after(elapsed, quantile)
    assert (len(kept), kept.seen) == (min(window, len(seconds)), len(seconds))
    if not longer:
        assert found is None
    else:
        assert found is not None
        assert math.isclose(found, percentile(longer, 100 * quantile), rel_tol=1e-9, abs_tol=1e-6)


@given(times, st.floats(1, 1e6), st.floats(1, 1e6), st.floats(0, 1))
def test_who_runs_on_is_expected_later(seconds: list[float], one: float, other: float, quantile: float) -> None:
    """The estimate is always longer than what has passed, and never falls while a payload runs."""
    kept = RunTimes()
    for each in seconds:
        kept.add(each)
    early, late = sorted((one, other))
    first, then = kept.quantile_after(early, quantile), kept.quantile_after(late, quantile)
    if then is not None:
        assert first is not None and then > late and then >= first - 1e-9 * first


def test_who_outlived_the_median_is_not_about_to_end() -> None:
    """Ten jobs of a minute and five of an hour: at the start it is a minute, after two it is the hour."""
    history = History(least_jobs=5)
    for seconds in [60.0] * 10 + [3600.0] * 5:
        history.learn(("t",), seconds)
    assert history.run_time(("t",)) == 60
    assert history.run_time(("t",), elapsed=120) == 3600
    assert history.run_time(("t",), elapsed=120, limit=1800) == 1800
    assert history.run_time(("t",), elapsed=3600) is None


def test_the_narrowest_kind_that_knows_enough_speaks() -> None:
    """A user's own jobs before the group's, the group's before all; nobody knows: None."""
    history = History(least_jobs=3)
    assert history.run_time(("g", "u")) is None
    for seconds in (100, 100, 100):
        history.learn(("g", "other"), seconds)
    assert history.run_time(("g", "u")) == 100
    assert history.run_time(("h",)) == 100
    for seconds in (7, 7):
        history.learn(("g", "u"), seconds)
    assert history.run_time(("g", "u")) == 100
    history.learn(("g", "u"), 7)
    assert history.run_time(("g", "u")) == 7
    # Where few of its own have run so long, the group says more.
    assert history.run_time(("g", "u"), elapsed=50) == 100
    assert history.jobs(("g", "u")) == 3 and history.jobs(("g",)) == 6 and history.jobs(("x",)) == 0


def test_other_tasks_do_not_speak_where_they_must_not() -> None:
    """widest=1: a task of which nothing is known has no estimate, whatever other tasks took. Two tasks never mix."""
    history = History(least_jobs=1, widest=1)
    history.learn(("a",), 100)
    history.learn(("b",), 5)
    assert history.run_time(("a",)) == 100 and history.run_time(("b",)) == 5
    assert history.run_time(("c",)) is None and history.run_time(()) is None


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


def test_a_kind_ends_with_its_last_word() -> None:
    """Unknown words at the end make it wider."""
    assert widening(["g", "u", "", ""]) == ("g", "u")
    assert widening(["", ""]) == ()


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

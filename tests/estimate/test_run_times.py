"""How long a task's jobs run: a quantile of those that ran longer, those that run still among them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from drainwise.estimate.percentile import percentile
from drainwise.estimate.run_times import RunTimes

times = st.lists(st.floats(0, 1e6), max_size=40)
whole = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=15)


def known(ended: Sequence[float], running: Sequence[float] = ()) -> RunTimes:
    """A task of which so much is known."""
    kept = RunTimes()
    for each in ended:
        kept.add(each)
    kept.watch(running)
    return kept


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


@given(times, times, st.floats(1, 1e6), st.floats(1, 1e6), st.floats(0, 1))
def test_who_runs_on_is_expected_later(
    seconds: list[float], running: list[float], one: float, other: float, quantile: float
) -> None:
    """The estimate is always longer than what has passed, and never falls while a payload runs."""
    kept = known(seconds, running)
    early, late = sorted((one, other))
    first, then = kept.quantile_after(early, quantile), kept.quantile_after(late, quantile)
    if then is not None:
        assert then > late
        assert first is None or then >= first - 1e-9 * first
        assert running or first is not None


def by_definition(ended: Sequence[float], running: Sequence[float], elapsed: float, quantile: float) -> float | None:
    """Each that runs gives its weight, in equal parts, to all that come after its age (Efron 1967); by hand."""
    all_ended, all_running = [(one, 0) for one in ended], [(one, 1) for one in running]
    points = sorted(one for one in all_ended + all_running if one[0] > elapsed or not elapsed)
    weights = [1 / len(points)] * len(points) if points else []
    for place, (_, runs) in enumerate(points[:-1]):
        if runs:
            share = weights[place] / (len(points) - place - 1)
            weights[place + 1 :] = [one + share for one in weights[place + 1 :]]
            weights[place] = 0.0
    ends = [(time, weight) for (time, runs), weight in zip(points, weights) if not runs]
    if not ends:
        return None
    middles = [math.fsum(weight for _, weight in ends[:place]) + ends[place][1] / 2 for place in range(len(ends))]
    wanted = middles[0] + quantile * (1 - middles[0] - ends[-1][1] / 2)
    for place, middle in enumerate(middles):
        if wanted <= middle + 1e-9:
            if place == 0:
                return ends[0][0]
            share = (wanted - middles[place - 1]) / (middle - middles[place - 1])
            return ends[place - 1][0] + share * (ends[place][0] - ends[place - 1][0])
    return None


@given(whole, whole, st.integers(0, 12), st.sampled_from((0.1, 0.5, 0.75, 0.9)))
def test_who_runs_stands_for_those_that_end_later(
    ended: list[float], running: list[float], elapsed: int, quantile: float
) -> None:
    """The same as moving the weight of each that runs to those that ran longer than it has, with equal times, too."""
    found = known(ended, running).quantile_after(elapsed, quantile)
    expected = by_definition(ended, running, elapsed, quantile)
    # Just where the last that ended is the quantile rounding decides whether anybody can tell.
    if found is None:
        assert by_definition(ended, running, elapsed, quantile + 1e-6) is None
    elif expected is None:
        assert by_definition(ended, running, elapsed, quantile - 1e-6) is not None
    else:
        assert math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)


def test_who_outlived_the_median_is_not_about_to_end() -> None:
    """Ten jobs of a minute and five of an hour: at the start it is a minute, after two it is the hour."""
    kept = known([60.0] * 10 + [3600.0] * 5)
    assert kept.quantile_after(0, 0.5) == 60
    assert kept.quantile_after(120, 0.5) == 3600
    assert kept.quantile_after(3600, 0.5) is None


def test_those_that_run_still_count() -> None:
    """Short ones have ended and many run on: a job is expected to be one of these, or nobody can tell."""
    kept = known([60.0] * 10 + [7200.0] * 5)
    assert kept.quantile_after(0, 0.5) == 60
    kept.watch([3600.0] * 15)
    assert kept.quantile_after(0, 0.5) == 7200
    kept.watch([9000.0] * 100)
    assert kept.quantile_after(0, 0.5) is None
    kept.watch([30.0] * 100)
    assert kept.quantile_after(0, 0.5) == 60
    kept.watch([3600.0] * 15)
    for _ in range(20):
        kept.add(60.0)
    assert kept.quantile_after(0, 0.5) == 60
    kept.watch([])
    assert kept.quantile_after(120, 0.5) == 7200

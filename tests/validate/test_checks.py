"""The four checks, their limits, and the adjustment."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise_tasks.validate.checks import (
    EVENTS,
    FILTER,
    MEMORY,
    SIZE,
    TIME,
    Limits,
    RequestEstimates,
    adjust,
    adjusted,
    check_run,
    sigma,
)
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.thresholds import DOCUMENT, MCM, Thresholds

LIMITS = Limits(2300, 1.0)


def run(
    time: float = 1.0, size: int = 100, peak: int = 1000, written: int = 100, events: int = 100, cores: int = 1
) -> Measurement:
    """A run of 100 events of 1 s and 100 kB in 1000 MB, when nothing else is said."""
    return Measurement(cores, events, written, size * 1000 * written, time * events, time * events, peak * 10**6)


def missed(
    measured: Measurement, estimates: RequestEstimates, limits: Limits = LIMITS, thresholds: Thresholds = DOCUMENT
) -> set[str]:
    return {check.name for check in check_run(measured, estimates, limits, thresholds) if not check.passed}


@pytest.mark.parametrize(
    ("time", "expected"), [(0.6, set()), (1.4, set()), (1.0, set()), (0.599, {TIME}), (1.401, {TIME})]
)
def test_time_per_event_within_40_percent(time: float, expected: set[str]) -> None:
    """The limits belong to the range."""
    assert missed(run(time=time), RequestEstimates(1.0, 100.0)) == expected


@pytest.mark.parametrize(("size", "expected"), [(90, set()), (110, set()), (89, {SIZE}), (111, {SIZE})])
def test_size_per_event_within_10_percent(size: int, expected: set[str]) -> None:
    """The limits belong to the range."""
    assert missed(run(size=size), RequestEstimates(1.0, 100.0)) == expected


@pytest.mark.parametrize(("peak", "expected"), [(2300, set()), (2299, set()), (2301, {MEMORY})])
def test_peak_rss_at_most_what_was_requested(peak: int, expected: set[str]) -> None:
    """Exactly the requested memory is not too much."""
    assert missed(run(peak=peak), RequestEstimates(1.0, 100.0)) == expected


def test_limits_are_decimal_numbers() -> None:
    """0.14 s is within 0.1 s ± 40 %, though 0.1 × 1.4 is less than 0.14 in binary floating point."""
    assert 0.1 * 1.4 < 0.14
    measured = Measurement(1, 1, 1, 100_000, 0.14, 0.14, 10**9)
    assert missed(measured, RequestEstimates(0.1, 100.0)) == set()


def test_a_measured_quotient_is_the_decimal_number_that_it_is() -> None:
    """0.014 s an event is within 0.01 s ± 40 %, also where a sum of binary fractions makes it a little more."""
    seconds = math.nextafter(0.014, 1)
    measured = Measurement(1, 1, 1, 100_000, seconds, seconds, 10**9)
    assert missed(measured, RequestEstimates(0.01, 100.0)) == set()


def test_filter_efficiency_within_three_sigma() -> None:
    """e = 0.5 of 10000 events: sigma is 0.05 · e = 0.025, so 0.425 and 0.575 pass and what lies outside does not."""
    measured = run(written=5000, events=10000)
    for claimed, expected in ((0.426, set()), (0.574, set()), (0.424, {FILTER}), (0.576, {FILTER})):
        assert missed(measured, RequestEstimates(1.0, 100.0), Limits(2300, claimed)) == expected


def test_an_efficiency_at_its_limit_is_within_it() -> None:
    """e = 0.009 of many events: 3 sigma are 0.00135, and 0.01035 passes although its binary fraction is more."""
    measured = run(written=9000, events=10**6)
    assert missed(measured, RequestEstimates(1.0, 100.0), Limits(2300, 0.01035)) == set()
    assert missed(measured, RequestEstimates(1.0, 100.0), Limits(2300, 0.01036)) == {FILTER}


def test_sigma_is_the_larger_of_both() -> None:
    """Few events: the binomial deviation; many: a twentieth of the efficiency."""
    assert sigma(0.5, 100) == pytest.approx(0.05)
    assert sigma(0.5, 10**6) == pytest.approx(0.025)
    assert sigma(1.0, 10) == pytest.approx(0.05)
    assert sigma(0.0, 10) == 0.0


def test_no_sigma_of_no_events() -> None:
    """n = 0 is a clear error, not a division by zero."""
    with pytest.raises(UsageError, match="0 events were run"):
        sigma(0.5, 0)
    with pytest.raises(UsageError, match="expected a number from 0 to 1"):
        sigma(math.nan, 10)


def test_nothing_that_came_through_the_filter_is_a_failure_and_no_crash() -> None:
    """No event written: size and filter efficiency are 0, and both are out of range."""
    assert missed(run(written=0), RequestEstimates(1.0, 100.0)) == {SIZE, FILTER}


def test_only_time_and_size_are_mended_by_adjustment() -> None:
    """Memory and filter efficiency out of range are fatal."""
    checks = check_run(run(), RequestEstimates(1.0, 100.0), LIMITS)
    assert {check.name for check in checks if check.fatal} == {MEMORY, FILTER}


def test_the_adjustment_of_the_document() -> None:
    """(3 × measured + old) / 4, for what was out of range only."""
    assert adjusted(8.0, 4.0) == 7.0
    before = RequestEstimates(4.0, 100.0)
    assert adjust(before, check_run(run(time=8.0, size=105), before, LIMITS)) == RequestEstimates(7.0, 100.0)
    assert adjust(before, check_run(run(time=4.0, size=200), before, LIMITS)) == RequestEstimates(4.0, 175.0)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_three_tries_reach_a_steady_measurement(measured: float, claimed: float) -> None:
    """An estimate that is adjusted lies between what was claimed and what was measured, three quarters of the way."""
    after = adjusted(measured, claimed)
    assert min(measured, claimed) <= after * (1 + 1e-12) and after <= max(measured, claimed) * (1 + 1e-12)
    assert abs(measured - after) <= abs(measured - claimed) / 4 * (1 + 1e-9) + 1e-9


def test_a_check_says_its_figures() -> None:
    """Whoever reads the report sees the measured value and the range."""
    time, _, memory, _ = check_run(run(time=2.0, peak=3000), RequestEstimates(1.0, 100.0), LIMITS)
    assert str(time) == "time per event 2 s, expected 0.6 to 1.4 s"
    assert str(memory) == "peak RSS 3000 MB, expected at most 2300 MB"
    near = check_run(run(time=1.40000001), RequestEstimates(1.0, 100.0), LIMITS)[0]
    assert str(near) == "time per event 1.40000001 s, expected 0.6 to 1.4 s"


@pytest.mark.parametrize(("size", "expected"), [(50, set()), (150, set()), (49, {SIZE}), (151, {SIZE})])
def test_mcm_s_size_per_event_within_50_percent(size: int, expected: set[str]) -> None:
    """The document's time, a wider size."""
    assert missed(run(size=size), RequestEstimates(1.0, 100.0), thresholds=MCM) == expected
    assert missed(run(time=1.401), RequestEstimates(1.0, 100.0), thresholds=MCM) == {TIME}


def test_mcm_s_filter_efficiency_within_five_sigma() -> None:
    """e = 0.5 of 10000 events: 5 · 0.025 either way."""
    measured = run(written=5000, events=10000)
    for claimed, expected in ((0.376, set()), (0.624, set()), (0.374, {FILTER}), (0.626, {FILTER})):
        assert missed(measured, RequestEstimates(1.0, 100.0), Limits(2300, claimed), MCM) == expected


def test_mcm_s_least_number_of_events() -> None:
    """Ten must have been written; of fewer nothing can be said, and no other claim mends that."""
    estimates, limits = RequestEstimates(1.0, 100.0), Limits(2300, 0.1)
    assert missed(run(written=10), estimates, limits, MCM) == set()
    [check] = [one for one in check_run(run(written=9), estimates, limits, MCM) if not one.passed]
    assert (check.name, check.fatal) == (EVENTS, True)
    assert str(check) == "events written 9, expected 10 to 100"


def test_mcm_s_adjustment() -> None:
    """(old + 9 × measured) / 10."""
    assert adjusted(8.0, 4.0, MCM) == 7.6
    before = RequestEstimates(4.0, 100.0)
    assert adjust(before, check_run(run(time=8.0), before, LIMITS, MCM), MCM) == RequestEstimates(7.6, 100.0)

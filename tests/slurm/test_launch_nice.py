"""Nice values for dates: SPEC §5, nice = int((priority − time_origin)·nice_factor) mod 2³¹."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.slurm.submission import DEFAULT_ORIGIN, LARGEST, NiceScale, nice_scale, unix_time

# Lines of `scontrol show config` of 22.05.8 and 24.11.5.
CONFIGURATION = (
    "Configuration data as of 2026-11-21\nPrioritySiteFactorParameters = (null)\nPriorityParameters      = {}\n"
)


@pytest.mark.parametrize(
    ("words", "origin", "factor"),
    [
        ("(null)", DEFAULT_ORIGIN, 1.0),
        ("time_origin=2026-11-21 19:00,nice_factor=10", "2026-11-21 19:00:00", 10.0),
        ("nice_factor=0.5", DEFAULT_ORIGIN, 0.5),
        ("site=x, time_origin=2024-02-29 00:00 ", "2024-02-29 00:00:00", 1.0),
        ("time_origin=soon,nice_factor=-1", DEFAULT_ORIGIN, 1.0),
        ("nice_factor=nan", DEFAULT_ORIGIN, 1.0),
        ("nice_factor=1e999", DEFAULT_ORIGIN, 1.0),
    ],
)
def test_the_site_sets_the_scale(words: str, origin: str, factor: float) -> None:
    begin = time.mktime(time.strptime(origin, "%Y-%m-%d %H:%M:%S"))
    assert nice_scale(CONFIGURATION.format(words)) == NiceScale(begin, factor)


def test_no_priority_parameters_at_all_is_the_default() -> None:
    """2023 began, in local time, at nice 0, and a second is one step."""
    assert nice_scale("") == NiceScale(time.mktime((2023, 1, 1, 0, 0, 0, 0, 0, -1)), 1.0)


def test_what_is_larger_than_slurm_takes_begins_anew() -> None:
    """Modulo 2^31, so that dates before the origin are large ones."""
    scale = NiceScale(1672531200.0)
    assert [scale.nice(1672531200.0 + steps) for steps in (2**31 + 5, -1_000_000)] == [5, 2**31 - 1_000_000]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2023-01-01 00:00 +00:00", 1672531200),
        ("2023-01-01 00:00:30+00:00", 1672531230),
        ("2023-01-01 01:00 +01:00", 1672531200),
        ("2022-12-31 19:00 -05:00", 1672531200),
        ("2023-01-01T00:00+00:00", 1672531200),
    ],
)
def test_a_zone_may_be_named(text: str, moment: int) -> None:
    assert unix_time(text) == moment


@pytest.mark.parametrize(
    "text", ["", "2023-13-01 00:00", "2023-02-30 00:00", "2023-01-01 25:00", "0000-01-01 00:00", "١٩٧٠-01-01 00:00"]
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert unix_time(text) is None


def test_a_second_is_one_step() -> None:
    scale = NiceScale(1672531200.0)
    assert [scale.nice(1672531200.0 + seconds) for seconds in (0, 1, 1.9, 100)] == [0, 1, 1, 100]


@given(st.floats(-1e12, 1e12), st.floats(1e-6, allow_infinity=False))
def test_slurm_takes_every_nice_value(priority: float, factor: float) -> None:
    assert 0 <= NiceScale(1672531200.0, factor).nice(priority) <= LARGEST


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_the_sooner_the_smaller(one: int, other: int) -> None:
    scale = NiceScale(1000.0)
    assert (scale.nice(1000.0 + one) < scale.nice(1000.0 + other)) == (one < other)

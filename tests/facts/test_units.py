"""How a plan says figures."""

from __future__ import annotations

import pytest

from drainwise.facts.units import clock, core_hours, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (13000, "3h36m"), (7200, "2h"), (90061, "1d1h"), (-61, "-1m1s")],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("core_seconds", "text"),
    [
        (74000, "20.6 core-h"),
        (104, "0.029 core-h"),
        (0, "0.000 core-h"),
        (6000, "1.67 core-h"),
        (4_000_000, "1111 core-h"),
    ],
)
def test_core_seconds_are_said_as_core_hours(core_seconds: int, text: str) -> None:
    """SPEC §2's worked example, and figures that two decimals would round away."""
    assert core_hours(core_seconds) == text


@pytest.mark.parametrize("moment", [1 << 62, -(1 << 62), 10**25])
def test_a_time_beyond_all_calendars_is_said_as_it_is(moment: int) -> None:
    """As a report of a journal or a saved snapshot may have it."""
    assert clock(moment) == f"UNIX time {moment}"


def test_a_time_is_said_in_utc() -> None:
    assert clock(1795249000) == "2026-11-21 08:16:40Z"

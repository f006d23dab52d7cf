"""Durations, sizes and times: what is written is what is meant, and a number without its unit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.units import (
    BYTES,
    SECONDS,
    clock,
    core_hours,
    duration,
    format_duration,
    format_size,
    parse_amount,
    parse_clock,
    parse_duration,
    parse_size,
)


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("7d", 604800), ("1h30m", 5400), ("1d1h1m1s", 90061), ("0s", 0)],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: int) -> None:
    """Units may be combined from large to small."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "90", "s", "90 s", " 90s", "-1s", "+1s", "1.5h", "1e3s", "30m1h", "1h1h", "90S", "2w", "1_0s", "٣s", "1h30"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """No unit, a wrong unit, a sign, a fraction, a wrong order, other digits: nothing is guessed."""
    with pytest.raises(ValueError, match=r".*"):
        parse_duration(text)


@given(seconds=st.integers(0, 10**9))
def test_a_duration_survives_being_written_and_read(seconds: int) -> None:
    """`format_duration` writes what `parse_duration` reads."""
    assert parse_duration(format_duration(seconds)) == seconds


@given(numbers=st.tuples(*(st.integers(0, 999) for _ in SECONDS)))
def test_every_combination_counts_each_unit_once(numbers: tuple[int, ...]) -> None:
    """The value is Σ number × length of the unit, whatever is left out."""
    pairs = list(zip(numbers, SECONDS.items()))
    text = "".join(f"{number}{unit}" for number, (unit, _) in pairs)
    assert parse_duration(text) == sum(number * length for number, (_, length) in pairs)


@pytest.mark.parametrize(
    ("text", "size"),
    [("20GB", 20 * 10**9), ("16GiB", 16 * 2**30), ("1kB", 1000), ("1KiB", 1024), ("2TB", 2 * 10**12), ("512B", 512)],
)
def test_a_size_tells_1000_from_1024(text: str, size: int) -> None:
    """GB is 1000-based, GiB 1024-based."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "20", "GB", "20 GB", "20gb", "20K", "20G", "-1GB", "1.5GB", "20GBs", "2⁴B"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """No unit or one that could mean either: nothing is guessed."""
    with pytest.raises(ValueError, match=r".*"):
        parse_size(text)


@given(number=st.integers(0, 10**6), unit=st.sampled_from(sorted(BYTES)))
def test_a_size_survives_being_written_and_read(number: int, unit: str) -> None:
    """`format_size` writes what `parse_size` reads."""
    size = parse_size(f"{number}{unit}")
    assert parse_size(format_size(size)) == size == number * BYTES[unit]


written = st.builds("{}{}".format, st.integers(0, 9999) | st.text(max_size=2), st.sampled_from(["s", "h", "d", *BYTES]))


@given(text=st.text(max_size=20) | written)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever stands there: a number that is not negative, or ValueError; never anything else."""
    for parse in (parse_duration, parse_size):
        try:
            assert parse(text) >= 0
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("4gb", 1, 4 << 30),
        ("512 M", 1, 512 << 20),
        ("16777216kb", 1, 16 << 30),
        ("1.50G", 1, 3 << 29),
        ("2 Gbytes", 1024, 2 << 30),
        ("500", 1 << 20, 500 << 20),
        ("INFINITY", 1, None),
        ("1X", 1, None),
        ("9" * 400, 1, None),
    ],
)
def test_an_amount_as_batch_systems_write_it(text: str, unit: int, amount: int | None) -> None:
    assert parse_amount(text, unit) == amount


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("17", 17),
        ("03:04.5", 184.5),
        ("1-02:03:04", 93784),
        ("1:02:03:04", 93784),
        ("1-5", None),
        ("-5", None),
        ("9" * 400, None),
    ],
)
def test_a_time_as_batch_systems_write_it(text: str, seconds: float | None) -> None:
    assert parse_clock(text) == seconds

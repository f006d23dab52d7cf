"""Durations and sizes: what is written is what is meant, and a number without its unit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.written_units import BYTES, SECONDS, format_duration, format_size, parse_duration, parse_size


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

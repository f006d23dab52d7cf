"""Rounding up to three significant bits, by the worked examples and by what rounding means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.choice.resources import Resources, bucket_of, rounded_up


@pytest.mark.parametrize(
    ("amount", "rounded"), [*((n, n) for n in range(9)), (9, 10), (16, 16), (17, 20), (1000, 1024), (1025, 1280)]
)
def test_the_examples_of_the_specification(amount: int, rounded: int) -> None:
    assert rounded_up(amount) == rounded


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50))
def test_rounding_up_is_least_monotonic_and_stays(one: int, other: int) -> None:
    """Nothing smaller with three significant bits would do; what is rounded stays; order is kept; at most a quarter."""
    rounded = rounded_up(one)
    assert one <= rounded <= one * 1.25 and rounded_up(rounded) == rounded
    step = 1 << max(0, one.bit_length() - 3)
    assert rounded % step == 0 and rounded - one < step
    assert (one <= other) <= (rounded_up(one) <= rounded_up(other))


def test_what_is_not_a_size_is_compared_exactly() -> None:
    needs = Resources(9, 1025, 17, (("gpu", 9), ("partition", "short")))
    assert bucket_of(needs) == Resources(10, 1280, 20, (("gpu", 9), ("partition", "short")))


def test_sizes_of_another_component_are_rounded_too() -> None:
    needs = Resources(others=(("cpu1", 9), ("gpu1", 9), ("mem1", 1025), ("memory1", 9), ("tmp100", 17)))
    rounded = (("cpu1", 10), ("gpu1", 9), ("mem1", 1280), ("memory1", 9), ("tmp100", 20))
    assert bucket_of(needs) == Resources(others=rounded)


def test_many_sizes_make_few_buckets() -> None:
    assert len({rounded_up(amount) for amount in range(1, 1 << 17)}) <= 4 * 17

"""What whole pilots can make: equal to trying every subset, near and far."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.reclaim.totals.arrays import Whole
from drainwise.reclaim.totals.subset_sums import first_that_make, total_to_give

sizes_of = st.lists(st.sampled_from((1, 2, 3, 7, 8, 12, 24)), max_size=9).map(lambda one: np.array(one, dtype=np.int64))


def sums(sizes: Whole) -> set[int]:
    """Every total that some of them make."""
    bits = 1
    for size in sizes.tolist():
        bits |= bits << size
    return {total for total in range(bits.bit_length()) if bits >> total & 1}


def expected(sizes: Whole, cores: int, most: int) -> int:
    possible = sums(sizes)
    covering = [total for total in possible if cores <= total <= most]
    return min(covering) if covering and cores > 0 else max(t for t in possible if t <= most and t < max(cores, 1))


@given(sizes_of, st.integers(0, 90), st.integers(0, 90))
def test_the_total_is_the_smallest_that_covers_or_the_nearest_below(sizes: Whole, cores: int, most: int) -> None:
    assert total_to_give(sizes, cores, most) == expected(sizes, cores, most)


@pytest.mark.parametrize("kinds", [(8, 12), (6, 10, 15), (4, 6), (3, 5, 7, 64), (8,)])
def test_far_totals_are_found_without_asking_about_every_pilot(kinds: tuple[int, ...]) -> None:
    """The same answers as the plain way where most pilots are left out of the sums; one size may be rare."""
    dice = np.random.default_rng(len(kinds))
    for rare in (False, True):
        sizes = dice.choice(kinds, 1500)
        if rare:
            sizes = np.where(dice.random(1500) < 0.004, kinds[-1], kinds[0])
        for cores, most in zip(
            dice.integers(1, sizes.sum() + 50, 8), (10**9, 10**9, *dice.integers(1, sizes.sum(), 6))
        ):
            assert total_to_give(sizes, int(cores), int(most)) == expected(sizes, int(cores), int(most))
            total = total_to_give(sizes, int(cores), int(most))
            chosen = first_that_make(sizes, total)
            assert (sizes[chosen].sum(), len(set(chosen.tolist()))) == (total, len(chosen))


@given(sizes_of, st.integers(0, 60))
def test_the_first_pilots_that_make_the_total_are_taken(sizes: Whole, cores: int) -> None:
    """Of all sets that make it, the first in the order: one is passed over only where with it none would."""
    total = total_to_give(sizes, cores, 10**6)
    places = range(len(sizes))
    sets = itertools.chain.from_iterable(itertools.combinations(places, count) for count in range(len(sizes) + 1))
    making = [one for one in sets if sizes[list(one)].sum() == total]
    first = min(making, key=lambda one: [place not in one for place in places])
    assert tuple(first_that_make(sizes, total).tolist()) == first


def test_a_total_that_no_pilots_make_is_refused() -> None:
    with pytest.raises(ValueError, match="make 7 cores"):
        first_that_make(np.array([8, 4], dtype=np.int64), 7)


def test_a_million_pilots_are_no_trouble() -> None:
    """The total is exact; it takes some ten milliseconds, and with one sum after the other for ever."""
    sizes = np.random.default_rng(1).integers(1, 129, 10**6)
    assert total_to_give(sizes, 30_000_000, 10**9) == 30_000_000

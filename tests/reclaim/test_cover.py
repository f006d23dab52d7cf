"""The exact search: equal to trying every subset."""

from __future__ import annotations

import itertools
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.reclaim.cover import Item, cheapest_cover

items_of = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 20), st.integers(-3, 3)), min_size=0, max_size=9).map(
    lambda rows: [Item(cores, waste, rank, f"run{n}") for n, (cores, waste, rank) in enumerate(rows)]
)


def cost(chosen: list[Item]) -> tuple[int, int, int]:
    return (
        sum(item.waste for item in chosen),
        sum(item.cores for item in chosen),
        sum(item.rank for item in chosen),
    )


def by_trying_all(items: list[Item], cores: int, most: int | None) -> tuple[int, int, int]:
    """Waste, cores and rank of the best of all subsets."""
    subsets = [list(one) for size in range(len(items) + 1) for one in itertools.combinations(items, size)]
    fitting = [one for one in subsets if most is None or cost(one)[1] <= most]
    covering = [one for one in fitting if cost(one)[1] >= cores]
    if covering:
        return min(cost(one) for one in covering)
    largest = max(cost(one)[1] for one in fitting)
    return min(cost(one) for one in fitting if cost(one)[1] == largest)


@settings(max_examples=100, deadline=None)
@given(items_of, st.integers(0, 60), st.none() | st.integers(0, 60))
def test_the_choice_costs_what_the_best_of_all_subsets_costs(items: list[Item], cores: int, most: int | None) -> None:
    """Least waste, then fewest cores beyond the need, then lowest rank; within the bound, if there is one."""
    chosen = cheapest_cover(items, cores, most)
    if cores == 0:
        assert chosen == []
    else:
        assert cost(chosen) == by_trying_all(items, cores, most)
    assert len({item.name for item in chosen}) == len(chosen)
    assert most is None or cost(chosen)[1] <= most


@settings(max_examples=50, deadline=None)
@given(items_of, st.integers(1, 60), st.randoms(use_true_random=False))
def test_the_order_in_which_pilots_are_listed_does_not_matter(items: list[Item], cores: int, dice: Random) -> None:
    shuffled = list(items)
    dice.shuffle(shuffled)
    assert cheapest_cover(items, cores) == cheapest_cover(shuffled, cores)


@settings(max_examples=50, deadline=None)
@given(items_of, st.integers(1, 60))
def test_nobody_is_asked_without_need(items: list[Item], cores: int) -> None:
    """When the cores are covered, leaving out any one pilot would uncover them."""
    chosen = cheapest_cover(items, cores)
    given_back = sum(item.cores for item in chosen)
    if given_back >= cores:
        assert all(given_back - item.cores < cores for item in chosen)


def test_a_greedy_choice_would_be_worse() -> None:
    """Two cheap pilots beside one that covers alone: greedy by waste per core takes the wrong ones."""
    items = [Item(8, 10, 0, "a"), Item(8, 11, 0, "b"), Item(12, 18, 0, "c")]
    assert [item.name for item in cheapest_cover(items, 12)] == ["c"]


def test_of_equals_the_lowest_name_is_asked() -> None:
    items = [Item(8, 5, 0, name) for name in ("run3", "run1", "run2")]
    assert [item.name for item in cheapest_cover(items, 8)] == ["run1"]


def test_all_are_asked_when_all_together_do_not_suffice() -> None:
    items = [Item(8, 5, 0, "a"), Item(4, 5, 0, "b")]
    assert len(cheapest_cover(items, 100)) == 2


@pytest.mark.parametrize(("cores", "most"), [(8, 7), (8, 0)])
def test_nothing_is_asked_when_every_pilot_is_too_large(cores: int, most: int) -> None:
    assert cheapest_cover([Item(8, 5, 0, "a")], cores, most) == []


def test_a_large_pool_is_decided_in_a_moment() -> None:
    """5,000 pilots of four sizes, 1,000 cores: a fraction of a second, and far below ten on a slow machine."""
    items = [Item((4, 8, 16, 32)[n % 4], (n * 7919) % 10007, 0, f"run{n}") for n in range(5000)]
    began = time.process_time()
    assert sum(item.cores for item in cheapest_cover(items, 1000)) >= 1000
    assert time.process_time() - began < 10

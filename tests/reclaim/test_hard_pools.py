"""Sizes that are chosen to make the choice hard: bounded work, an exact total, and a word when it is not proven."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import hard_pools
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.policies import policy_called
from drainwise.reclaim.policy import Need
from drainwise.reclaim.totals import knapsack, near_sums, subset_sums
from drainwise.reclaim.totals.arrays import Real, Whole
from drainwise.reclaim.totals.knapsack import cheapest_set
from drainwise.reclaim.totals.subset_sums import first_that_make, found_total, some_that_make

from .facts import NOW, SETTINGS, pilot

Pool = tuple[Whole, Real]

small_pools = st.lists(
    st.tuples(st.sampled_from((2, 4, 6, 8, 9, 64, 65)), st.integers(0, 20)), min_size=1, max_size=9
).map(lambda rows: (np.array([row[0] for row in rows], dtype=np.int64), np.array([float(row[1]) for row in rows])))


def least(pool: Pool, total: int) -> float:
    """The least waste of all subsets that make the total."""
    sizes, waste = pool
    places = range(len(sizes))
    subsets = itertools.chain.from_iterable(itertools.combinations(places, count) for count in range(len(sizes) + 1))
    return min(float(waste[list(one)].sum()) for one in subsets if sizes[list(one)].sum() == total)


@pytest.mark.daemons  # large pools take their time
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.in_turn("hard pools", name)) for name in hard_pools.KINDS]
)
def test_no_sizes_make_the_choice_take_for_ever(name: str) -> None:
    """100,000 pilots: the exact total (the benchmark holds the choice to two seconds)."""
    sizes, waste = hard_pools.pool(name)
    cores = int(sizes.sum()) // 10 | 1
    chosen = hard_pools.decide(sizes, waste, cores)
    assert len(set(chosen.places.tolist())) == len(chosen.places)
    assert sizes[chosen.places].sum() == found_total(sizes, cores, 1 << 53).cores


@given(small_pools, st.integers(1, 200))
def test_without_a_proof_the_set_makes_the_total_and_is_not_called_the_least(pool: Pool, cores: int) -> None:
    """No work for a proof: what is found makes exactly the total, and says so when something may waste less."""
    sizes, waste = pool
    total = found_total(sizes, cores, 1 << 53).cores
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "_PROOF", 0)
        found = cheapest_set(sizes, waste, np.zeros(len(sizes)), total)
    assert sizes[found.places].sum() == total
    best = least(pool, total)
    assert waste[found.places].sum() >= best
    assert not found.is_proven or waste[found.places].sum() == best


def test_without_a_proof_pilots_of_larger_steps_than_the_last_gap_are_looked_at() -> None:
    """The order of waste per core stops 2 cores before the total, and the least set takes 8 more and gives 6 back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "_PROOF", 0)
        found = cheapest_set(np.array([6, 4, 2, 8]), np.array([1.0, 3.0, 5.0, 5.0]), np.zeros(4), 12)
    assert (found.places.tolist(), found.is_proven) == ([1, 3], False)


def test_a_search_forgets_sets_that_come_to_the_total_no_more() -> None:
    """Work is counted: with all of them, this pool would take more than is allowed here."""
    dice = np.random.default_rng(1000)
    sizes, waste = dice.integers(1, 999, 1000), dice.integers(0, 10**6, 1000).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "_PROOF", 1_000_000)
        assert cheapest_set(sizes, waste, np.zeros(1000), int(sizes.sum()) // 3).is_proven


def test_some_pilots_that_make_a_total_are_like_those_that_are_named() -> None:
    sizes = np.array([3, 12, 3, 9, 5, 4, 12])
    assert some_that_make(sizes, 24, sizes[[1, 6]]).tolist() == [1, 6]


@given(small_pools, st.integers(1, 200), st.integers(1, 250))
def test_with_no_work_at_all_some_pilots_make_some_total(pool: Pool, cores: int, most: int) -> None:
    """A total that is given can be made, is within the limits, and is called proven only when it is the smallest."""
    sizes, waste = pool
    exact = found_total(sizes, cores, most)
    assert exact.is_proven
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_sums, "_WORK", 1)
        patch.setattr(subset_sums, "_WORK", 0)
        patch.setattr(knapsack, "_PROOF", 0)
        patch.setattr(knapsack, "_NEAR", 0)
        found = found_total(sizes, cores, most)
        sets = [
            cheapest_set(sizes, waste, np.zeros(len(sizes)), found.cores).places,
            first_that_make(sizes, found.cores),
        ]
        if found.cores:
            sets.append(some_that_make(sizes, found.cores))
    for places in sets:
        assert sizes[places].sum() == found.cores
        assert len(set(places.tolist())) == len(places)
    assert found.cores <= most
    assert found == exact or not found.is_proven
    if found.cores >= cores:
        assert found.cores >= exact.cores >= cores


def test_the_odd_dear_pilot_goes_where_the_total_is_odd_and_nothing_dearer() -> None:
    """20,000 pilots of even sizes, one odd: the others are the least wasteful for the rest of the total."""
    sizes, waste = hard_pools.pool("even sizes and one odd dear pilot, 2 to 128 cores", 20_000)
    [odd] = np.flatnonzero(sizes % 2)
    total = int(sizes.sum()) // 3 | 1
    chosen = cheapest_set(sizes, waste, np.zeros(len(sizes)), total).places
    assert odd in chosen
    others = np.flatnonzero(np.arange(len(sizes)) != odd)
    rest = cheapest_set(sizes[others], waste[others], np.zeros(len(others)), total - int(sizes[odd]))
    assert rest.is_proven
    assert waste[chosen].sum() == waste[odd] + waste[others][rest.places].sum()


@pytest.mark.daemons  # large pools take their time
def test_the_order_of_a_policy_takes_no_long_search_either() -> None:
    """The first pilots that make the total, as every policy but `least-waste` takes them: it took minutes."""
    sizes, _ = hard_pools.pool("even sizes and one odd dear pilot, up to 131,072")
    total = found_total(sizes, 100_001, 1 << 53).cores
    places = first_that_make(sizes, total)
    assert (sizes[places].sum(), len(set(places.tolist()))) == (total, len(places))


def test_the_reason_of_an_order_says_that_the_set_is_not_proven() -> None:
    """As plan, JSON and journal show it; nothing is said where it is proven."""
    among = candidates_of([pilot(number, None, cores=2 + number % 3) for number in range(40)], NOW, SETTINGS)
    policy = policy_called("least-waste")
    assert all("set for 41 cores" in one.reason for one in policy.choose(among, Need(41, 99)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "_PROOF", 0)
        assert all("set found (not proven) for 41 cores" in one.reason for one in policy.choose(among, Need(41, 99)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_sums, "_WORK", 1)
        chosen = policy.choose(among, Need(41, 99))
    total = sum(one.candidate.pilot.cores for one in chosen)
    assert total >= 41
    assert all(("smaller total" in one.reason) == (total > 41) for one in chosen)

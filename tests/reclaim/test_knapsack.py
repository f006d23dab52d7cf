"""The exact search: equal to trying every subset, and to an integer programming solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.reclaim.totals.arrays import Real, Whole
from drainwise.reclaim.totals.knapsack import cheapest_of_total
from drainwise.reclaim.totals.subset_sums import total_to_give

Pool = tuple[Whole, Real, Real]

pools = st.lists(
    st.tuples(st.sampled_from((1, 2, 3, 7, 8, 12)), st.integers(0, 20), st.integers(-3, 3)), min_size=1, max_size=9
).map(
    lambda rows: (
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([float(row[1]) for row in rows]),
        np.array([float(row[2]) for row in rows]),
    )
)


def cost(pool: Pool, places: Whole | list[int]) -> tuple[float, float]:
    """Total waste, then Σ cores × priority."""
    sizes, waste, priority = (column[places] for column in pool)
    return float(waste.sum()), float((sizes * priority).sum())


def made_up(count: int, largest: int, kind: str, seed: int) -> Pool:
    """A pool whose wastes are of one kind: all different, or such that very many sets cost the same or nearly so."""
    dice = np.random.default_rng(seed)
    sizes = dice.integers(1, largest + 1, count)
    waste = {
        "different": np.rint(sizes * dice.random(count) * 20_000),
        "like silent ones": sizes * 1000.0,
        "nearly alike": sizes * 1000.0 + dice.integers(0, 3, count),
        "nothing": np.zeros(count),
        "a few levels": np.rint(sizes * dice.integers(0, 9, count) * 100.0),
        "against their size": np.rint(1e6 / sizes + dice.random(count) * 100),  # by far the hardest
    }[kind]
    return sizes, waste, dice.integers(-3, 4, count).astype(float)


KINDS = ("different", "like silent ones", "nearly alike", "nothing", "a few levels", "against their size")


@given(pools, st.integers(0, 60), st.integers(0, 60))
def test_the_choice_costs_what_the_best_of_all_subsets_costs(pool: Pool, cores: int, most: int) -> None:
    """Least waste, then least Σ cores × PRIORITY_FACTOR, of all that make the total."""
    sizes = pool[0]
    total = total_to_give(sizes, cores, most)
    chosen = cheapest_of_total(*pool, total)
    places = range(len(sizes))
    subsets = itertools.chain.from_iterable(itertools.combinations(places, count) for count in range(len(sizes) + 1))
    assert cost(pool, chosen) == min(cost(pool, list(one)) for one in subsets if sizes[list(one)].sum() == total)
    assert (sizes[chosen].sum(), len(set(chosen.tolist()))) == (total, len(chosen))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "largest"), [(12, 8), (60, 128), (300, 32)])
def test_the_choice_equals_what_an_integer_programming_solver_finds(kind: str, count: int, largest: int) -> None:
    """The fewest cores that cover the need, and of all sets that have so many the least waste: both by the solver."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    pool = made_up(count, largest, kind, seed=count)
    sizes, waste, _ = pool
    whole = {"integrality": np.ones(count), "bounds": Bounds(0, 1), "options": {"mip_rel_gap": 0.0}}
    for need in (1, largest + 1, int(sizes.sum()) // 3):
        fewest = milp(sizes, constraints=LinearConstraint(sizes[None, :], need, np.inf), **whole)
        total = round(fewest.fun)
        assert total_to_give(sizes, need, 10**9) == total
        best = milp(waste, constraints=LinearConstraint(sizes[None, :], need, total), **whole)
        assert cost(pool, cheapest_of_total(*pool, total))[0] == pytest.approx(best.fun, abs=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_equals_plain_dynamic_programming_on_larger_pools(kind: str) -> None:
    """Where the search looks at a few pilots only, the whole table finds nothing cheaper."""
    pool = made_up(2000, 48, kind, seed=5)
    sizes, waste, _ = pool
    for total in (37, 400, 2500):
        table = np.full(total + 1, np.inf)
        table[0] = 0
        for size, lost in zip(sizes.tolist(), waste.tolist()):
            if size <= total:
                table[size:] = np.minimum(table[size:], table[:-size] + lost)
        assert cost(pool, cheapest_of_total(*pool, total))[0] == table[total]


def test_one_rare_pilot_is_found_wherever_it_is() -> None:
    """Only the one of 12 cores, the dearest of all, makes 20 with eights."""
    sizes = np.array([8] * 5000 + [12], dtype=np.int64)
    waste = np.append(np.arange(5000.0), 10.0**9)
    assert cheapest_of_total(sizes, waste, np.zeros(5001), 20).tolist() == [0, 5000]
    assert cheapest_of_total(sizes, waste, np.zeros(5001), 8 * 4000 + 12).tolist() == [*range(4000), 5000]


def test_a_greedy_choice_would_be_worse() -> None:
    """By waste per core the two eights go first; 12 cores are had for less."""
    sizes = np.array([8, 4, 12], dtype=np.int64)
    assert cheapest_of_total(sizes, np.array([8.0, 11, 18]), np.zeros(3), 12).tolist() == [2]


def test_of_equals_the_first_is_taken() -> None:
    sizes, waste = np.array([8, 8, 8, 4, 4], dtype=np.int64), np.array([5.0, 5, 5, 3, 3])
    assert cheapest_of_total(sizes, waste, np.zeros(5), 20).tolist() == [0, 1, 3]


def test_of_equal_wastes_the_pilots_that_their_user_values_least() -> None:
    sizes, none = np.array([8, 4, 4, 8], dtype=np.int64), np.zeros(4)
    assert cheapest_of_total(sizes, none, np.array([5.0, 1, 1, 2]), 8).tolist() == [1, 2]
    assert cheapest_of_total(sizes, none, np.array([-5.0, 1, 1, 2]), 8).tolist() == [0]


@given(pools, st.integers(1, 60), st.integers(-1000, 1000))
def test_raising_all_priorities_alike_changes_nothing(pool: Pool, cores: int, shift: int) -> None:
    sizes, waste, priority = pool
    total = total_to_give(sizes, cores, 10**6)
    assert np.array_equal(
        cheapest_of_total(sizes, waste, priority, total), cheapest_of_total(sizes, waste, priority + shift, total)
    )


def test_a_total_that_no_pilots_make_is_refused() -> None:
    with pytest.raises(ValueError, match="make 7 cores"):
        cheapest_of_total(np.array([8, 4], dtype=np.int64), np.zeros(2), np.zeros(2), 7)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_large_pool_is_decided(kind: str) -> None:
    """200,000 pilots of 128 sizes, any wastes, few cores or half of all (the benchmark has the time)."""
    pool = made_up(200_000, 128, kind, seed=1)
    for total in (1000, int(pool[0].sum()) // 2):
        assert pool[0][cheapest_of_total(*pool, total)].sum() == total

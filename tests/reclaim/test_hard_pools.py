"""Sizes that are chosen to make the choice hard: it always ends, near the need, and near the least waste."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import hard_pools
from drainwise.reclaim.choose.plan import IDLE
from more_examples import most_of


@pytest.mark.daemons  # large pools take their time
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.in_turn("hard pools", name)) for name in hard_pools.KINDS]
)
def test_no_sizes_make_the_choice_take_for_ever(name: str) -> None:
    """100,000 pilots: by facts less than a pilot more than the need (the benchmark holds the choice to two seconds)."""
    sizes, waste = hard_pools.pool(name)
    cores = int(sizes.sum()) // 10 | 1
    plan = hard_pools.decide(sizes, waste, cores)
    assert cores <= sizes[plan.by_facts].sum() < cores + sizes.max()
    assert cores <= sizes[plan.gone].sum() <= plan.budget[0]


@pytest.mark.parametrize("name", hard_pools.KINDS)
def test_little_is_wasted_beyond_the_least_in_small_ones(name: str) -> None:
    """As an integer solver finds it within the same extra cores; in sum of several pools."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    made, _ = hard_pools.KINDS[name]
    ours = best = 0.0
    for seed in range(most_of(3, 6)):
        sizes, waste = made(np.random.default_rng(seed), hard_pools.SMALL, hard_pools.SMALL_LARGEST)
        cores = int(sizes.sum()) // 3
        plan, price = hard_pools.decide(sizes, waste, cores), waste + IDLE * sizes
        within = LinearConstraint(sizes[None, :], cores, plan.budget[0])
        found = milp(price, constraints=within, integrality=np.ones(hard_pools.SMALL), bounds=Bounds(0, 1))
        ours, best = ours + float(price[plan.gone].sum()), best + float(found.fun)
    assert best * (1 - 1e-6) <= ours <= 1.001 * best


@pytest.mark.parametrize("sizes", [(8, 12), (6, 10, 15), (4, 6), (3, 5, 7, 64), (8,), (7, 64)])
def test_by_facts_no_more_go_than_whole_pilots_make_necessary(sizes: tuple[int, ...]) -> None:
    """Of 1,500 pilots, one size rare: exactly the smallest total that covers the need."""
    dice = np.random.default_rng(len(sizes))
    some = np.where(dice.random(1500) < 0.01, sizes[-1], dice.choice(sizes[:-1] or sizes, 1500))
    totals = 1
    for size in some.tolist():
        totals |= totals << size
    for need in dice.integers(1, some.sum(), 8).tolist():
        found = totals >> need
        least = need + (found & -found).bit_length() - 1
        plan = hard_pools.decide(some, np.rint(dice.random(1500) * 1e5), need)
        assert some[plan.by_facts].sum() == least

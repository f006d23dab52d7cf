"""What whole pilots make: equal to trying every subset."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_simulate.policies.exact_totals import cheapest_of_total, first_that_make, total_to_give

pools = st.lists(st.tuples(st.sampled_from((1, 2, 3, 7, 8, 12, 24)), st.integers(0, 20)), min_size=1, max_size=8)


@given(pools, st.integers(0, 90), st.integers(0, 90))
def test_the_total_the_first_and_the_cheapest_pilots(pool: list[tuple[int, int]], cores: int, most: int) -> None:
    sizes, cost = np.array([one for one, _ in pool], dtype=np.int64), np.array([float(one) for _, one in pool])
    sets = [np.array(one, dtype=bool) for one in itertools.product((True, False), repeat=len(pool))]
    possible = [int(sizes[one].sum()) for one in sets]
    covering = [total for total in possible if cores <= total <= most]
    below = max(total for total in possible if total <= most and total < max(cores, 1))
    total = total_to_give(sizes, cores, most)
    assert total == (min(covering) if covering and cores > 0 else below)
    making = [one for one, makes in zip(sets, possible) if makes == total]
    assert cost[cheapest_of_total(sizes, cost, total)].sum() == min(cost[one].sum() for one in making)
    assert sizes[cheapest_of_total(sizes, cost, total)].sum() == total
    first = np.isin(np.arange(len(sizes)), first_that_make(sizes, total))
    assert first.tolist() == making[0].tolist(), "the first in the order of the sets that take early ones"


def test_what_cannot_be_made_is_refused() -> None:
    sizes = np.array([8, 12])
    with pytest.raises(ValueError, match="no pilots of these sizes make 10"):
        first_that_make(sizes, 10)
    with pytest.raises(ValueError, match="no pilots of these sizes make 16"):
        cheapest_of_total(sizes, np.zeros(2), 16)

"""Places for jobs of one kind: the least value, equal to trying every choice, and to an integer solver at length."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from drainwise.room.one_kind import Offers, cheapest_places
from more_examples import more_examples

Table = list[list[tuple[int, int, int]]]

tables = st.lists(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 8), st.integers(0, 5)), max_size=4), min_size=1, max_size=5
)


def offers(table: Table) -> Offers:
    """Each place's offers as steps: so many jobs more for so many cores more at so much cost."""
    rows = []
    for place, steps in enumerate(table):
        jobs = cores = cost = 0
        for more, step_cores, step_cost in steps:
            jobs, cores, cost = jobs + more, cores + step_cores, cost + step_cost
            rows.append((place, jobs, complex(cores, cost)))
    columns = list(zip(*rows)) or [(), (), ()]
    return Offers(*(np.array(one, dtype=kind) for one, kind in zip(columns, (np.int64, np.int64, np.complex128))))


def total(it: Offers, chosen: np.typing.NDArray[np.int64]) -> tuple[float, float]:
    """Cores and cost of some offers, at most one of a place."""
    assert len(set(it.place[chosen].tolist())) == len(chosen)
    value = complex(it.value[chosen].sum())
    return value.real, value.imag


@more_examples(5)
@given(tables, st.integers(0, 14))
def test_the_choice_is_the_best_of_all(table: Table, wanted: int) -> None:
    """Fewest cores, then least cost; None where there is no room for so many."""
    it = offers(table)
    rows = [[-1, *np.flatnonzero(it.place == place).tolist()] for place in range(len(table))]
    best = None
    for choice in itertools.product(*rows):
        some = np.array([one for one in choice if one >= 0], dtype=np.int64)
        if it.jobs[some].sum() >= wanted:
            best = min(filter(None, (best, total(it, some))))
    found = cheapest_places(it, wanted)
    if found is None:
        assert best is None
    else:
        assert it.jobs[found].sum() >= wanted
        assert total(it, found) == best


@pytest.mark.parametrize("seed", range(2))
def test_at_length_the_choice_is_the_solvers(seed: int) -> None:
    """Hundreds of places with offers of several jobs each, as pilots of 8 or 12 cores give room for jobs of 5."""
    dice = np.random.default_rng(seed)
    table = [
        [(int(dice.integers(1, 4)), int(dice.integers(1, 13)), int(dice.integers(0, 1000))) for _ in range(4)]
        for _ in range(400)
    ]
    it, wanted = offers(table), 280 + seed
    found = cheapest_places(it, wanted)
    assert found is not None
    cores, cost = total(it, found)
    place = np.zeros((len(table), len(it)))
    place[it.place, np.arange(len(it))] = 1
    solved = milp(
        it.value.real * 1e6 + it.value.imag,
        constraints=[LinearConstraint(place, 0, 1), LinearConstraint(it.jobs[None, :], wanted, np.inf)],
        integrality=np.ones(len(it)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert cores * 1e6 + cost == pytest.approx(solved.fun, abs=0.5)

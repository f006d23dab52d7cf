"""What a pilot that is killed now may cost, while a need is open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.decide import open_until as threshold
from drainwise.reclaim.figures import Figures

from .facts import NOW, SETTINGS, pilot, report

HOUR = 3600


def busy(number: int, age: int, cores: int = 8) -> Pilot:
    """A pilot with one payload on all its cores that has run for `age` seconds and will not end for long."""
    said = report(float(cores), start=NOW - age, first_end=NOW + 90_000, last_end=NOW + 90_000)
    return pilot(number, said, cores=cores)


def figures(pilots: Sequence[Pilot]) -> Figures:
    return candidates_of(pilots, NOW, SETTINGS).figures


def threshold_of(it: Figures, missing: float, left: int) -> float:
    return threshold.threshold_of(it.kill_waste, it.columns.cores, it.columns.believed, missing, 0.0, left)


TWELVE = figures([busy(number, 300 * number) for number in range(12)])


def test_the_less_time_is_left_the_more_may_be_paid() -> None:
    found = [threshold_of(TWELVE, 32, left) for left in (86_400, 14_400, 7200, 3600, 900, 0)]
    assert found == sorted(found)
    assert found[0] < found[-1] == 900, "in the end what the fourth costs"


def test_the_more_are_missing_the_more_may_be_paid() -> None:
    found = [threshold_of(TWELVE, missing, HOUR) for missing in (-8, 0, 8, 32, 64, 96, 1000)]
    assert found == sorted(found)
    assert found[:2] == [0, 0] and found[-1] == 3300, "never more than what the dearest costs"
    assert threshold_of(figures([]), 8, HOUR) == 0


def test_who_reports_nothing_becomes_no_cheaper() -> None:
    silent = figures([pilot(number, started=NOW - 300 * number) for number in range(12)])
    assert threshold_of(silent, 64, HOUR) == threshold_of(silent, 64, 0) > threshold_of(TWELVE, 64, HOUR)


def test_where_a_core_serves_several_jobs_less_is_paid() -> None:
    it, columns = TWELVE, TWELVE.columns
    found = [
        threshold.threshold_of(it.kill_waste, columns.cores, columns.believed, 64, 0.0, 900, times)
        for times in (0.0, 0.5, 1.0, 3.0, 100.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] == 0, "the cheapest one alone serves all"


def test_of_those_that_end_by_themselves_less_is_paid() -> None:
    it, columns = TWELVE, TWELVE.columns
    nobody = np.zeros(12, dtype=bool)
    found = [
        threshold.threshold_of(it.kill_waste, columns.cores, nobody, 48, others, HOUR) for others in range(0, 60, 8)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] == 1500, "what the sixth costs"
    assert found[-1] == 0
    # Of 24 that come by themselves each fourth is of a pilot that is ended now: not 3 but 4 must go.
    assert threshold.threshold_of(it.kill_waste, columns.cores, nobody, 48, 24, HOUR) == 900


@given(
    st.lists(st.tuples(st.integers(0, 80_000), st.sampled_from([1, 8, 64])), max_size=12),
    st.floats(-10, 500),
    st.integers(0, 90_000),
)
def test_it_is_what_one_of_them_costs(these: list[tuple[int, int]], missing: float, left: int) -> None:
    it = figures([busy(number, age, cores) for number, (age, cores) in enumerate(these)])
    found = threshold_of(it, missing, left)
    assert found in {0.0, *(it.kill_waste / it.columns.cores).tolist()}
    assert found <= threshold_of(it, missing, 0)

"""Concurrency limits are read as the negotiator reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.demand.demand import jobs_within, largest_sum, limits_taken


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("db", {"db": 1}),
        ("DB:2, sw.Licence:0.5", {"db": 2, "sw.licence": 0.5}),
        ("db:0", {"db": 1}),
        ("db:-3 other", {"db": 1, "other": 1}),
        ("db:x", {"db": 1}),
        ("db:nan db2:inf", {"db": 1, "db2": 1}),
        ("7up, a.b.c, $(HOME), a b:", {"a": 1, "b": 1}),
        ("", {}),
        (None, {}),
        (7, {}),
    ],
)
def test_a_job_names_limits_and_what_it_takes(value: object, taken: dict[str, float]) -> None:
    assert limits_taken(value) == taken


def test_the_knob_of_a_limit_comes_before_that_of_its_group_and_of_all() -> None:
    knobs = {"db_LIMIT": "3", "CONCURRENCY_LIMIT_DEFAULT_sw": "20", "sw.b_LIMIT": "7.5"}
    assert [largest_sum(name, knobs.get) for name in ("db", "sw.a", "sw.b")] == [3, 20, 7.5]
    assert largest_sum("other", knobs.get) == math.inf
    assert largest_sum("other", {**knobs, "CONCURRENCY_LIMIT_DEFAULT": "2"}.get) == 2
    assert largest_sum("db", {"db_LIMIT": "many"}.get) == math.inf


@given(
    st.integers(0, 50),
    st.dictionaries(st.sampled_from("abc"), st.floats(0.1, 9)),
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 40)),
)
def test_as_many_jobs_start_as_every_limit_lets(jobs: int, taken: dict[str, float], left: dict[str, float]) -> None:
    most, which = jobs_within(jobs, taken, left)
    assert 0 <= most <= jobs and (which != "") == (most < jobs)
    for name, amount in taken.items():
        assert amount * most <= left.get(name, math.inf) + 1e-3
    if which:
        assert taken[which] * (most + 1) > left[which] - 1e-3

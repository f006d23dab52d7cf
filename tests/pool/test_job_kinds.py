"""What waits is told in few kinds: equal jobs together, the largest kept, the rest named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.amounts import Amounts, amounts, sum_of
from drainwise.pool.job_kinds import MOST_KINDS, JobKind, kind_name, merged

few = st.integers(0, 9)
others = st.dictionaries(st.sampled_from(["gpu:a100", "licence"]), st.integers(1, 9)).map(
    lambda it: tuple(sorted(it.items()))
)
some_amounts = st.builds(Amounts, few, few, few, few, others)


def kind(jobs: int, cores: int, account: str = "bob") -> JobKind:
    needs = amounts(cores)
    return JobKind(kind_name(account, needs, ""), account, jobs, needs, frozenset({"a"}))


def test_equal_jobs_are_one_kind_in_the_order_of_the_queue() -> None:
    found, notices = merged([kind(1, 8), kind(2, 1), kind(3, 8)])
    assert [(one.jobs, one.cores) for one in found] == [(4, 8), (2, 1)]
    assert not notices


def test_the_largest_kinds_are_kept_and_the_rest_is_named() -> None:
    found, (notice,) = merged([kind(1, cores) for cores in range(1, MOST_KINDS + 3)])
    assert [one.cores for one in found] == list(range(3, MOST_KINDS + 3))
    assert "2 kinds of waiting jobs beyond the 50 largest" in notice
    assert "bob (3 cores)" in notice


def test_jobs_that_ask_for_something_else_are_another_kind() -> None:
    names = {
        kind_name("bob", amounts(8), ""),
        kind_name("bob", amounts(8, 1024), ""),
        kind_name("bob", amounts(8), "TARGET.HasAVX"),
        kind_name("bob", amounts(8), "", 2),
        kind_name("bob", amounts(8), "", whole=True),
        kind_name("eve", amounts(8), ""),
    }
    assert len(names) == 6


@given(some_amounts, some_amounts)
def test_a_sum_covers_its_parts_and_what_is_left_completes_them(one: Amounts, two: Amounts) -> None:
    both = one + two
    assert both.covers(one)
    assert both.covers(two)
    assert both.minus(one) == sum_of([two])
    assert two.covers(one) == (not dict(one.minus(two).named()))

"""The list of orders on a node: strict in what it takes, short, and never putting a deadline off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import ActionRefused
from drainwise.htcondor.node.order_list import WITHDRAWN, deadline_of, is_endless
from drainwise.htcondor.pool.knobs import OrderEntry, orders_text, parse_orders, run_name, with_order

JOB, START, DEADLINE = "ce01.example.org#12.0#1795249000", 1795249100, 1795260000
RUN = f"{JOB}@{START}"
NOW = DEADLINE - 600
OTHER = "schedd@ce01.example.org#7.3#1795240000@1795240009"
order = OrderEntry(RUN, DEADLINE)


def test_an_order_names_job_start_and_deadline() -> None:
    assert orders_text([order, OrderEntry(OTHER, DEADLINE + 1)]) == f"{RUN}={DEADLINE} {OTHER}={DEADLINE + 1}"


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(10**8, 10**10 - 1)), max_size=5))
def test_what_is_written_reads_back_the_same(rows: list[tuple[int, int]]) -> None:
    orders = tuple(OrderEntry(f"a.b#{number}.0#1795249000@1795249100", deadline) for number, deadline in rows)
    assert parse_orders(orders_text(orders)) == orders


def test_a_run_is_job_and_start() -> None:
    assert run_name(JOB, START) == RUN
    assert run_name(None, START) is None
    assert run_name(JOB, None) is None


@pytest.mark.parametrize(
    "job",
    [
        "",
        "ce#1.0",
        f"{JOB} x",
        f'{JOB}"',
        f"{JOB}\n",
        f"\n{JOB}",
        f"$(NUM_CPUS)#{JOB}",
        JOB.replace("ce01", "ce*"),
        JOB.replace("ce01", "ce[01]"),
        JOB.replace("12", "\u0661\u0662"),  # arabic digits
        f"{JOB}=1795260000",
        "x" * 300 + JOB,
    ],
)
def test_a_job_id_that_is_not_htcondors_is_no_run_and_never_an_order(job: str) -> None:
    """HOSTILE 31, 32, 36, 44: blanks, quotes, macros, patterns and newlines would be more than an order."""
    assert run_name(job, START) is None
    with pytest.raises(ActionRefused):
        orders_text([OrderEntry(f"{job}@{START}", DEADLINE)])


times = st.integers(10**9, 4 * 10**9)
runs = st.builds(
    "{}#{}.0#{}@{}".format, st.sampled_from(["ce01.example.org", "a-1"]), st.integers(0, 10**6), times, times
)


@given(st.text(max_size=60) | runs | st.builds("{}{}".format, runs, st.text(max_size=2)))
def test_only_orders_are_ever_written(text: str) -> None:
    try:
        written = orders_text([OrderEntry(text, DEADLINE)])
    except ActionRefused:
        return
    assert parse_orders(written) == (OrderEntry(text, DEADLINE),)
    assert " " not in written


@pytest.mark.parametrize("deadline", [-1, 1, 10**12])
def test_a_deadline_that_is_no_time_of_this_century_is_refused(deadline: int) -> None:
    with pytest.raises(ActionRefused):
        orders_text([OrderEntry(RUN, deadline)])


@given(st.text())
def test_whatever_stands_in_the_knob_can_be_read(text: str) -> None:
    parse_orders(text)


def test_what_is_no_order_is_passed_over() -> None:
    assert parse_orders(f"  garbage {order}  x=1 {RUN}=soon\t") == (order,)


def test_zeros_before_a_deadline_mean_nothing_and_hinder_no_other_order() -> None:
    """As the execute node's expressions read them; a deadline of 1970 is none, and the list can still be written."""
    present = parse_orders(f"{OTHER}=0{DEADLINE} {OTHER}=00 {OTHER}=0012345678 {OTHER}=000{DEADLINE + 9}")
    assert present == (OrderEntry(OTHER, DEADLINE), OrderEntry(OTHER, WITHDRAWN), OrderEntry(OTHER, DEADLINE + 9))
    assert orders_text(with_order(present[:1], order, {RUN, OTHER}, NOW)) == f"{OTHER}={DEADLINE} {RUN}={DEADLINE}"


def test_a_deadline_has_nine_or_ten_digits() -> None:
    words = " ".join(f"{OTHER}={'9' * digits}" for digits in range(8, 12))
    assert [one.deadline for one in parse_orders(words)] == [999_999_999, 9_999_999_999]


def test_more_than_five_years_are_left_only_by_a_withdrawal() -> None:
    """Its retirement lasts ten; some of it has passed when it is read."""
    assert [is_endless(left) for left in (None, 157_680_000, 157_680_001)] == [False, False, True]


@given(st.text(alphabet="0123456789= \t#@.-ab\u0661", max_size=80), st.sampled_from([RUN, OTHER]))
def test_whatever_the_list_has_another_order_can_be_written(text: str, run: str) -> None:
    present = parse_orders(f"{text} {OTHER}={text} {OTHER}=0{DEADLINE - 1}")
    new = OrderEntry(run, DEADLINE - 2)
    assert deadline_of(run, orders_text(with_order(present, new, {OTHER}, NOW))) == new.deadline


def test_orders_of_runs_that_have_ended_are_dropped() -> None:
    """The list stays about as short as the node's list of jobs: an hour after its deadline nobody asks any more."""
    ended = OrderEntry(OTHER, DEADLINE)
    assert with_order([ended], order, {RUN}, DEADLINE + 3601) == (order,)
    assert with_order([ended], order, {RUN}, DEADLINE + 3600) == (ended, order)
    assert with_order([ended], order, {RUN, OTHER}, DEADLINE + 3601) == (ended, order)
    assert with_order([OrderEntry(OTHER, WITHDRAWN)], order, {RUN}, DEADLINE - 7200) == (order,)


def test_the_latest_deadline_stands_last() -> None:
    """The node's CLAIM_WORKLIFE takes it from there."""
    later = OrderEntry(OTHER, DEADLINE + 60)
    assert with_order([later], order, {RUN, OTHER}, NOW) == (order, later)
    assert with_order([later], OrderEntry(RUN, WITHDRAWN), {RUN, OTHER}, NOW)[-1] == later


def test_an_order_is_withdrawn_and_may_be_given_anew() -> None:
    """Whoever need not go may be asked for any deadline; the entry that took it back stays until then."""
    withdrawn = OrderEntry(RUN, WITHDRAWN)
    assert orders_text([withdrawn]) == f"{RUN}=0"
    assert parse_orders(f"{RUN}=0 {RUN}=1") == (withdrawn,)
    assert with_order([order], withdrawn, {RUN}, NOW) == (withdrawn,)
    assert with_order([withdrawn], withdrawn, {RUN}, NOW) == (withdrawn,)
    later = OrderEntry(RUN, DEADLINE + 500)
    assert with_order([withdrawn], later, {RUN}, NOW) == (later,)
    assert deadline_of(RUN, f"{order} {withdrawn} {OTHER}={DEADLINE}") == WITHDRAWN
    assert deadline_of(OTHER, str(order)) is None


def test_a_deadline_may_come_nearer() -> None:
    nearer = OrderEntry(RUN, DEADLINE - 100)
    assert with_order([order], nearer, {RUN}, NOW) == (nearer,)
    assert with_order([order], order, {RUN}, NOW) == (order,)


def test_a_deadline_is_never_put_off() -> None:
    with pytest.raises(ActionRefused, match=f"already ordered to end by {DEADLINE}"):
        with_order([order], OrderEntry(RUN, DEADLINE + 1), {RUN}, NOW)

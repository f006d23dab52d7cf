"""A lease's core-seconds are accounted for to the last millisecond."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.lease_record import FAILED, LOST, USEFUL, LeaseUse

CORES = 64
START = 1_795_249_000.0

moments = st.floats(0, 1e6, allow_nan=False)
payloads = st.tuples(st.sampled_from((USEFUL, FAILED, LOST)), st.integers(1, CORES), moments, moments)


@given(st.lists(payloads, max_size=30), moments)
def test_the_sums_make_the_lease(booked: list[tuple[str, int, float, float]], length: float) -> None:
    """lease = useful + failed + lost + idle, exactly, as printed too, and the lease is cores × length."""
    account = LeaseUse(CORES, START)
    for kind, cores, one, other in booked:
        account.add(kind, cores, START + min(one, other), START + max(one, other))
    spent = account.at(START + length)
    assert abs(spent.lease - CORES * length) <= CORES * 0.001
    parts = [spent.useful, spent.failed, spent.lost, spent.idle]
    assert sum(Decimal(repr(part)) for part in parts) == Decimal(repr(spent.lease))
    for kind in (USEFUL, FAILED, LOST):
        total = sum(cores * abs(one - other) for name, cores, one, other in booked if name == kind)
        assert abs(getattr(spent, kind) - total) <= 0.001 * CORES * len(booked) + 1e-6
        assert account.payloads[kind] == sum(name == kind for name, *_ in booked)


@given(st.lists(st.tuples(st.booleans(), moments, moments), max_size=20), moments)
def test_what_a_drain_costs(ran: list[tuple[bool, float, float]], mark: float) -> None:
    """Since the mark: idle is what no payload covers; lost is all of the payloads stopped since then."""
    ran = [(stopped, float(int(min(one, other))), float(int(max(one, other)))) for stopped, one, other in ran]
    mark, end = float(int(mark)), 1e6
    account = LeaseUse(1000, START)
    for stopped, one, other in ran:
        if other <= mark:
            account.add(LOST if stopped else USEFUL, 2, START + one, START + other)
    account.mark(START + mark)
    for stopped, one, other in ran:
        if other > mark:
            account.add(LOST if stopped else USEFUL, 2, START + one, START + other)
    idle, lost = account.since_mark(START + end)
    covered = sum(2 * max(0.0, other - max(one, mark)) for _, one, other in ran)
    assert idle == 1000 * (end - mark) - covered
    assert lost == sum(2 * (other - one) for stopped, one, other in ran if stopped and other > mark)


def test_a_clock_that_is_set_changes_no_duration() -> None:
    """The lease is as long after the clock was set as before."""
    account = LeaseUse(4, START)
    account.mark(START + 10)
    account.add(USEFUL, 2, START + 10, START + 20)
    account.shift(3600)
    spent = account.at(START + 3600 + 20)
    assert (spent.lease, spent.useful, spent.idle) == (80, 20, 60)
    assert account.since_mark(START + 3600 + 20) == (20, 0)
    assert account.start == START + 3600

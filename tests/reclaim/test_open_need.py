"""A need that stays open: who is taken now, who goes on, what is withdrawn, and that in the end it is met."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot
from drainwise.reclaim.history import History
from drainwise.reclaim.open_need import NeedStep, OpenNeed, need_step

from .facts import NOW, SETTINGS, STARTED, pilot, report, reports

CYCLE = 300
SITE = dataclasses.replace(SETTINGS, margin=0, grace=86400)


def busy(number: int, age: int, **facts: int) -> Pilot:
    """A pilot of 8 cores with one payload that has run for `age` seconds and will not end for long."""
    said = report(8.0, start=NOW - age, first_end=NOW + 90_000, last_end=NOW + 90_000)
    return pilot(number, said, **facts)  # type: ignore[arg-type]


def step(
    pilots: Sequence[Pilot], cores: int, left: int, paused: Sequence[str] = (), waiting_cost: float = 0.0
) -> NeedStep:
    return need_step(pilots, OpenNeed(cores, NOW + left, CYCLE), NOW, SITE, History(), paused, waiting_cost)


def taken(found: NeedStep) -> list[str]:
    return sorted(found.candidates.pilots[row].run for row in found.rows)


OLD = [busy(number, 15_000) for number in range(9)]
YOUNG = busy(9, 60)


def test_who_has_just_begun_is_taken_and_the_others_go_on() -> None:
    """Two pilots are wanted within two hours: another one will be as cheap until then."""
    assert taken(step([*OLD, YOUNG], 16, 7200)) == [YOUNG.run]


def test_when_the_time_is_over_the_cheapest_go_whatever_they_cost() -> None:
    assert len(taken(step([*OLD, YOUNG], 16, 0))) == 2
    assert taken(step([*OLD, YOUNG], 8, CYCLE)) == [YOUNG.run]


def test_where_waiting_is_dear_all_go_at_once() -> None:
    """A waiting core-hour counts as much as five wasted ones: two hours of it are more than any of these pilots."""
    assert len(taken(step([*OLD, YOUNG], 16, 7200, waiting_cost=0.02))) == 1
    assert len(taken(step([*OLD, YOUNG], 16, 7200, waiting_cost=5.0))) == 2


def test_the_price_rises_as_the_time_runs_out() -> None:
    pilots = [busy(number, 300 * number) for number in range(12)]
    prices = [step(pilots, 32, left).price for left in (86_400, 14_400, 7200, 3600, 900, 0)]
    assert prices == sorted(prices)
    assert prices[0] < prices[-1]


def test_a_lease_that_ends_in_time_is_counted_and_its_pilot_left_alone() -> None:
    ending = busy(1, 60, lease_end=NOW + 3000)
    assert taken(step([ending, YOUNG], 8, 7200)) == []
    assert taken(step([ending, YOUNG], 16, 7200)) == [YOUNG.run]


def test_an_order_that_has_become_far_worse_than_another_pilot_is_withdrawn() -> None:
    """Its payload was to end and does not; meanwhile another pilot has nothing to lose."""
    late = dataclasses.replace(busy(1, 15_000), deadline=NOW + 3600)
    found = step([late, YOUNG], 8, 7200)
    assert (found.withdrawn, taken(found)) == ((late.run,), [YOUNG.run])


def test_an_order_that_is_a_little_worse_stands() -> None:
    ordered = dataclasses.replace(busy(1, 200), deadline=NOW + 3600)
    found = step([ordered, YOUNG], 8, 7200)
    assert (found.withdrawn, taken(found)) == ((), [])


def test_what_nobody_needs_any_more_is_withdrawn() -> None:
    ordered = dataclasses.replace(busy(1, 200), deadline=NOW + 3600)
    assert step([ordered, YOUNG], 0, 7200).withdrawn == (ordered.run,)


def test_who_was_released_is_not_asked_again_soon() -> None:
    assert taken(step([*OLD, YOUNG], 8, 0, paused=[YOUNG.run])) != [YOUNG.run]


some_pilots = st.lists(
    st.tuples(
        reports(),
        st.sampled_from([1, 4, 8, 16]),
        st.none() | st.integers(NOW + 1, NOW + 7000),
        st.none() | st.integers(NOW + 1, NOW + 90_000),
    ),
    max_size=8,
)


def made(these: list[tuple[PilotReport | None, int, int | None, int | None]]) -> list[Pilot]:
    return [
        pilot(number, said, cores=cores, deadline=deadline, lease_end=end)
        for number, (said, cores, deadline, end) in enumerate(these)
    ]


@given(some_pilots, st.integers(0, 40), st.integers(0, 90_000), st.floats(0, 2))
def test_never_more_cores_than_are_missing_and_never_twice(
    these: list[tuple[PilotReport | None, int, int | None, int | None]], cores: int, left: int, waiting_cost: float
) -> None:
    """Whatever they claim: with what stands no more than the need, and nobody who has an order gets one."""
    pilots = made(these)
    found = step(pilots, cores, left, waiting_cost=waiting_cost)
    by_run = {one.run: one for one in pilots}
    assert all(by_run[run].deadline is None for run in taken(found))
    assert all(by_run[run].deadline is not None for run in found.withdrawn)
    stands = sum(one.cores for one in pilots if one.deadline is not None and one.run not in found.withdrawn)
    given_now = sum(by_run[run].cores for run in taken(found))
    assert given_now <= max(0, cores - stands)


@given(some_pilots, st.integers(0, 40), st.integers(CYCLE + 1, 90_000))
def test_nobody_is_asked_and_released_by_the_same_facts(
    these: list[tuple[PilotReport | None, int, int | None, int | None]], cores: int, left: int
) -> None:
    """What one cycle orders, and what it leaves standing, the next does not withdraw when nothing has changed."""
    pilots = made(these)
    first = step(pilots, cores, left)
    now_ordered = {first.candidates.pilots[row].run: first.candidates[row].best.deadline for row in first.rows}
    after = [
        dataclasses.replace(one, deadline=max(NOW + 1, now_ordered[one.run]))
        if one.run in now_ordered
        else dataclasses.replace(one, deadline=None)
        if one.run in first.withdrawn
        else one
        for one in pilots
    ]
    second = step(after, cores, left, paused=first.withdrawn)
    assert not set(second.withdrawn) & set(now_ordered)


def test_the_last_cycle_serves_the_need_as_far_as_pilots_fit() -> None:
    pilots = [pilot(number, cores=8, started=STARTED + number) for number in range(6)]
    assert sum(8 for _ in taken(step(pilots, 44, 0))) == 40

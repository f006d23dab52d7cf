"""Priorities of Grid Engine for dates: the order of those that wait is the order of their dates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.sge.priority_steps import PrioritySteps

dates = st.lists(st.integers(0, 10_000), min_size=1, max_size=60)


@given(dates, st.integers(0, 200))
def test_none_stands_above_a_sooner_one(numbers: list[int], span: int) -> None:
    order = PrioritySteps(-10, -10 - span)
    steps = {}
    for place, date in enumerate(numbers):
        steps[place] = order.step_for(date)
        assert -10 - span <= steps[place] <= -10
        order.put(str(place), date, steps[place])
    for one, date in enumerate(numbers):
        for other, later in enumerate(numbers):
            assert date >= later or steps[one] >= steps[other]


def test_jobs_in_order_stand_on_steps_of_their_own_the_first_at_the_top() -> None:
    order = PrioritySteps(0, -100)
    steps = []
    for place in range(10):
        steps.append(order.step_for(place))
        order.put(str(place), place, steps[-1])
    assert steps == sorted(set(steps), reverse=True) and steps[0] == 0


@given(dates, st.lists(st.integers(-300, 100), min_size=60, max_size=60), st.data())
def test_after_new_dates_the_order_is_theirs(numbers: list[int], stood: list[int], data: st.DataObject) -> None:
    """Wherever they stood: somebody else may have moved them, a launcher before this one have put them there."""
    order = PrioritySteps(0, -200)
    steps = {}
    for place, date in enumerate(numbers):
        steps[str(place)] = stood[place]
        order.put(str(place), date, stood[place])
    new = {str(place): float(data.draw(st.integers(0, 10_000))) for place in range(0, len(numbers), 2)}
    for one, step in order.to_lower(new).items():
        assert -200 <= step < steps[one]  # users may lower priorities alone
        steps[one] = step
        order.lowered(one, step)
    assert order.to_lower({}) == {}
    told = {**{str(place): date for place, date in enumerate(numbers)}, **new}
    assert all(
        steps[one] >= steps[other] or steps[one] < -200 for one in told for other in told if told[one] < told[other]
    )


def test_what_keeps_its_order_is_not_told_again() -> None:
    order = PrioritySteps(0, -100)
    for one, date in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        order.put(one, date, order.step_for(date))
    assert order.to_lower({"a": 0.5, "b": 2.5, "unknown": 1.0}) == {}
    assert set(order.to_lower({"c": 0.1})) == {"a", "b"}


def test_those_of_an_earlier_launcher_are_put_in_order_once_their_dates_are_told() -> None:
    order = PrioritySteps(0, -100)
    order.set_waiting({"old": -3, "older": -40})
    assert order.step_for(5.0) == 0  # nobody knows yet who goes before whom
    order.put("new", 5.0, 0)
    assert order.to_lower({"old": 7.0, "older": 3.0}) == {"new": -41, "old": -42}


def test_those_that_have_begun_make_room() -> None:
    order = PrioritySteps(0, -4)
    for place in range(9):
        order.put(str(place), place, order.step_for(place))
    assert order.step_for(99.0) == -4
    order.set_waiting({})
    assert order.step_for(99.0) == 0

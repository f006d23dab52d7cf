"""Draft row 3.8: after False became True again no other value changes for a significant time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.workload import RestingValues
from drainwise.pilotad.report import PilotReport

T0 = 1_795_249_000
REST = 600


def report(now: int, can_postpone: bool, used: float) -> PilotReport:
    return PilotReport(now, used, now - 5, now + 50, now + 90, now + 100, used * 10, 30.0, 1, can_postpone)


def values(one: PilotReport) -> dict[str, Any]:
    """All but the heartbeat and the flag itself."""
    return {
        name: getattr(one, name)
        for name in PilotReport.__match_args__
        if name not in {"heartbeat", "can_postpone_last_job"}
    }


def test_values_rest_after_the_pilot_took_its_draining_back() -> None:
    """The heartbeat goes on, the flag is right at once, and when the rest is over all is as it is."""
    resting = RestingValues(REST)
    draining = resting.stated(report(T0, False, 4.0), T0)
    for age in (1, 2, 300, REST):
        said = resting.stated(report(T0 + age, True, 6.0), T0 + age)
        assert (said.heartbeat, said.can_postpone_last_job) == (T0 + age, True)
        assert values(said) == values(draining)
    assert resting.until == T0 + 1 + REST
    fresh = report(T0 + 1 + REST, True, 8.0)
    assert resting.stated(fresh, T0 + 1 + REST) == fresh


def test_a_pilot_that_drains_again_says_how_it_is() -> None:
    """At once, with all values; and the next rest begins anew."""
    resting = RestingValues(REST)
    resting.stated(report(T0, False, 4.0), T0)
    resting.stated(report(T0 + 1, True, 6.0), T0 + 1)
    again = report(T0 + 2, False, 7.0)
    assert resting.stated(again, T0 + 2) == again
    said = resting.stated(report(T0 + REST, True, 8.0), T0 + REST)
    assert (values(said), resting.until) == (values(again), T0 + 2 * REST)


def test_a_clock_that_was_set_ends_the_rest() -> None:
    """The times that were stated belong to another clock."""
    resting = RestingValues(REST)
    resting.stated(report(T0, False, 4.0), T0)
    resting.stated(report(T0 + 1, True, 6.0), T0 + 1)
    resting.end()
    fresh = report(T0 + 2, True, 8.0)
    assert resting.stated(fresh, T0 + 2) == fresh


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=30))
def test_nothing_changes_within_the_rest(events: list[tuple[int, bool]]) -> None:
    """Whatever happens in whatever order: after a False that became True only another False ends the rest early."""
    resting, now, before, since = RestingValues(REST), T0, None, None
    for number, (pause, can_postpone) in enumerate(events):
        now += pause
        said = resting.stated(report(now, can_postpone, float(number)), now)
        assert said.can_postpone_last_job is can_postpone
        if not can_postpone:
            since = None
        elif before is not None and not before.can_postpone_last_job:
            since = now
        if before is not None and since is not None and now < since + REST:
            assert values(said) == values(before)
        else:
            assert values(said) == values(report(now, can_postpone, float(number)))
        before = said

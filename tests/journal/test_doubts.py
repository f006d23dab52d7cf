"""Orders that nobody answered: on their way for a bounded time, found when they stand, else not counted."""

from __future__ import annotations

import dataclasses

import pytest

from drainwise.journal.event import Event, Outcome
from drainwise.journal.memory import Memory, ended_events
from drainwise.pool.facts import Pilot
from drainwise.reclaim.history import NodeFault, PastOrder

from .facts import FIRST, NOW, SECOND, THIRD, ordered, orders, remembering, snapshot

IN_DOUBT = 600
"""Seconds for which an order that nobody answered may still be carried out."""
DEADLINE = orders()[0]["deadline"]


def look(memory: Memory, now: int, *pilots: Pilot) -> list[Event]:
    """What one cycle at `now` learns, which is noted."""
    seen = dataclasses.replace(snapshot(*(pilots or (FIRST, SECOND, THIRD))), taken=now)
    found: list[Event] = list(ended_events(memory, {}, seen, now))
    for event in found:
        memory.note(event)
    return found


def one_unanswered() -> Memory:
    return remembering(*orders(snapshot(FIRST, deficit=8), outcome=Outcome.UNANSWERED))


def test_it_counts_as_ordered_and_as_on_its_way_until_something_tells() -> None:
    memory = one_unanswered()
    history = memory.history(NOW)
    assert history.orders == (PastOrder(NOW, "alice", 8),)
    assert (history.unanswered, history.failed) == ({FIRST.run: DEADLINE}, {})
    assert memory.open_orders() == {}


def test_two_looks_that_are_apart_and_show_no_deadline_tell_that_it_was_not_done() -> None:
    """The first may come before what a socket holds is carried out. It is the pilot's fault in no way."""
    memory = one_unanswered()
    assert [look(memory, NOW + seconds) for seconds in (60, 89)] == [[], []]
    [event] = look(memory, NOW + 90)
    assert (event["event"], event["outcome"], event["run"], event["time"]) == (
        "order",
        Outcome.NOT_DONE,
        FIRST.run,
        NOW,
    )
    history = memory.history(NOW + 90)
    assert (history.orders, history.unanswered, history.failed, history.nodes) == ((), {}, {}, {})
    assert look(memory, NOW + 200) == [], "once"


@pytest.mark.parametrize("before", [(), (60, 90)])
def test_where_its_deadline_shows_it_was_given(before: tuple[int, ...]) -> None:
    """Also when it had counted as not done: then it is in the books again, from the time when it was sent."""
    memory = one_unanswered()
    for seconds in before:
        look(memory, NOW + seconds)
    [found] = look(memory, NOW + 120, ordered(FIRST), SECOND)
    assert (found["outcome"], found["run"], found["time"], found["found"]) == (Outcome.DONE, FIRST.run, NOW, NOW + 120)
    assert set(memory.open_orders()) == {FIRST.run}
    history = memory.history(NOW + 120)
    assert (history.orders, history.unanswered) == ((PastOrder(NOW, "alice", 8),), {})
    assert look(memory, NOW + 130, ordered(FIRST), SECOND) == []


def test_a_pilot_that_was_to_be_ended_at_once_and_is_being_ended_was_ordered() -> None:
    [event] = orders(snapshot(FIRST, deficit=8), outcome=Outcome.UNANSWERED)
    leaving = dataclasses.replace(FIRST, leaving=True)
    [found] = look(remembering({**event, "kind": "kill"}), NOW + 60, leaving)
    assert found["outcome"] == Outcome.DONE
    assert look(remembering(event), NOW + 60, leaving) == [], "somebody else may end it"


def test_a_node_that_is_not_heard_of_tells_nothing_for_a_bounded_time() -> None:
    """The collector goes on showing what a node said before it was stopped."""
    memory = one_unanswered()
    stopped = dataclasses.replace(FIRST, heard=NOW - 5)
    for seconds in range(60, IN_DOUBT + 1, 60):
        assert look(memory, NOW + seconds, stopped, SECOND) == []
    assert memory.history(NOW + IN_DOUBT).unanswered == {FIRST.run: DEADLINE}
    [event] = look(memory, NOW + IN_DOUBT + 1, stopped, SECOND)
    assert event["outcome"] == Outcome.NOT_DONE
    [found] = look(memory, NOW + 900, dataclasses.replace(ordered(FIRST), heard=NOW + 890), SECOND)
    assert found["outcome"] == Outcome.DONE, "it was carried out when the node went on"


def test_a_node_that_is_heard_of_again_without_the_order_did_not_take_it() -> None:
    memory = one_unanswered()
    heard = [look(memory, NOW + s, dataclasses.replace(FIRST, heard=NOW + s - 20), SECOND) for s in (10, 60, 70, 91)]
    assert [[event["outcome"] for event in events] for events in heard] == [[], [], [], [Outcome.NOT_DONE]]


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.UNREACHABLE, Outcome.UNANSWERED])
def test_a_node_that_took_no_order_is_remembered_until_it_takes_one(outcome: str) -> None:
    [event] = orders(snapshot(FIRST, deficit=8), outcome=outcome)
    memory = remembering({**event, "only": FIRST.node})
    fault = NodeFault(NOW, 1, outcome == Outcome.DENIED)
    assert memory.history(NOW + 5).nodes == {FIRST.node: fault}
    memory.note({**event, "only": FIRST.node, "time": NOW + 9})
    assert memory.history(NOW + 9).nodes == {FIRST.node: dataclasses.replace(fault, time=NOW + 9, count=2)}
    memory.note({**event, "outcome": Outcome.SKIPPED})
    assert len(memory.history(NOW + 9).nodes) == 1
    memory.note({**event, "outcome": Outcome.DONE})
    assert memory.history(NOW + 9).nodes == {}


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.UNREACHABLE])
def test_a_batch_system_that_takes_no_order_is_no_fault_of_a_pilot_or_a_node(outcome: str) -> None:
    history = remembering(*orders(outcome=outcome)).history(NOW + 1)
    assert (history.orders, history.failed, history.unanswered, history.nodes) == ((), {}, {}, {})


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.FAILED])
def test_what_was_refused_for_a_run_is_remembered_as_long_as_it_runs(outcome: str) -> None:
    """FAILED is what older journals say."""
    memory = remembering(*orders(snapshot(FIRST, deficit=8), outcome=outcome))
    assert memory.history(NOW + 60).failed == {FIRST.run: NOW}
    look(memory, NOW + 60, SECOND)
    assert memory.history(NOW + 60).failed == {}


def test_a_clock_that_was_set_back_keeps_nobody_for_longer() -> None:
    memory, early = one_unanswered(), NOW - 5000
    found = [look(memory, early + seconds) for seconds in (10, 60, 91)]
    assert [[event["outcome"] for event in events] for events in found] == [[], [], [Outcome.NOT_DONE]]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.DENIED])
def test_what_was_refused_ahead_of_the_clock_counts_from_now(outcome: str) -> None:
    """HOSTILE 53: else a run, or a node, would be left alone for as long as the clock was ahead."""
    memory = remembering(*({**event, "only": FIRST.node} for event in orders(outcome=outcome, now=NOW + 31_000_000)))
    for now in (NOW, NOW + 600):
        look(memory, now)
        history = memory.history(now)
        memory.history(now - 60)
        assert memory.history(now) == history, "asking changes nothing"
        assert {*history.failed.values(), *(one.time for one in history.nodes.values())} == {NOW}

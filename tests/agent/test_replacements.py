"""A loop replaces an order that has become the worse choice by far; nothing goes wrong wherever it is killed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals, Cycle
from drainwise.facts.errors import ActionRefused
from drainwise.journal.explain import Sought, explain, in_words
from drainwise.journal.memory import Memory
from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.history import PAUSE

from .memory_pool import NOW, SETTINGS, AlicesPool, Killed, Lines

SITE = replace(SETTINGS, policy="open-need", waiting_cost=0.02)


def cycle(pool: AlicesPool, memory: Memory, journal: Lines | None = None, now: int = NOW, **more: Any) -> Cycle:
    arguments: dict[str, Any] = {"acting": True, "clock": lambda: now, **more}
    return AgentCycle(pool, SITE, memory, journal, **arguments).run()


def says(pool: AlicesPool, number: int, used: float, end: int, now: int = NOW) -> str:
    """Let a pilot say so many cores in use, until then; return its run."""
    [run] = [run for run in pool.pilots if run.startswith(f"ce#{number}.")]
    said = PilotReport(now, used, now - 60, end, end, add_uncom_time=0.0, add_final_exp_waste=0.0)
    pool.pilots[run] = replace(pool.pilots[run], report=said)
    return run


def one_order(pool: AlicesPool, memory: Memory, journal: Lines | None = None) -> str:
    """Let bob's need of 8 cores be served by pilot 1; it is late then, and pilot 3 has nothing to lose any more."""
    first = says(pool, 1, 8.0, NOW + 600)
    cycle(pool, memory, journal)
    assert pool.runs() == [first]
    says(pool, 1, 1.0, NOW + 90_000)
    return first


def test_the_order_is_withdrawn_first_and_the_other_one_given_in_the_same_cycle() -> None:
    pool, memory, journal = AlicesPool(wanted=8), Memory(), Lines()
    first = one_order(pool, memory, journal)
    other = says(pool, 3, 8.0, NOW + 60)
    done = cycle(pool, memory, journal)
    assert pool.acts[1:] == [("withdrawn", first), ("ordered", other)]
    assert done.outcome is not None and done.outcome.exit_code == 0
    assert set(memory.open_orders()) == {other}
    [withdrawal] = [event for event in journal.events if event["event"] == "withdrawal"]
    assert withdrawal["instead"] == [other]
    assert cycle(pool, memory, journal).outcome == replace(done.outcome, acts=(), withdrawn=())


def test_a_loop_finds_it_twice_before_it_acts() -> None:
    pool, memory, confirmed = AlicesPool(wanted=8), Memory(), ConfirmedWithdrawals()
    first = one_order(pool, memory)
    other = says(pool, 3, 8.0, NOW + 60)
    seen = cycle(pool, memory, confirmed=confirmed)
    assert pool.acts[1:] == [] and seen.plan is not None and not seen.plan.orders
    cycle(pool, memory, confirmed=confirmed)
    assert pool.acts[1:] == [("withdrawn", first), ("ordered", other)]


def test_an_order_that_cannot_be_withdrawn_stands_and_nobody_goes_in_its_place() -> None:
    pool, memory, confirmed = AlicesPool(wanted=8), Memory(), ConfirmedWithdrawals()
    one_order(pool, memory)
    says(pool, 3, 8.0, NOW + 60)
    pool.faults["withdraw_order"] = ActionRefused("retirement cannot be withdrawn")
    tried = []
    for _ in range(4):
        done = cycle(pool, memory, confirmed=confirmed)
        tried.append(0 if done.outcome is None else len(done.outcome.withdrawn))
    assert (tried, pool.acts[1:]) == ([0, 1, 0, 0], [])


def test_who_was_released_is_not_asked_again_within_an_hour_also_by_the_next_agent() -> None:
    """The other one has gone, bob waits for 8 cores more, and the first is the cheapest by now."""
    pool, memory, journal = AlicesPool(wanted=8), Memory(), Lines()
    first = one_order(pool, memory, journal)
    says(pool, 3, 8.0, NOW + 60)
    cycle(pool, memory, journal)
    pool.wanted = 16
    for now in (NOW + 120, NOW + PAUSE - 1, NOW + PAUSE):
        says(pool, 1, 8.0, now + 60, now)
        fresh = Memory()
        for event in journal.events:
            fresh.note(event)
        plan = cycle(pool, fresh, None, now, acting=False).plan
        assert plan is not None
        assert (first in {order.pilot.run for order in plan.orders}) == (now >= NOW + PAUSE)


def test_explain_tells_both(tmp_path: Any) -> None:
    import json

    pool, memory, journal = AlicesPool(wanted=8), Memory(), Lines()
    first = one_order(pool, memory, journal)
    other = says(pool, 3, 8.0, NOW + 60)
    cycle(pool, memory, journal)
    path = tmp_path / "journal"
    path.write_text("".join(json.dumps(event) + "\n" for event in journal.events))
    [story], [instead] = explain([str(path)], Sought(first)), explain([str(path)], Sought(other))
    assert "the order was withdrawn: another pilot costs less by far: slot1_3@n " in in_words(story)[-1]
    words = "\n".join(in_words(instead))
    assert f"why     in place of {first}, which costs more by far" in words
    assert "in place of slot1_1@n, whose order would cost" in words


@pytest.mark.daemons
@given(kill_at=st.integers(2, 40), forgets=st.booleans())
def test_wherever_it_is_killed_no_more_go_than_are_wanted(kill_at: int, forgets: bool) -> None:
    pool, memory, journal = AlicesPool(wanted=8), Memory(), Lines()
    first = one_order(pool, memory, journal)
    other = says(pool, 3, 8.0, NOW + 60)
    pool.kill_at = pool.calls * 2 + kill_at
    try:
        cycle(pool, memory, journal)
    except Killed:
        assert sum(one.deadline is not None for one in pool.pilots.values()) <= 1
    pool.kill_at = None
    fresh = Memory()
    for event in [] if forgets else journal.events:
        fresh.note(event)
    for _ in range(3):
        assert cycle(pool, fresh, journal).fault == ""
        assert sum(one.deadline is not None for one in pool.pilots.values()) == 1
    assert pool.pilots[other].deadline is not None
    assert pool.acts[1:].count(("ordered", first)) == 0


def test_since_when_a_need_is_open_is_remembered_by_the_next_agent() -> None:
    """Written once; forgotten when nobody waits; a fresh agent without a journal begins now."""
    pool, memory, journal = AlicesPool(wanted=8), Memory(), Lines()
    cycle(pool, memory, journal)
    cycle(pool, memory, journal, NOW + 60)
    assert [event["since"] for event in journal.events if event["event"] == "need"] == [
        [{"account": "b", "since": NOW}]
    ]
    fresh = Memory()
    for event in journal.events:
        fresh.note(event)
    assert fresh.history(NOW + 600).since == {"b": NOW}
    pool.wanted = 0
    cycle(pool, fresh, journal, NOW + 600)
    assert fresh.history(NOW + 600).since == {}
    pool.wanted = 8
    plan = cycle(pool, Memory(), None, NOW + 700, acting=False).plan
    assert plan is not None and plan.since == {"b": NOW + 700}

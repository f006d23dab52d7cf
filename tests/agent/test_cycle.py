"""One cycle: what it does, in which order, and what it leaves alone when anything is in doubt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.agent.cycle import OLDEST_SNAPSHOT, AgentCycle, AskAgain, ConfirmedWithdrawals, Cycle
from drainwise.agent.loop import rest
from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolUnreachable, RightsRefused
from drainwise.journal.memory import Memory
from drainwise.pool.facts import Pilot, Snapshot

from .memory_pool import NOW, SETTINGS, AlicesPool, Killed, Lines


def cycle(pool: AlicesPool, memory: Memory | None = None, journal: Lines | None = None, **more: Any) -> Cycle:
    """A cycle that acts, unless `more` says otherwise."""
    arguments: dict[str, Any] = {"acting": True, "clock": lambda: NOW, **more}
    return AgentCycle(pool, SETTINGS, memory or Memory(), journal, **arguments).run()


def test_who_is_over_quota_is_ordered_once_and_it_is_written_down_before_and_after() -> None:
    pool, journal, memory = AlicesPool(), Lines(), Memory()
    done = cycle(pool, memory, journal)
    assert (done.fault, done.acting, len(pool.acts)) == ("", True, 2)
    assert journal.kinds() == ["decision", "demand", "order", "order"]
    assert set(memory.open_orders()) == set(pool.runs())
    again = cycle(pool, memory, journal)
    assert again.outcome is not None and again.outcome.acts == () and len(pool.acts) == 2


def test_a_dry_run_decides_and_touches_nothing() -> None:
    pool, journal = AlicesPool(), Lines()
    pool.left_to_do = ["something"]
    done = cycle(pool, journal=journal, acting=False)
    assert done.plan is not None and len(done.plan.orders) == 2
    assert (done.outcome, done.acting, pool.acts, pool.left_to_do) == (None, False, [], ["something"])
    assert [event["acting"] for event in journal.events] == [False]


def test_a_look_without_a_journal_writes_nowhere() -> None:
    assert cycle(AlicesPool(), acting=False).plan is not None


@pytest.mark.parametrize("method", ["snapshot"])
def test_no_answer_is_no_act(method: str) -> None:
    """HOSTILE 54."""
    pool, journal = AlicesPool(), Lines()
    pool.faults[method] = PoolUnreachable("the collector did not answer within 8 s")
    done = cycle(pool, journal=journal)
    assert (done.plan, done.outcome, done.fault) == (None, None, "the collector did not answer within 8 s")
    assert (pool.acts, journal.events) == ([], [])


def test_half_an_answer_is_no_act() -> None:
    """HOSTILE 54: a pilot of an account that is not there."""
    pool = AlicesPool()
    for run, one in pool.pilots.items():
        pool.pilots[run] = one.__class__(**{**one.__dict__, "account": "lost"})
    done = cycle(pool)
    assert "incomplete answer" in done.fault and pool.acts == []


@pytest.mark.parametrize(("age", "acts"), [(OLDEST_SNAPSHOT, 2), (OLDEST_SNAPSHOT + 1, 0)])
def test_an_old_answer_is_none(age: int, acts: int) -> None:
    pool = AlicesPool()
    pool.age = age
    done = cycle(pool)
    assert len(pool.acts) == acts and ("old answer" in done.fault) == (acts == 0)


def test_without_a_second_look_nobody_is_ordered() -> None:
    pool = AlicesPool()
    pool.snapshots_left = 1
    done = cycle(pool)
    assert done.plan is not None and done.fault == "the batch system went away" and pool.acts == []


@pytest.mark.parametrize(("room", "acts"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_a_journal_that_is_full_ends_the_acts(room: int, acts: int) -> None:
    """HOSTILE 27: the decision comes first, so a journal that takes nothing lets nothing be done."""
    pool = AlicesPool()
    done = cycle(pool, journal=Lines(room))
    assert "the journal cannot be written" in done.fault and len(pool.acts) == acts


def test_term_ends_it_after_the_current_act_and_the_next_cycle_goes_on() -> None:
    pool, memory = AlicesPool(), Memory()
    done = cycle(pool, memory, stopping=lambda: len(pool.acts) >= 1)
    assert done.outcome is not None and len(done.outcome.acts) == len(pool.acts) == 1
    cycle(pool, memory)
    assert len(pool.runs()) == len(set(pool.runs())) == 2


def test_what_was_ordered_and_is_needed_no_more_is_withdrawn() -> None:
    pool, journal, memory = AlicesPool(), Lines(), Memory()
    cycle(pool, memory, journal)
    pool.wanted = 8
    done = cycle(pool, memory, journal)
    assert done.outcome is not None and [one.outcome for one in done.outcome.withdrawn] == ["done"]
    [run] = [run for what, run in pool.acts if what == "withdrawn"]
    assert pool.pilots[run].deadline is None and run not in memory.open_orders()
    assert journal.kinds()[-2:] == ["decision", "withdrawal"]
    assert cycle(pool, memory, journal).outcome == done.outcome.__class__(())


def test_a_request_is_not_withdrawn_when_bob_comes_back_between_the_two_looks() -> None:
    pool, memory = AlicesPool(), Memory()
    cycle(pool, memory)
    pool.wanted = 0
    snapshot = pool.snapshot

    def look(now: int) -> Any:
        seen = snapshot(now)
        pool.wanted = 16
        return seen

    pool.snapshot = look  # type: ignore[method-assign]
    done = cycle(pool, memory)
    assert done.outcome is not None
    assert {one.detail for one in done.outcome.withdrawn} == {"its cores are needed again"}
    assert len(pool.acts) == 2


def test_a_loop_takes_back_only_what_two_cycles_found() -> None:
    pool, memory, confirmed = AlicesPool(), Memory(), ConfirmedWithdrawals()
    cycle(pool, memory, confirmed=confirmed)
    pool.wanted = 0
    cycle(pool, memory, confirmed=confirmed)
    assert len(pool.acts) == 2, "the demand may be gone for a moment"
    cycle(pool, memory, confirmed=confirmed)
    assert [what for what, _ in pool.acts] == ["ordered"] * 2 + ["withdrawn"] * 2


def test_a_loop_does_not_try_again_what_cannot_be_withdrawn() -> None:
    pool, memory, confirmed = AlicesPool(), Memory(), ConfirmedWithdrawals()
    cycle(pool, memory, confirmed=confirmed)
    pool.wanted = 0
    pool.faults["withdraw_order"] = ActionRefused("retirement cannot be withdrawn")
    tried = []
    for _ in range(4):
        done = cycle(pool, memory, confirmed=confirmed)
        tried.append(0 if done.outcome is None else len(done.outcome.withdrawn))
    assert tried == [0, 2, 0, 0]


def test_what_has_ended_is_learnt_once() -> None:
    pool, journal, memory = AlicesPool(), Lines(), Memory()
    cycle(pool, memory, journal)
    first, second = pool.runs()
    pool.end(first, NOW)
    pool.wanted = 8
    cycle(pool, memory, journal)
    cycle(pool, memory, journal)
    assert [event["run"] for event in journal.events if event["event"] == "ended"] == [first]
    assert set(memory.open_orders()) == {second}


def test_records_that_cannot_be_had_stop_no_order() -> None:
    pool, memory = AlicesPool(), Memory()
    cycle(pool, memory)
    del pool.pilots[pool.runs()[0]]
    pool.wanted = 24
    pool.faults["endings"] = PoolUnreachable("sacct did not answer")
    done = cycle(pool, memory)
    assert done.fault == "" and done.outcome is not None and done.outcome.fault == "sacct did not answer"
    assert len(pool.runs()) == len(set(pool.runs())) > 2


def test_records_that_do_not_tell_are_asked_less_and_less_often() -> None:
    ask_again, asked = AskAgain(), []
    for now in range(0, 4 * 3600, 60):
        if ask_again.due(["run"], now):
            asked.append(now)
    gaps = [later - sooner for sooner, later in zip(asked, asked[1:])]
    assert gaps[:6] == [60, 120, 240, 480, 960, 1920] and set(gaps[6:]) == {3600}


def test_a_run_whose_records_were_asked_for_is_forgotten_with_it() -> None:
    ask_again = AskAgain()
    assert ask_again.due(["a", "b"], 0) == ["a", "b"]
    assert ask_again.due(["b"], 1) == []
    assert ask_again.due(["a", "b"], 2) == ["a"]


@given(st.integers(2, 18), st.sampled_from([0, 8, 16, 24, 32]), st.booleans())
def test_killed_anywhere_the_next_cycle_goes_on_and_orders_nobody_twice(at: int, wanted: int, forgets: bool) -> None:
    """Before or after each word with the batch system; also when the journal is lost with it."""
    pool, memory, journal = AlicesPool(), Memory(), Lines()
    cycle(pool, memory, journal)  # 16 cores on their way
    before = list(pool.acts)
    pool.wanted, pool.calls, pool.kill_at = wanted, 0, at
    with_pool = True
    try:
        cycle(pool, memory, journal)
    except Killed:
        with_pool = False
    pool.kill_at = None
    fresh = Memory() if forgets else _read_again(journal)
    for _ in range(2):
        done = cycle(pool, fresh, journal)
        assert done.fault == ""
    new = pool.acts[len(before) :]
    assert len(new) == len(set(new)) == abs(wanted - 16) // 8, with_pool
    assert {what for what, _ in new} <= {"ordered" if wanted > 16 else "withdrawn"}
    under_order = [run for run, one in pool.pilots.items() if one.deadline is not None]
    assert len(under_order) * 8 == wanted


def _read_again(journal: Lines) -> Memory:
    memory = Memory()
    for event in journal.events:
        memory.note(event)
    return memory


class OneNodeIsDeaf(AlicesPool):
    """Each pilot on a node of its own; that of the cheapest answers no order, and `heard` tells its last word."""

    def __init__(self, heard: Callable[[int], int]) -> None:
        super().__init__(wanted=8)
        self.heard = heard
        self.deaf, *_ = self.pilots
        self.pilots = {run: replace(one, node=f"n{number}") for number, (run, one) in enumerate(self.pilots.items())}

    def snapshot(self, now: int) -> Snapshot:
        seen = super().snapshot(now)
        said = (replace(one, heard=self.heard(now) if one.run == self.deaf else now) for one in seen.pilots)
        return replace(seen, pilots=tuple(said))

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        if pilot.run == self.deaf:
            self.acts.append(("sent", pilot.run))
            raise OrderUnanswered("n0 did not answer", pilot.node)
        super().give_order(pilot, deadline, reason)


@pytest.mark.parametrize("heard", [lambda now: NOW - 5, lambda now: now - 1, lambda now: now - (now - NOW) % 300])
def test_a_node_that_answers_no_order_does_not_hold_up_all_others(heard: Callable[[int], int]) -> None:
    """While its order is in doubt nobody is asked in its place; then another one is, before it is tried again."""
    pool, memory, journal = OneNodeIsDeaf(heard), Memory(), Lines()
    for number in range(15):
        done = cycle(pool, memory, journal, clock=lambda now=NOW + 60 * number: now)
        assert done.fault == ""
    assert [what for what, _ in pool.acts] == ["sent", "ordered"]


class SomeNodesRefuse(AlicesPool):
    """Each pilot on a node of its own; those of the cheapest refuse the agent."""

    def __init__(self, refusing: int) -> None:
        super().__init__(pilots=40, wanted=80)
        self.pilots = {run: replace(one, node=f"n{number}") for number, (run, one) in enumerate(self.pilots.items())}
        self.refusing = {one.node for one in list(self.pilots.values())[:refusing]}

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        if pilot.node in self.refusing:
            raise RightsRefused(f"{pilot.node} refused", pilot.node)
        super().give_order(pilot, deadline, reason)


@pytest.mark.parametrize("refusing", [3, 12, 20])
def test_nodes_that_refuse_the_agent_do_not_keep_it_from_all_others(refusing: int) -> None:
    """Three of them end a cycle, and by the time of the next ones the first could be tried again."""
    pool, memory, journal = SomeNodesRefuse(refusing), Memory(), Lines()
    now, failures = NOW, 0
    while not pool.acts and now < NOW + 10_000:
        done = cycle(pool, memory, journal, clock=lambda now=now: now)
        failures = failures + 1 if done.halted else 0
        now += int(rest(60.0, failures, 1.0))
    assert pool.acts

"""The journal read back: what limits and trust stand on, and which orders are still open."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.entries import order_event, withdrawal_event
from drainwise.journal.event import Event, Outcome
from drainwise.journal.file import JournalFile, journal_line
from drainwise.journal.memory import Memory, Noted, ended_events
from drainwise.journal.read import files_of
from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import parse_billing
from drainwise.pool.facts import Ending
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.decide.user_plans import Allowances
from drainwise.reclaim.history import DAY, PAUSE, WINDOW, History, PastOrder
from drainwise.reclaim.plan import Withdrawal

from .facts import BEFORE, FIRST, NOW, RULES, SECOND, THIRD, Lines, decision, ordered, orders, remembering, snapshot

AFTER = snapshot(ordered(FIRST), ordered(SECOND), THIRD)


def test_orders_count_for_the_hour_and_stay_open_until_their_end_is_known() -> None:
    memory = remembering(decision(), *orders())
    assert memory.history(NOW).orders == (PastOrder(NOW, "alice", 8), PastOrder(NOW, "alice", 8))
    assert set(memory.open_orders()) == {FIRST.run, SECOND.run}
    [first, second] = memory.open_orders().values()
    assert (first.ordered, first.deadline, first.predicted, first.kind) == (NOW, NOW + 2900, 0, "leave")
    assert second.predicted == 2000


def test_gpus_and_what_reports_cost_their_user_count_for_the_hour() -> None:
    """The limits of an hour on both look at earlier orders alone: what is written is read back."""
    with_gpus = dataclasses.replace(FIRST, holds=Amounts(8, gpus=2))
    plan = make_plan(snapshot(with_gpus, deficit=8), NOW, RULES)
    [order] = plan.orders
    event = order_event(dataclasses.replace(order, extra=3), Outcome.DONE, "", plan, NOW)
    [past] = remembering(json.loads(json.dumps(event))).history(NOW).orders
    assert past == PastOrder(NOW, "alice", 8, gpus=2, extra=3)
    rules = dataclasses.replace(RULES, billing=parse_billing("GRES/gpu=16"))
    dear = make_plan(snapshot(with_gpus, deficit=8), NOW, rules)
    event = order_event(dear.orders[0], Outcome.DONE, "", dear, NOW)
    [billed] = remembering(json.loads(json.dumps(event))).history(NOW).orders
    assert billed == PastOrder(NOW, "alice", 8, gpus=2, billed=4.0)
    assert Allowances(History((past,)), NOW + 3599, RULES).extra == {"alice": 3}
    assert not Allowances(History((past,)), NOW + 3600, RULES).extra


def test_the_last_order_is_remembered_beyond_the_day() -> None:
    """The least time between two cycles may be longer."""
    memory = remembering(*orders(now=NOW - 9000), *orders(snapshot(THIRD, deficit=8), now=NOW - 5000))
    assert memory.history(NOW + DAY).orders == (PastOrder(NOW - 5000, "alice", 8),)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.FAILED])
def test_an_order_that_was_not_given_counts_for_nothing(outcome: str) -> None:
    memory = remembering(decision(), *orders(outcome=outcome))
    failed = {FIRST.run: NOW, SECOND.run: NOW} if outcome == Outcome.FAILED else {}
    assert memory.history(NOW) == History(failed=failed)
    assert memory.open_orders() == {}


def test_a_request_that_was_withdrawn_is_not_open_any_more() -> None:
    withdrawal = Withdrawal(ordered(FIRST), 7, "nobody waits")
    memory = remembering(*orders(), withdrawal_event(withdrawal, Outcome.FAILED, "no", NOW + 1))
    assert set(memory.open_orders()) == {FIRST.run, SECOND.run}
    memory.note(withdrawal_event(withdrawal, Outcome.DONE, "", NOW + 2))
    assert set(memory.open_orders()) == {SECOND.run}
    assert len(memory.history(NOW + 2).orders) == 2, "it still counts for the hour"


def test_how_pilots_ended_makes_the_trust_of_their_user() -> None:
    memory = remembering(*orders())
    [ended] = ended_events(memory, {SECOND.run: Ending(SECOND.run, NOW + 2000, False)}, AFTER, NOW + 2010)
    memory.note(ended)
    trust = memory.history(NOW + 2010).trust["alice"]
    assert (trust.pilots, trust.predicted, trust.realised) == (1, 2000, 2000)
    assert set(memory.open_orders()) == {FIRST.run}
    late = memory.history(NOW + 2001 + WINDOW).trust["alice"]
    assert (late.pilots, late.error, late.leaving) == (0, 0, 1), "the window has passed, but for the promise"
    assert memory.history(NOW + 2001 + 10 * WINDOW).trust == {}


def test_what_an_administrator_or_a_fault_of_its_node_ended_costs_no_trust() -> None:
    """Before its deadline, and unless it was to be ended at once; its user's own withdrawal counts."""
    for by_others, ended, kind, pilots in (
        (True, NOW + 2000, "leave", 0),
        (False, NOW + 2000, "leave", 1),
        (True, NOW + 2901, "leave", 1),
        (True, NOW + 10, "kill", 1),
    ):
        memory = remembering(*({**order, "kind": kind} for order in orders()))
        ending = Ending(SECOND.run, ended, True, None, by_others)
        [event] = ended_events(memory, {SECOND.run: ending}, AFTER, NOW + 3000)
        memory.note(event)
        assert len(memory.history(NOW + 3000).trust) == pilots
        assert set(memory.open_orders()) == {FIRST.run}


def test_who_promised_nothing_is_neither_trusted_nor_mistrusted() -> None:
    silent = dataclasses.replace(FIRST, report=None)
    memory = remembering(*orders(snapshot(silent, deficit=8)))
    for event in ended_events(memory, {FIRST.run: Ending(FIRST.run, NOW + 7200, True)}, BEFORE, NOW + 7300):
        memory.note(event)
    assert (memory.history(NOW + 7300).trust, memory.open_orders()) == ({}, {})


def test_an_order_that_was_given_and_never_written_is_found() -> None:
    """Killed between the order and its line: the decision names it, the pool shows it; the other was never given."""
    memory = remembering(decision())
    assert len(memory.history(NOW).orders) == 2, "as long as it is not known, it counts"
    now = NOW + 60
    [found] = ended_events(memory, {}, snapshot(ordered(FIRST), SECOND, THIRD), now)
    assert (found["event"], found["run"], found["time"], found["found"]) == ("order", FIRST.run, NOW, now)
    memory.note(found)
    assert set(memory.open_orders()) == {FIRST.run}
    assert memory.history(now).orders == (PastOrder(NOW, "alice", 8),)
    assert ended_events(memory, {}, snapshot(ordered(FIRST), SECOND, THIRD), now) == [], "once"


def test_an_order_that_failed_and_stands_is_found() -> None:
    """A node takes an order and is deaf afterwards: it counts for the limits, and its end for the trust."""
    memory = remembering(decision(), *orders(outcome=Outcome.FAILED))
    assert ended_events(memory, {}, BEFORE, NOW + 30) == [], "as it seems it was not given"
    now = NOW + 60  # nodes read their configuration again whenever somebody says so
    [found] = ended_events(memory, {}, snapshot(ordered(FIRST), SECOND, THIRD), now)
    assert (found["event"], found["outcome"], found["run"]) == ("order", "done", FIRST.run)
    assert (found["time"], found["found"]) == (NOW, now)
    memory.note(found)
    assert set(memory.open_orders()) == {FIRST.run}
    assert memory.history(now).orders == (PastOrder(NOW, "alice", 8),)
    assert ended_events(memory, {}, snapshot(ordered(FIRST), SECOND, THIRD), now) == [], "once"


def test_a_request_that_stands_no_more_is_found() -> None:
    """Killed between taking it back and its line."""
    memory = remembering(*orders())
    [found] = ended_events(memory, {}, snapshot(FIRST, ordered(SECOND), THIRD), NOW + 60)
    assert (found["event"], found["outcome"], found["run"]) == ("withdrawal", "done", FIRST.run)
    memory.note(found)
    assert set(memory.open_orders()) == {SECOND.run}


def test_a_dry_run_that_decides_the_same_again_is_no_news() -> None:
    memory = remembering(decision(acting=False))
    assert not memory.is_news(decision(acting=False, now=NOW + 60))
    assert memory.is_news(decision(snapshot(SECOND, THIRD), acting=False))
    assert memory.is_news(decision()), "what is acted on is always written"
    memory.note(decision())
    assert memory.is_news(decision(now=NOW + 60))
    assert not memory.is_news(decision(snapshot(FIRST, deficit=0)))


def test_it_comes_back_from_the_files_as_it_was(tmp_path: Path) -> None:
    """Across rotated files, whatever else stands in them."""
    path = str(tmp_path / "journal")
    memory, journal = Memory(), JournalFile(path, max_size=4000)
    noted = Noted(journal, memory)
    for event in (decision(), *orders()):
        noted.write(event)
    for event in ended_events(memory, {FIRST.run: Ending(FIRST.run, NOW + 2500, False)}, AFTER, NOW + 2600):
        noted.write(event)
    journal.write({"event": "decision", "version": 2, "time": "?", "acting": True})
    journal.write({"event": "order", "version": 3, "run": THIRD.run})
    noted.write(decision(snapshot(ordered(FIRST), ordered(SECOND), THIRD, deficit=24), now=NOW + 2601))
    journal.close()
    assert len(files_of(path)) > 2
    with Path(path).open("ab") as stream:
        stream.write(b'{"event":"order","version":2,"ti')
    loaded = Memory.load(files_of(path), NOW + 2700)
    assert loaded.history(NOW + 2700) == memory.history(NOW + 2700)
    assert loaded.open_orders() == memory.open_orders()
    assert len(loaded.history(NOW + 2700).orders) == 3, "the last decision's order may have been given"


def test_a_clock_that_was_wrong_stops_nobody_for_ever(tmp_path: Path) -> None:
    """HOSTILE 53: an order of next year counts as one of now."""
    path = tmp_path / "journal"
    path.write_text("".join(journal_line(event) for event in orders(now=NOW + 31_000_000)))
    assert {one.time for one in Memory.load([str(path)], NOW).history(NOW).orders} == {NOW}


def test_a_clock_that_is_set_back_stops_a_running_agent_for_no_longer_than_its_limits() -> None:
    """HOSTILE 53: the agent that gave an order a year ahead of now may ask again an hour from now."""
    memory = remembering(*orders(now=NOW + 31_000_000))
    assert {one.time for one in memory.history(NOW).orders} == {NOW}
    assert {one.time for one in memory.history(NOW + 600).orders} == {NOW}


def test_a_decision_ahead_of_the_clock_whose_orders_may_have_been_given_counts_from_now(tmp_path: Path) -> None:
    """HOSTILE 53: killed right after it was written, and started again when the clock was right."""
    path = tmp_path / "journal"
    path.write_text(journal_line(decision(now=NOW + 31_000_000)))
    memory = Memory.load([str(path)], NOW)
    assert [[one.time for one in memory.history(now).orders] for now in (NOW, NOW + 600)] == [[NOW, NOW]] * 2


def test_a_withdrawal_ahead_of_the_clock_spares_its_pilot_from_now(tmp_path: Path) -> None:
    """HOSTILE 53: no order for it within the pause, and not for a year."""
    memory = remembering(*orders())
    memory.note(withdrawal_event(Withdrawal(ordered(FIRST), 7, "nobody waits"), Outcome.DONE, "", NOW + 31_000_000))
    found = [memory.history(now).withdrawn for now in (NOW, NOW + 600, NOW + PAUSE)]
    assert found == [{FIRST.run: NOW}, {FIRST.run: NOW}, {}]


def test_an_end_ahead_of_the_clock_counts_when_its_time_has_come() -> None:
    memory = remembering(*orders())
    [ended] = ended_events(memory, {SECOND.run: Ending(SECOND.run, NOW + 2000, False)}, AFTER, NOW + 2010)
    memory.note(ended)
    assert memory.history(NOW + 100).trust == {}
    assert memory.history(NOW + 2010).trust["alice"].pilots == 1


def test_without_a_journal_nothing_is_remembered(tmp_path: Path) -> None:
    memory = Memory.load(files_of(str(tmp_path / "journal")), NOW)
    assert (memory.history(NOW), memory.open_orders()) == (History(), {})


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_a_line_that_is_not_sound_is_passed_over(data: st.DataObject) -> None:
    """Whatever value stands in whatever place."""
    events: list[Event] = [decision(), *orders(outcome=data.draw(st.sampled_from([Outcome.DONE, Outcome.FAILED])))]
    place = data.draw(st.integers(0, len(events) - 1))
    name = data.draw(st.sampled_from(sorted(events[place])))
    events[place] = {**events[place], name: data.draw(JUNK)}
    lines = Lines()
    for event in events:
        lines.write(event)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(lines.text)
        file.flush()
        memory = Memory.load([file.name], NOW)
    memory.history(NOW)
    json.dumps([dataclasses.asdict(one) for one in memory.open_orders().values()])
    for event in ended_events(memory, {}, AFTER, NOW):
        memory.note(event)

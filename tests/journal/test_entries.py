"""What the events say is what was decided, no more of it than can be read."""

from __future__ import annotations

import dataclasses
import json

from drainwise.journal.entries import MOST_SPARED, decision_event, followup_event, order_event, state_event
from drainwise.journal.event import Outcome
from drainwise.journal.file import journal_line
from drainwise.pool.snapshot_json import snapshot_as_json, snapshot_from_json, snapshot_hash
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History, TrustFigures
from one_pilot import assess

from .facts import BEFORE, FIRST, NOW, RULES, SECOND, THIRD, decision, orders, pilot, report, snapshot


def test_each_line_begins_with_kind_version_and_time() -> None:
    """A reader passes over the lines that it does not need by their beginning."""
    for event in (decision(), *orders(), followup_event("job 7 has ended", NOW), state_event("ok", "", NOW)):
        assert journal_line(event).startswith(f'{{"event":"{event["event"]}","version":2,"time":{NOW},')


def test_a_decision_says_who_waits_who_gives_and_who_is_spared() -> None:
    event = decision()
    assert (event["acting"], event["deficit"], event["waiting"]) == (True, 16, [{"account": "group_b", "cores": 16}])
    assert [one["run"] for one in event["chosen"]] == [FIRST.run, SECOND.run]  # type: ignore[attr-defined]
    [spared] = event["spared"]  # type: ignore[misc]
    assert (spared["run"], event["spared_count"]) == (THIRD.run, 1)  # type: ignore[has-type]


def test_of_very_many_spared_pilots_the_next_ones_are_written() -> None:
    """The least wasteful per core first; all are counted."""
    pilots = [pilot(number, report(8 - number / 1000)) for number in range(1, 400)]
    facts = snapshot(*pilots, deficit=8)
    event = decision_event(make_plan(facts, NOW, RULES), facts, True, NOW)
    spared = [(one["waste_if_drained"], one["name"]) for one in event["spared"]]  # type: ignore[attr-defined]
    assert (len(spared), event["spared_count"]) == (MOST_SPARED, 398)
    assert [waste for waste, _ in spared] == sorted(waste for waste, _ in spared)


def test_an_order_keeps_what_its_pilot_promised_itself() -> None:
    """Its user's claims are moved for want of trust: the promise is what will be held against the truth."""
    history = History(trust={"alice": TrustFigures(9, 100, 100_000, 99_900, 199_800)})
    plan = make_plan(BEFORE, NOW, RULES, history)
    order = plan.orders[-1]
    word = {way.kind: way.waste for way in assess(order.pilot, NOW, RULES).options}
    assert order.waste > order.promised
    assert order_event(order, Outcome.DONE, "", plan, NOW)["promised"] == word[order.kind]


def test_a_pilot_that_is_not_believed_claims_nothing() -> None:
    [event] = orders(snapshot(pilot(1, report(7.0, heartbeat=NOW - 9999)), deficit=8))
    assert (event["claims"], event["standing"]) == (None, "stale")


def test_a_saved_snapshot_has_the_hash_of_the_decision() -> None:
    """Any other fact has another one."""
    assert decision()["snapshot"] == snapshot_hash(snapshot_from_json(json.loads(json.dumps(snapshot_as_json(BEFORE)))))
    others = (
        dataclasses.replace(BEFORE, free_cores=1.0),
        dataclasses.replace(BEFORE, pilots=BEFORE.pilots[:2]),
        snapshot(FIRST, SECOND, dataclasses.replace(THIRD, report=report(6.0, heartbeat=NOW - 61))),
    )
    assert len({snapshot_hash(one) for one in (BEFORE, *others)}) == 4

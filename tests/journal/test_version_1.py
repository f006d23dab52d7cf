"""A journal that was written before the names of version 2 is read as if it had been written today."""

from __future__ import annotations

import json
from pathlib import Path

from drainwise.journal.entries import ended_event, order_event
from drainwise.journal.event import VERSION
from drainwise.journal.explain import Sought, explain, in_words
from drainwise.journal.memory import Memory
from drainwise.journal.read import PassedOver, event_of, events_of
from drainwise.journal.report import ReportedJournal, report_on
from drainwise.pool.facts import Ending
from drainwise.reclaim.unmet_demand import AccountPart

from .facts import NOW, decision, pilot, plan_of, report, snapshot

PATH = str(Path(__file__).parent / "recorded" / "version_1.journal")
POOL = snapshot(pilot(1, report(7.0)), pilot(2, report(6.0)))


def names_in(value: object) -> set[str]:
    """The keys of a value at every depth, but those of its lists' places."""
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_its_events_have_the_names_that_are_written_today() -> None:
    passed_over = PassedOver()
    read = list(events_of([PATH], passed_over=passed_over))
    assert [one["event"] for one in read] == [
        "state", "decision", "demand", "order", "order", "withdrawal", "followup", "ended",
    ]  # fmt: skip
    assert passed_over.lines == 0
    [order, _] = plan_of(POOL).orders
    written = [decision(POOL), order_event(order, "done", "", plan_of(POOL), NOW)]
    later = {"client", "request", "room", "instead_of", "remaining_max", "identity", "ends"}
    for now, then in zip(written, (read[1], read[3])):  # `later` came later, counts of spared pilots went
        assert names_in(json.loads(json.dumps(now))) - later == names_in(dict(then)) - {"spared_runs", "runs"}


def test_what_it_remembers_counts() -> None:
    memory = Memory.load([PATH], NOW + 1700)
    history = memory.history(NOW + 1700)
    assert memory.passed_over.lines == 0
    assert memory.open_orders() == {}
    assert [(one.time, one.cores) for one in history.orders] == [(NOW + 1, 8), (NOW + 1, 8)]
    assert (history.trust["alice"].pilots, history.trust["alice"].realised) == (1, 1499)
    assert history.unmet["group_b"].runs == {pilot(1, None).run: AccountPart("node1", 8, 8.0)}


def test_the_claims_of_an_open_order_are_known(tmp_path: Path) -> None:
    """So what its pilot wastes is measured as it would have been."""
    lines = Path(PATH).read_text().splitlines(keepends=True)
    (tmp_path / "journal").write_text("".join(lines[:4]))
    [order] = Memory.load([str(tmp_path / "journal")], NOW + 10).open_orders().values()
    event = ended_event(order, Ending(order.run, NOW + 1500, False, 70000.0), NOW + 1600)
    known = event_of(lines[7].encode())
    assert known is not None
    assert {**known, "version": VERSION} == event


def test_it_is_explained_and_reported() -> None:
    total = report_on(ReportedJournal.read([PATH], 0, NOW).orders, NOW, NOW + 7200).total
    assert (total.ordered, total.ended_as("withdrawn"), total.ended_as("left in time")) == (2, 1, 1)
    first, second = (in_words(explain([PATH], Sought(f"slot1_{number}@node1"))[0]) for number in (1, 2))
    assert "ordered to end by 2026-11-21 09:05:00Z" in "\n".join(first)
    assert "the order was withdrawn: nobody waits" in "\n".join(second)

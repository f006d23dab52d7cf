"""What became of each payload, told alike to queue, record and log; since when a pilot is ordered to go."""

from __future__ import annotations

import pytest

from drainwise.pilot.decide.decision import BY_MAXIMUM
from drainwise.pilot.decide.lease import Lease, SiteOrders
from drainwise.pilot.lease_record import ExitReport, LeaseRecord
from drainwise.pilot.queues.records import EndedPayload

from .test_runner import Listed, sleeps
from .work import T0

LEASE = SiteOrders(leave=False, deadline=5000, draining=False, source="lease")
ORDERED = SiteOrders(leave=True, deadline=3000, draining=True, source=".site.ad")


def recorded(said: list[str], cores: int = 4, start: float = 0, queue: Listed | None = None) -> LeaseRecord:
    return LeaseRecord(Lease(cores, start, None), queue or Listed(), said.append)


def report(record: LeaseRecord, ended: float) -> ExitReport:
    return record.report("one", ended, "the test is over", 1)


def test_a_drain_from_request_to_end() -> None:
    """It counts from the first request, also when the deadline changes, and names what it cost."""
    said: list[str] = []
    record = recorded(said)
    assert not record.note(LEASE, LEASE, 1000)
    assert record.note(LEASE, ORDERED, 1000)
    later = SiteOrders(leave=True, deadline=2000, draining=True, source=".site.ad")
    assert record.note(ORDERED, later, 1100)
    record.book(EndedPayload(sleeps("one", cores=2), 0, 500, ""), 1100)
    record.book(EndedPayload(sleeps("two"), -15, 900, "the deadline"), 1200)
    drain = report(record, 1200).drain
    assert drain is not None
    assert (drain.requested, drain.seconds, drain.source) == (1000, 200, ".site.ad")
    assert (drain.idle, drain.lost) == (4 * 200 - 2 * 100 - 200, 300)
    assert said[:2] == [
        "draining (.site.ad), everything ends within 2000 s",
        "draining (.site.ad), everything ends within 900 s",
    ]


def test_an_order_that_is_withdrawn() -> None:
    """Nobody asks any more; the next request counts anew."""
    said: list[str] = []
    record = recorded(said)
    record.note(LEASE, ORDERED, 1000)
    assert record.note(ORDERED, LEASE, 1100)
    assert report(record, 1200).drain is None
    record.note(LEASE, ORDERED, 1300)
    record.shift(100)
    drain = report(record, 1500).drain
    assert drain is not None and (drain.requested, drain.seconds) == (1400, 100)
    assert said[1] == "no longer ordered to drain, everything ends within 3900 s"


def test_a_shorter_lease_and_a_deadline_that_has_passed() -> None:
    """A deadline alone is told too; one in the past, which counts as now, is no news at each look."""
    said: list[str] = []
    record = recorded(said)
    shorter = SiteOrders(leave=False, deadline=4000, draining=False, source=".site.ad")
    assert record.note(LEASE, shorter, 1000)
    assert said == ["the lease has another end (.site.ad), everything ends within 3000 s"]
    past = SiteOrders(leave=True, deadline=3100, draining=True, source=".site.ad")
    assert not record.note(ORDERED, past, 3100)
    assert not record.note(past, SiteOrders(leave=True, deadline=3105, draining=True, source=".site.ad"), 3105)


@pytest.mark.parametrize(
    ("code", "stopped", "kind", "told", "said"),
    [
        (0, "", "useful", "ended 0", ""),
        (3, "", "failed", "ended 3", "ended with 3 after 30 s"),
        (-9, "", "failed", "ended -9", "by signal 9"),
        (-15, BY_MAXIMUM, "failed", f"ended -15 {BY_MAXIMUM}", "ran past its maximum of 60 s"),
        (-15, "the deadline", "lost", "requeued the deadline", "stopped after 30 s and requeued: the deadline"),
        (0, "the deadline", "lost", "requeued the deadline", "requeued"),
    ],
)
def test_each_end_is_one_thing_to_all(code: int, stopped: str, kind: str, told: str, said: str) -> None:
    """What the pilot stopped is lost and goes back, whatever its code; what ran past its maximum has failed."""
    payload = sleeps("one", cores=4)
    queue, lines = Listed(), list[str]()
    record = recorded(lines, 8, T0, queue)
    record.book(EndedPayload(payload, code, T0 + 10, stopped), T0 + 40)
    assert queue.told == [(told, "one")]
    found = report(record, T0 + 100)
    assert getattr(found.core_seconds, kind) == 4 * 30
    assert {"useful": found.done, "failed": found.failed, "lost": found.requeued}[kind] == 1
    assert found.done + found.failed + found.requeued == 1
    assert len(lines) == bool(said)
    assert all(said in line for line in lines)

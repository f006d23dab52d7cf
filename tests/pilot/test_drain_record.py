"""Since when a pilot is asked to go, and what it says when that changes."""

from __future__ import annotations

from drainwise.pilot.account import LOST, USEFUL, Account
from drainwise.pilot.drain_record import DrainRecord
from drainwise.pilot.orders import Orders

LEASE = Orders(leave=False, deadline=5000, draining=False, source="lease")
ASKED = Orders(leave=True, deadline=3000, draining=True, source=".site.ad")


def test_a_drain_from_request_to_end() -> None:
    """It counts from the first request, also when the deadline changes, and names what it cost."""
    said: list[str] = []
    account = Account(4, 0)
    record = DrainRecord(account, said.append)
    assert not record.note(LEASE, LEASE, 1000)
    assert record.note(LEASE, ASKED, 1000)
    later = Orders(leave=True, deadline=2000, draining=True, source=".site.ad")
    assert record.note(ASKED, later, 1100)
    account.add(USEFUL, 2, 500, 1100)
    account.add(LOST, 1, 900, 1200)
    drain = record.until(1200)
    assert drain is not None
    assert (drain.requested, drain.seconds, drain.source) == (1000, 200, ".site.ad")
    assert (drain.idle, drain.lost) == (4 * 200 - 2 * 100 - 200, 300)
    assert said == [
        "draining (.site.ad), everything ends within 2000 s",
        "draining (.site.ad), everything ends within 900 s",
    ]


def test_an_order_that_is_taken_back() -> None:
    """Nobody asks any more; the next request counts anew."""
    said: list[str] = []
    record = DrainRecord(Account(4, 0), said.append)
    record.note(LEASE, ASKED, 1000)
    assert record.note(ASKED, LEASE, 1100)
    assert record.until(1200) is None
    record.note(LEASE, ASKED, 1300)
    record.shift(100)
    drain = record.until(1500)
    assert drain is not None and (drain.requested, drain.seconds) == (1400, 100)
    assert said[1] == "no longer asked to drain, everything ends within 3900 s"


def test_a_shorter_lease_and_a_deadline_that_has_passed() -> None:
    """A deadline alone is told too; one in the past, which counts as now, is no news at each look."""
    said: list[str] = []
    record = DrainRecord(Account(4, 0), said.append)
    shorter = Orders(leave=False, deadline=4000, draining=False, source=".site.ad")
    assert record.note(LEASE, shorter, 1000)
    assert said == ["the lease has another end (.site.ad), everything ends within 3000 s"]
    past = Orders(leave=True, deadline=3100, draining=True, source=".site.ad")
    assert not record.note(ASKED, past, 3100)
    assert not record.note(past, Orders(leave=True, deadline=3105, draining=True, source=".site.ad"), 3105)

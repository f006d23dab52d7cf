"""What becomes of a payload that has ended, told alike to queue, account and log."""

from __future__ import annotations

import pytest

from drainwise.pilot.account import FAILED, LOST, USEFUL, Account
from drainwise.pilot.decide import BY_MAXIMUM
from drainwise.pilot.endings import Endings
from drainwise.pilot.processes import Ended

from .test_runner import Listed, sleeps
from .work import T0


@pytest.mark.parametrize(
    ("code", "stopped", "kind", "told", "said"),
    [
        (0, "", USEFUL, "ended 0", ""),
        (3, "", FAILED, "ended 3", "ended with 3 after 30 s"),
        (-9, "", FAILED, "ended -9", "by signal 9"),
        (-15, BY_MAXIMUM, FAILED, f"ended -15 {BY_MAXIMUM}", "ran past its maximum of 60 s"),
        (-15, "the deadline", LOST, "requeued the deadline", "stopped after 30 s and requeued: the deadline"),
        (0, "the deadline", LOST, "requeued the deadline", "requeued"),
    ],
)
def test_each_end_is_one_thing_to_all(code: int, stopped: str, kind: str, told: str, said: str) -> None:
    """What the pilot stopped is lost and goes back, whatever its code; what ran past its maximum has failed."""
    payload = sleeps("one", cores=4)
    queue, account, lines = Listed(), Account(8, T0), list[str]()
    Endings(queue, account, lines.append).book(Ended(payload, code, T0 + 10, stopped), T0 + 40)
    assert queue.told == [(told, "one")]
    assert getattr(account.at(T0 + 100), kind) == 4 * 30
    assert account.payloads[kind] == 1
    assert len(lines) == bool(said)
    assert all(said in line for line in lines)

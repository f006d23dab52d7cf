"""How often a user's pilots did not leave as they said, by what became of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.outcomes import outcome_of
from drainwise.journal.promises import LEAST, MOST, broken_by_user, broken_probability
from drainwise.reclaim.history import PilotOutcome
from drainwise.reclaim.settings import BROKEN_PROMISES

NOW = 1795249000


def outcome(user: str, kept: bool | None) -> PilotOutcome:
    return PilotOutcome("run", user, NOW, 0, 0, 1000, kept)


def test_only_those_count_that_were_to_leave_by_themselves() -> None:
    assert broken_by_user([outcome("alice", None)] * 9) == {}
    found = broken_by_user([outcome("alice", True)] * 30 + [outcome("alice", False)] * 10 + [outcome("bob", False)])
    assert found == {"alice": 11 / 50, "bob": 2 / 11}


def test_before_anything_is_known_it_is_one_in_ten() -> None:
    assert broken_probability(0, 0) == BROKEN_PROMISES == 0.1


@given(st.integers(0, 10**6), st.floats(0, 1))
def test_it_is_bounded_and_moves_towards_what_was_seen(orders: int, share: float) -> None:
    broken = int(orders * share)
    found = broken_probability(orders, broken)
    assert LEAST <= found <= MOST
    assert broken_probability(orders + 1, broken + 1) >= found >= broken_probability(orders + 1, broken)


def test_an_end_tells_whether_the_promise_was_kept() -> None:
    """Left in time, late, ended by the batch system; an order of another kind promised nothing."""
    event = {"run": "r", "user": "u", "ended": NOW, "predicted": 0, "realised": 0, "possible": 9}
    left = {**event, "kind": "leave", "vacated": False, "deadline": NOW}
    assert outcome_of(left).kept is True
    assert outcome_of({**left, "deadline": NOW - 1}).kept is False
    assert outcome_of({**left, "vacated": True}).kept is False
    assert outcome_of({**left, "kind": "cut"}).kept is None
    assert outcome_of(event).kept is None

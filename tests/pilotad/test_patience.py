"""The budget of waiting."""

from __future__ import annotations

import time

import pytest

from drainwise.pilotad.patience import Patience


def test_all_waiting_together_stays_within_the_budget() -> None:
    """However often it is asked, it sleeps no more than it was given."""
    patience, begun = Patience(0.02), time.monotonic()
    assert [patience.pause(0.008) for _ in range(5)] == [True, True, False, False, False]
    assert 0.016 <= time.monotonic() - begun < 1


def test_on_a_busy_machine_the_budget_is_of_real_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that lasts ten times as long counts ten times: a thousand of a millisecond stay one second."""
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(10 * seconds))
    patience, begun = Patience(0.05), time.monotonic()
    pauses = 0
    while patience.pause(0.001):
        pauses += 1
    assert pauses <= 5
    assert time.monotonic() - begun < 0.3

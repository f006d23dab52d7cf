"""The budget of waiting."""

from __future__ import annotations

import pytest

from drainwise.pilotad import safe_open
from drainwise.pilotad.safe_open import Patience
from made_clock import MadeClock


def test_all_waiting_together_stays_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked, it sleeps no more than it was given."""
    clock, patience = MadeClock(), Patience(0.02)
    monkeypatch.setattr(safe_open, "time", clock)
    assert [patience.pause(0.008) for _ in range(5)] == [True, True, False, False, False]
    assert clock.now == pytest.approx(0.016)


def test_on_a_busy_machine_the_budget_is_of_real_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that lasts ten times as long counts ten times: a thousand of a millisecond stay one second."""
    clock, patience = MadeClock(stretch=10), Patience(1.0)
    monkeypatch.setattr(safe_open, "time", clock)
    pauses = 0
    while patience.pause(0.001):
        pauses += 1
    assert pauses == 100
    assert clock.now == pytest.approx(1.0)

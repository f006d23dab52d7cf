"""The budget of waiting."""

from __future__ import annotations

import time

import pytest

from drainwise.pilotad.safe_open import Patience


class Clock:
    """A clock on which a pause lasts so many times as long as was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
        self.now, self._factor = 0.0, factor
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += self._factor * seconds


def test_all_waiting_together_stays_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked, it sleeps no more than it was given."""
    clock, patience = Clock(monkeypatch, 1), Patience(0.02)
    assert [patience.pause(0.008) for _ in range(5)] == [True, True, False, False, False]
    assert clock.now == pytest.approx(0.016)


def test_on_a_busy_machine_the_budget_is_of_real_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that lasts ten times as long counts ten times: a thousand of a millisecond stay one second."""
    clock, patience = Clock(monkeypatch, 10), Patience(1.0)
    pauses = 0
    while patience.pause(0.001):
        pauses += 1
    assert pauses == 100
    assert clock.now == pytest.approx(1.0)

"""The budget of waiting."""

from __future__ import annotations

import time

from drainwise.pilotad.patience import Patience


def test_all_waiting_together_stays_within_the_budget() -> None:
    """However often it is asked, it sleeps no more than it was given."""
    patience, begun = Patience(0.02), time.monotonic()
    assert [patience.pause(0.008) for _ in range(5)] == [True, True, False, False, False]
    assert 0.016 <= time.monotonic() - begun < 1

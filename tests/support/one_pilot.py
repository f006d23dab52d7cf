"""One pilot judged alone, as the tests of several rooms need it."""

from __future__ import annotations

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidate, candidates_of
from drainwise.reclaim.history import History
from drainwise.reclaim.settings import ReclaimSettings


def assess(pilot: Pilot, now: int, settings: ReclaimSettings, history: History | None = None) -> Candidate:
    """Return the figures of one pilot at `now` (UNIX s), and what each way to end it would waste."""
    return candidates_of([pilot], now, settings, history)[0]

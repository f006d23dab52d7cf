"""Who knows better than a payload itself how long it takes: the protocol of what a pilot may ask for its ads.

The pilot works without; whoever wires it may give it one that has learned from payloads that have ended.
"""

from __future__ import annotations

from typing import Protocol

from drainwise.pilot.payload import Payload


class Estimates(Protocol):
    """Run times that were learned. No method raises for what is wrong outside the pilot: it is logged."""

    def look(self, now: float) -> None:
        """Take in what has ended since the last look, and what runs on at `now`, UNIX s."""

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:
        """Seconds that a payload takes in all, given that it has run for `elapsed`; None: nobody can tell.

        events: 0 when it does not say.
        """


def expected_run_time(estimates: Estimates | None, payload: Payload, elapsed: float) -> float | None:
    """What is known of a payload that has run for `elapsed` seconds: more than that, and at most its maximum."""
    if estimates is None or not payload.task:
        return None
    found = estimates.run_time(payload.task, payload.cores, payload.events, elapsed)
    return None if found is None or found <= elapsed else min(found, payload.maximum)

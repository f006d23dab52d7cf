"""When the agent's next round is due: each period, later and later while slurmctld does not answer. Pure.

Thousands of agents ask one slurmctld: each has its own phase, so that they do not ask at the same moment, and when
slurmctld comes back they come back one after the other.
"""

from __future__ import annotations

LONGEST_PAUSE = 300.0
"""Seconds; the longest pause while slurmctld does not answer, unless the period is longer."""
_MOST_FAILURES = 30


class Pace:
    """Times in seconds of the monotonic clock. `chance`: a number in [0, 1) for each agent and round.

    due: when the next round is. greet_due: from when on a new job may be asked for out of turn: always, unless
    slurmctld has just not answered.
    """

    def __init__(self, period: float, now: float, chance: float) -> None:
        self._period, self._failures = period, 0
        self.due = now + chance * period
        self.greet_due = now

    def succeeded(self, now: float, is_round: bool = True) -> None:
        """slurmctld answered, or was not needed. After a round, the next is due a period after this one was due.

        Rounds that could not be done in time are left out. After anything else only an end of the silence counts.
        """
        if is_round:
            self.due = max(self.due, now - self._period) + self._period
        elif self._failures:
            self.due = now
        self._failures, self.greet_due = 0, now

    def failed(self, now: float, chance: float) -> None:
        """slurmctld did not answer: the next try comes after a pause that doubles each time and is never the same."""
        pause = min(self._period * 2.0**self._failures, max(LONGEST_PAUSE, self._period))
        self._failures = min(self._failures + 1, _MOST_FAILURES)
        self.due = now + pause * (0.75 + 0.5 * chance)
        self.greet_due = now + min(self._period, pause)

"""Which requests are taken back in this cycle: a loop waits for a second look, and does not ask twice for a refusal.

The demand that a batch system shows may be gone for a moment (an access point that restarts); a pilot that was told to
go on has begun new payloads by the time it comes back. So a request is taken back when two cycles in a row found its
reason gone. What the batch system says cannot be taken back stays: it is not tried again for this run.
"""

from __future__ import annotations

from dataclasses import replace

from drainwise.reclaim.action import Outcome
from drainwise.reclaim.plan import Plan


class Releases:
    """What a loop remembers of its own cycles; losing it costs one cycle."""

    def __init__(self) -> None:
        self._found: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()

    def confirmed(self, plan: Plan) -> Plan:
        """The plan with those cancels alone that the cycle before found, too, and that were not refused."""
        found = frozenset(one.pilot.run for one in plan.cancels)
        ready = (found & self._found) - self._refused
        self._found = found
        self._refused &= found
        return replace(plan, cancels=tuple(one for one in plan.cancels if one.pilot.run in ready))

    def interrupted(self) -> None:
        """A cycle saw nothing: what the one before it found must be found twice again."""
        self._found = frozenset()

    def note(self, outcome: Outcome) -> None:
        """Remember what was refused."""
        self._refused |= {one.cancel.pilot.run for one in outcome.released if one.refused}

"""What a pilot takes its payloads from: the protocol that the directory and the command both speak."""

from __future__ import annotations

from typing import Protocol

from drainwise.pilot.backlog import Backlog
from drainwise.pilot.payload import Payload
from drainwise.pilot.usage import Usage


class PayloadQueue(Protocol):
    """Where payloads come from and go back to. No method raises for what is wrong outside the pilot: it is logged.

    Times are UNIX s.
    """

    def look(self, now: float) -> bool:
        """Take in what is new; whether anything changed. Cheap when nothing did."""

    def waiting(self) -> Backlog:
        """Those that could be started, not claimed yet: a view that follows the changes."""

    def claim(self, payload: Payload, now: float) -> bool:
        """Make a waiting payload this pilot's own just before it starts; False when somebody else has it already."""

    def finished(
        self, payload: Payload, code: int, seconds: float, now: float, reason: str = "", usage: Usage | None = None
    ) -> None:
        """A claimed payload ended by itself (0: done, else failed) or, with a reason, was stopped for good.

        usage: what it used, where that is known.
        """

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        """Put back a claimed payload that did not end, after it ran for so many seconds."""

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        """A claimed payload could not be started, by no fault of its own: it waits again."""

    def refuse(self, payload: Payload, reason: str, now: float) -> None:
        """A waiting payload can never run here: it is not offered again."""

    def more_may_come(self) -> bool:
        """Whether payloads that are not waiting yet may still appear."""

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when there is something new; None: look from time to time."""

    def close(self, now: float) -> None:
        """Hand back whatever is left."""

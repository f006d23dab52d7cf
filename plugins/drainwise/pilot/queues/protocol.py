"""The payload queue of a pilot, as a protocol: a directory and a command are two."""

from __future__ import annotations

from typing import Protocol

from drainwise.pilot.decide.backlog import Backlog
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.queues.records import EndedPayload


class PayloadQueue(Protocol):
    """A queue that gives and takes back payloads. No method raises for what is wrong outside the pilot: it is logged.

    Times are UNIX s.
    """

    def look(self, now: float) -> bool:
        """Take in what is new; whether anything changed. Cheap when nothing did."""

    def waiting(self) -> Backlog:
        """Return those that could be started, not claimed yet: a view that follows the changes."""

    def claim(self, payload: Payload, now: float) -> bool:
        """Make a waiting payload this pilot's own just before it starts; False when somebody else has it already."""

    def finished(self, ended: EndedPayload, now: float) -> None:
        """Record that a claimed payload ended by itself (0: done, else failed) or was stopped for good."""

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        """Put back a claimed payload that did not end, after it ran for `seconds`."""

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        """Have a claimed payload wait again that could not be started, by no fault of its own."""

    def refuse(self, payload: Payload, reason: str, now: float) -> None:
        """Offer a waiting payload never again: it cannot run here."""

    def more_may_come(self) -> bool:
        """Return whether payloads that are not waiting yet may still appear."""

    def fileno(self) -> int | None:
        """Return a descriptor that becomes readable when there is something new; None: look from time to time."""

    def close(self, now: float) -> None:
        """Hand back whatever is left."""

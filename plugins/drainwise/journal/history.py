"""The orders that the journal tells of, each with its end: what a report counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from drainwise.journal.event import (
    CANCEL,
    DONE,
    ENDED,
    FAILED,
    NOT_DONE,
    ORDER,
    UNANSWERED,
    Event,
    moment,
    number,
    text,
    truth,
    whole,
)
from drainwise.journal.read import PassedOver, events_of

OPEN = "no end known"
"""Its pilot still runs, or nobody has told yet how it ended."""
IN_TIME = "left in time"
LATE = "left late"
"""By itself, and after its deadline."""
VACATED = "vacated"
"""Ended by the batch system."""
TAKEN_BACK = "taken back"
"""The request was withdrawn."""
NOT_ASKED = "not asked"
"""The order was skipped or refused, or nobody answered it and nothing shows that it was carried out."""

ENDS = (IN_TIME, LATE, VACATED, TAKEN_BACK, OPEN)
"""How an order that was given can end."""


@dataclass(frozen=True)
class Asking:
    """One order; times in UNIX s, wastes in core-seconds, those of an end that is not known None.

    believed: its pilot promised something; else predicted is what was expected of it.
    """

    run: str
    name: str
    principal: str
    user: str
    cores: int
    asked: int
    deadline: int
    end: str
    believed: bool
    predicted: int
    ended: int | None = None
    realised: int | None = None

    @property
    def freed(self) -> bool:
        """Whether its cores came back."""
        return self.ended is not None


def askings(paths: Iterable[str], begin: int, passed_over: PassedOver | None = None) -> list[Asking]:
    """The orders of the journal's files from `begin` (UNIX s) on, in their order.

    A line that is not sound is passed over and counted. Raises UsageError for a file that cannot be read.
    """
    found: list[Asking] = []
    standing: dict[str, int] = {}  # place of the last order that was given to a run and has no end yet
    doubtful: dict[str, int] = {}  # place of the last order to a run of which nobody said whether it was given
    passed_over = passed_over or PassedOver()
    for event in events_of(paths, ORDER, CANCEL, ENDED, passed_over=passed_over):
        try:
            run = text(event, "run")
            if event["event"] == ORDER:
                if moment(event, "time") < begin:
                    standing.pop(run, None)  # what follows belongs to an order of before
                    continue
                order, place = _ordered(event), doubtful.pop(run, None)
                if place is None or "found" not in event or found[place].asked != order.asked:
                    place = len(found)
                    found.append(order)
                found[place] = order
                if event.get("outcome") == DONE:
                    standing[run] = place
                elif event.get("outcome") in (UNANSWERED, NOT_DONE, FAILED):
                    doubtful[run] = place
            elif event.get("outcome", DONE) == DONE and run in standing:
                place = standing.pop(run)
                found[place] = _ended(found[place], event)
        except ValueError:
            passed_over.lines += 1
    return found


def _ordered(event: Event) -> Asking:
    return Asking(
        run=text(event, "run"),
        name=text(event, "name"),
        principal=text(event, "principal"),
        user=text(event, "user"),
        cores=whole(event, "cores"),
        asked=moment(event, "time"),
        deadline=moment(event, "deadline"),
        end=OPEN if event.get("outcome") == DONE else NOT_ASKED,
        believed=event.get("claims") is not None,
        predicted=round(number(event, "promised")),
    )


def _ended(order: Asking, event: Event) -> Asking:
    if event["event"] == CANCEL:
        return replace(order, end=TAKEN_BACK)
    ended = moment(event, "ended")
    end = VACATED if truth(event, "vacated") else IN_TIME if ended <= order.deadline else LATE
    return replace(order, end=end, ended=ended, realised=whole(event, "realised"))

"""Read what the journal knows of single runs: their orders, how these ended, and how often each was spared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drainwise.identity.identity import ANYBODY, PilotIdentity, as_values, identity_of
from drainwise.journal.event import (
    DECISION,
    DONE,
    ENDED,
    ORDER,
    PART,
    WITHDRAWAL,
    Event,
    moment,
    objects,
    text,
    truth,
)
from drainwise.journal.read import PassedOver, event_of, kind_of, lines_of


def identity_in(event: Event) -> PilotIdentity:
    """Return who sent the pilot of an event, as far as that is known."""
    values = event.get("identity")
    return (identity_of(values) if isinstance(values, dict) else None) or ANYBODY


@dataclass(frozen=True)
class Sought:
    """The runs that are sought: those that are called so (None: any), and who sent them, as far as it is named.

    also: decides by user, account and node in an event; None: any.
    """

    called: str | None = None
    identity: PilotIdentity = ANYBODY
    also: Callable[[Event], bool] | None = None

    def texts(self) -> list[tuple[bytes, bytes]]:
        """Return what stands in each line about such a run that says who sent it: as the journal writes it, and plain.

        Another program may have written the journal anew, and not have escaped what is not ASCII.
        """
        found = [self.called] if self.called is not None else []
        found += (as_values(self.identity) or {}).values()
        return [(json.dumps(one)[1:-1].encode(), one.encode("utf-8", "replace")) for one in found]

    def fits(self, one: Event) -> bool:
        """Decide whether this is such a run; one: an event, or a part of one, that says who sent it."""
        is_called = self.called is None or self.called in names_of(text(one, "run"), text(one, "name"))
        return is_called and identity_in(one).fits(self.identity) and (self.also is None or self.also(one))


def names_of(run: str, name: str) -> set[str]:
    """Return all names of a pilot: the run, its name (a slot, or the job's number), the job.

    An HTCondor job is its GlobalJobId, `<cluster>.<process>` or the cluster; a Slurm job its number, `<array>_<task>`.
    """
    job = run.rpartition("@")[0]
    known = {run, name, job}
    parts = job.split("#")
    if len(parts) == 3:
        known |= {parts[1], parts[1].partition(".")[0]}
    return known - {""}


@dataclass(frozen=True)
class ExplainedOrder:
    """One order: the decision that it came from ({} when that is lost), and how it ended ({}: not known)."""

    order: Event
    decision: Event
    end: Event


@dataclass(frozen=True)
class Explained:
    """All that the journal knows of one run. spared: how often, with the last decision and its words ({}: never)."""

    run: str
    orders: tuple[ExplainedOrder, ...]
    spared_count: int
    spared: Event
    spared_at: int
    parts: tuple[Event, ...] = ()


class _Story:
    def __init__(self) -> None:
        self.parts: list[Event] = []
        self.orders: list[ExplainedOrder] = []
        self.spared_count, self.spared_at = 0, 0
        self.spared: Event = {}

    def add(self, known: ExplainedOrder) -> None:
        """Add an order, in place of the one before where the event says what became of that."""
        last = self.orders[-1] if self.orders else None
        if last is not None and "found" in known.order and last.order.get("time") == known.order.get("time"):
            known = ExplainedOrder(known.order, known.decision or last.decision, {})
            self.orders.pop()
        self.orders.append(known)

    def end(self, event: Event) -> None:
        """Add the end of the last order that was given."""
        for place in range(len(self.orders) - 1, -1, -1):
            last = self.orders[place]
            if last.order.get("outcome") == DONE:
                self.orders[place] = ExplainedOrder(last.order, last.decision, event)
                break


class Stories:
    """All that the journal's files tell of the runs that are sought, in the order in which they first name them."""

    def __init__(self, sought: Sought) -> None:
        self._sought = sought
        self._texts = sought.texts()
        self._names_identity = sought.identity != ANYBODY
        self._stories: dict[str, _Story] = {}
        self._decisions: dict[int, Event] = {}

    def read(self, paths: Iterable[str], passed_over: PassedOver) -> list[Explained]:
        """Return the runs. A line about them that is not sound is passed over and counted.

        Raises UsageError for a file that cannot be read.
        """
        for line in lines_of(paths):
            if not self._concerns(line):
                continue
            event = event_of(line)
            try:
                if event is not None:
                    self._take_in(event)
                    continue
            except ValueError:
                pass  # a line of somebody else's is no reason to hide the others
            passed_over.lines += 1
        return [
            Explained(run, tuple(one.orders), one.spared_count, one.spared, one.spared_at, tuple(one.parts))
            for run, one in self._stories.items()
        ]

    def _concerns(self, line: bytes) -> bool:
        """Decide whether a line may be about such a run. What ends an order does not say who sent the pilot."""
        if self._names_identity and self._stories and kind_of(line) in {ENDED, WITHDRAWAL}:
            return True
        return all(text in line or plain in line for text, plain in self._texts)

    def _take_in(self, event: Event) -> None:
        kind = event["event"]
        if kind == DECISION:
            self._decide(event)
        elif kind == ORDER and self._sought.fits(event):
            decision = self._decisions.get(moment(event, "taken"), {})
            self._story(event).add(ExplainedOrder(event, decision, {}))
        elif kind == PART and self._sought.fits(event):
            self._story(event).parts.append(event)
        elif kind in {WITHDRAWAL, ENDED} and event.get("outcome", DONE) == DONE and self._is_known(event):
            self._story(event).end(event)

    def _is_known(self, event: Event) -> bool:
        if self._names_identity:
            return text(event, "run") in self._stories
        return self._sought.fits(event)

    def _decide(self, event: Event) -> None:
        if not truth(event, "acting"):
            return  # it gave no order and spared nobody
        self._decisions.clear()  # orders follow the decision that they come from
        self._decisions[moment(event, "taken")] = event
        for one in objects(event, "spared"):
            if self._sought.fits(one):
                story = self._story(one)
                story.spared_count, story.spared, story.spared_at = story.spared_count + 1, one, moment(event, "time")

    def _story(self, one: Event) -> _Story:
        return self._stories.setdefault(text(one, "run"), _Story())

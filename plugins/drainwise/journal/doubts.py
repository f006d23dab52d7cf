"""What earlier orders left in doubt: those that nobody answered, those that were refused, and nodes that took none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drainwise.journal.entries import found_late_event, not_done_event
from drainwise.journal.event import (
    DENIED,
    DONE,
    FAILED,
    NOT_DONE,
    REFUSED,
    UNANSWERED,
    UNREACHABLE,
    Event,
    moment,
    text,
    whole,
)
from drainwise.pool import Pilot
from drainwise.reclaim.candidates import KILL
from drainwise.reclaim.doubt import IN_DOUBT
from drainwise.reclaim.limits import HOUR
from drainwise.reclaim.record import Asked, NodeFault

_SETTLED = 30
"""Seconds from the first word of a pilot that shows no order to the word after which the order was not carried out."""

_MAY_STAND = (FAILED, UNANSWERED, NOT_DONE)


class Doubts:
    """Grows by `note`; orders of which it is not known what became of them are kept for an hour."""

    def __init__(self) -> None:
        self._late: dict[str, Event] = {}  # by run: an order that may stand although nobody said so
        self._without: dict[str, int] = {}  # by run: the first word after an unanswered order that does not show it
        self._refused: dict[str, int] = {}
        self._nodes: dict[str, NodeFault] = {}

    def note(self, order: Event) -> None:
        """Take in an order's event. Raises ValueError for one that is not sound."""
        run, outcome, time = text(order, "run"), order.get("outcome"), moment(order, "time")
        self._late.pop(run, None)
        self._refused.pop(run, None)
        if outcome in _MAY_STAND:
            self._late[run] = order
        if outcome in (FAILED, REFUSED):
            self._refused[run] = time
        if outcome != UNANSWERED:
            self._without.pop(run, None)
        self._note_node(order, time)

    def _note_node(self, order: Event, time: int) -> None:
        node, outcome = text(order, "node"), order.get("outcome")
        if outcome == DONE:
            self._nodes.pop(node, None)
        elif outcome in (DENIED, UNREACHABLE, UNANSWERED) and order.get("only") == node:
            before = self._nodes.get(node)
            self._nodes[node] = NodeFault(time, 1 if before is None else before.count + 1, outcome == DENIED)
        elif outcome == NOT_DONE and order.get("only") == node and node in self._nodes:
            # While it was in doubt nobody was asked in its place: the node is left alone from now on.
            self._nodes[node] = replace(self._nodes[node], time=moment(order, "found"))

    def asked(self) -> dict[str, Asked]:
        """The cores of orders that were not answered, by run: they count as asked for."""
        return {
            run: Asked(moment(one, "time"), text(one, "user"), whole(one, "cores"))
            for run, one in self._unanswered().items()
        }

    def deadlines(self) -> dict[str, int]:
        """The deadlines (UNIX s) of the orders that may still be carried out, by run."""
        return {run: moment(one, "deadline") for run, one in self._unanswered().items()}

    def refused(self, now: int) -> dict[str, int]:
        """When orders were refused (UNIX s, not after `now`), by run."""
        return {run: min(time, now) for run, time in self._refused.items()}

    def nodes(self, now: int) -> dict[str, NodeFault]:
        """The nodes that did not take their last order, by name; none of it after `now` (UNIX s)."""
        return {name: replace(one, time=min(one.time, now)) for name, one in self._nodes.items()}

    def _unanswered(self) -> dict[str, Event]:
        return {run: one for run, one in self._late.items() if one.get("outcome") == UNANSWERED}

    def seen(self, running: Mapping[str, Pilot], taken: int, now: int) -> list[dict[str, object]]:
        """What the pilots that run show at `now` (UNIX s) of these orders, as events; taken: when that was looked at.

        An order stands where its deadline shows, or its pilot is ended as it was ordered. Where the word from a pilot
        is newer than its order and shows none, it was not carried out; what nothing tells of counts so after IN_DOUBT.
        """
        # What lies ahead was given by a clock that was set back since: it counts from now.
        late = {run: {**one, "time": min(moment(one, "time"), now)} for run, one in self._late.items()}
        self._late = {run: one for run, one in late.items() if moment(one, "time") > now - HOUR}
        self._without = {run: word for run, word in self._without.items() if run in self._late}
        self._refused = {run: time for run, time in self._refused.items() if run in running}
        found = []
        for run, order in self._late.items():
            pilot = running.get(run)
            if pilot is None:
                continue
            if pilot.deadline is not None or (pilot.leaving and order.get("kind") == KILL):
                found.append(found_late_event(order, now))
            elif order.get("outcome") == UNANSWERED:
                why = self._why_not_done(run, order, taken if pilot.heard is None else min(taken, pilot.heard), now)
                found += [not_done_event(order, why, now)] if why else []
        return found

    def _why_not_done(self, run: str, order: Event, word: int, now: int) -> str:
        given = moment(order, "time")
        if now - given > IN_DOUBT:
            return "found in the batch system: nothing has shown this order for long enough"
        if word <= given:
            return ""
        first = min(self._without.setdefault(run, word), word)
        return "found in the batch system: this order was not carried out" if word - first >= _SETTLED else ""

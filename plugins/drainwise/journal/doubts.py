"""Keep what earlier orders left in doubt: unanswered and refused orders, and nodes that took none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drainwise.journal.entries import found_late_event, not_done_event
from drainwise.journal.event import Event, Outcome, moment, text
from drainwise.journal.outcomes import past_order
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import KILL
from drainwise.reclaim.history import HOUR, IN_DOUBT, NodeFault, PastOrder

_SETTLED = 30
"""Seconds from the first report of a pilot that shows no order to the one after which the order was not carried out."""

_MAY_STAND = (Outcome.FAILED, Outcome.UNANSWERED, Outcome.NOT_DONE)


class Doubts:
    """Grows by `note`; orders of which it is not known what became of them are kept for an hour."""

    def __init__(self) -> None:
        self._late: dict[str, Event] = {}  # by run: an order that may stand although nobody said so
        self._without: dict[str, int] = {}  # by run: the first report after an unanswered order that does not show it
        self._refused: dict[str, int] = {}
        self._nodes: dict[str, NodeFault] = {}

    def note(self, order: Event) -> None:
        """Take in an order's event. Raises ValueError for one that is not sound."""
        run, outcome, time = text(order, "run"), order.get("outcome"), moment(order, "time")
        self._late.pop(run, None)
        self._refused.pop(run, None)
        if outcome in _MAY_STAND:
            self._late[run] = order
        if outcome in (Outcome.FAILED, Outcome.REFUSED):
            self._refused[run] = time
        if outcome != Outcome.UNANSWERED:
            self._without.pop(run, None)
        self._note_node(order, time)

    def _note_node(self, order: Event, time: int) -> None:
        node, outcome = text(order, "node"), order.get("outcome")
        if outcome == Outcome.DONE:
            self._nodes.pop(node, None)
        elif outcome in (Outcome.DENIED, Outcome.UNREACHABLE, Outcome.UNANSWERED) and order.get("only") == node:
            before = self._nodes.get(node)
            self._nodes[node] = NodeFault(time, 1 if before is None else before.count + 1, outcome == Outcome.DENIED)
        elif outcome == Outcome.NOT_DONE and order.get("only") == node and node in self._nodes:
            # While it was in doubt no order was given in its place: the node is left alone from now on.
            self._nodes[node] = replace(self._nodes[node], time=moment(order, "found"))

    def orders(self) -> dict[str, PastOrder]:
        """Return the orders that were not answered, by run: they count as given."""
        return {run: past_order(one) for run, one in self._unanswered().items()}

    def deadlines(self) -> dict[str, int]:
        """Return the deadlines (UNIX s) of the orders that may still be carried out, by run."""
        return {run: moment(one, "deadline") for run, one in self._unanswered().items()}

    def refused(self, now: int) -> dict[str, int]:
        """Return when orders were refused (UNIX s, not after `now`), by run."""
        return {run: min(time, now) for run, time in self._refused.items()}

    def nodes(self, now: int) -> dict[str, NodeFault]:
        """Return the nodes that did not take their last order, by name; no time is after `now` (UNIX s)."""
        return {name: replace(one, time=min(one.time, now)) for name, one in self._nodes.items()}

    def _unanswered(self) -> dict[str, Event]:
        return {run: one for run, one in self._late.items() if one.get("outcome") == Outcome.UNANSWERED}

    def seen(self, running: Mapping[str, Pilot], taken: int, now: int) -> list[dict[str, object]]:
        """Return as events what the running pilots show of these orders at `now` (UNIX s); taken: when they were read.

        An order stands where its deadline shows, or its pilot is ended as it was ordered. Where the report of a pilot
        is newer than its order and shows none, it was not carried out; what nothing tells of counts so after IN_DOUBT.
        """
        # What lies ahead was given by a clock that was set back since: it counts from now.
        late = {run: {**one, "time": min(moment(one, "time"), now)} for run, one in self._late.items()}
        self._late = {run: one for run, one in late.items() if moment(one, "time") > now - HOUR}
        self._without = {run: report for run, report in self._without.items() if run in self._late}
        self._refused = {run: time for run, time in self.refused(now).items() if run in running}
        self._nodes = self.nodes(now)
        found = []
        for run in [one for one in self._late if one in running]:
            order, pilot = self._late[run], running[run]
            if pilot.deadline is not None or (pilot.leaving and order.get("kind") == KILL):
                found.append(found_late_event(order, now))
            elif order.get("outcome") == Outcome.UNANSWERED:
                why = self._why_not_done(run, order, taken if pilot.heard is None else min(taken, pilot.heard), now)
                found += [not_done_event(order, why, now)] if why else []
        return found

    def _why_not_done(self, run: str, order: Event, report: int, now: int) -> str:
        given = moment(order, "time")
        if now - given > IN_DOUBT:
            return "found in the batch system: nothing has shown this order for long enough"
        if report <= given:
            return ""
        first = min(self._without.setdefault(run, report), report)
        return "found in the batch system: this order was not carried out" if report - first >= _SETTLED else ""

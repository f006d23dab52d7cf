"""HTCondor as a `Pool`: the collector tells, the startds take the orders."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import cast

from drainwise.errors import OrderUnanswered, PoolError, PoolUnreachable
from drainwise.htcondor.endings import Place, endings_in, in_question, places_of, with_who_asked
from drainwise.htcondor.orders import Order
from drainwise.htcondor.packed_ads import Bundle, unpacked
from drainwise.htcondor.pool_ads import SLOT_ATTRIBUTES, Ad, Others, text
from drainwise.htcondor.pool_view import snapshot_of
from drainwise.htcondor.shown_orders import to_be_asked, with_knobs
from drainwise.htcondor.time_limit import Asked, several_within, within
from drainwise.pool import Ending, Pilot, Snapshot

SNAPSHOT_SECONDS = 8.0
HISTORY_SECONDS, NODE_SECONDS = 30.0, 8.0  # for how runs ended: all nodes together, one node
_AHEAD_SECONDS = 3.0  # an answer that was asked for longer ago is not of now
ORDER_SECONDS = 30.0  # a startd is deaf for some seconds while it reconfigures


class HTCondorPool:
    """The pool that HTCondor's own configuration (CONDOR_CONFIG) names, with the credentials that it names.

    snapshot_seconds, order_seconds: how long the collector may take for a snapshot, and a node for an order. A snapshot
    needs level READ at the collector, an order level ADMINISTRATOR at the node.
    """

    def __init__(self, snapshot_seconds: float = SNAPSHOT_SECONDS, order_seconds: float = ORDER_SECONDS) -> None:
        self._snapshot_seconds, self._order_seconds = snapshot_seconds, order_seconds
        self._nodes: frozenset[str] = frozenset()
        """The nodes of the last whole answer."""
        self._ahead: tuple[float, Asked[Others | Bundle]] | None = None

    def require_bindings(self) -> None:
        """Raises UsageError when HTCondor's Python bindings here are too old."""
        within(self._snapshot_seconds, _require_bindings, "HTCondor's Python bindings")

    def ask_ahead(self) -> None:
        """Ask the collector now for the next snapshot: whoever takes that at once can get ready while it answers."""
        self._ahead = time.monotonic(), Asked(self._snapshot_seconds, _ask_collector, "the collector")

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`."""
        with closing(self._asked()) as asked, without_collection():
            answers = asked.values()
            others = cast("Others", next(answers))
            bundles = cast("Iterable[Bundle]", answers)
            slots = (ad for bundle in bundles for ad in unpacked(bundle, SLOT_ATTRIBUTES))
            shown = snapshot_of(slots, others, now, self._nodes)
        self._nodes = frozenset(node for ad in others.startds if (node := text(ad, "Machine")) is not None)
        doubtful = to_be_asked(shown)
        if not doubtful:
            return shown
        with suppress(PoolError):  # else what is shown counts: nobody is asked instead
            return with_knobs(shown, within(NODE_SECONDS, lambda: _ask_knobs(doubtful), "a node with orders"))
        return shown

    def _asked(self) -> Asked[Others | Bundle]:
        """What was asked ahead, if that was just now; else the collector is asked."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            when, asked = ahead
            if time.monotonic() - when < _AHEAD_SECONDS:
                return asked
            asked.close()
        return Asked(self._snapshot_seconds, _ask_collector, "the collector")

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the order is read back before this returns."""
        order = Order(pilot.run, deadline)
        self._send(pilot.node, lambda: _give(order, pilot.name, pilot.node))

    def take_back(self, pilot: Pilot, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the slot may stay Retiring, see `retirement`. The update hook tells the pilot."""
        self._send(pilot.node, lambda: _take_back(pilot.run, pilot.name, pilot.node))

    def _send(self, node: str, order: Callable[[], Iterable[None]]) -> None:
        """Have an order sent to a node. Raises as `Pool.ask_to_leave`."""
        sent = False
        try:
            with closing(several_within(self._order_seconds, order, f"node {node}")) as steps:
                for _ in steps:
                    sent = True
        except PoolUnreachable as fault:
            raise (OrderUnanswered if sent else PoolUnreachable)(str(fault), node) from None

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:  # noqa: ARG002 - what ended has ended
        """See `Pool`; a node keeps it as long as its STARTD_HISTORY. One that does not tell holds nobody up."""
        if not runs:
            return {}
        places = within(self._snapshot_seconds, lambda: places_of(_ask_places(), runs), "the collector")
        found: dict[str, Ending] = {}
        end = time.monotonic() + HISTORY_SECONDS
        for place in places:
            left = min(NODE_SECONDS, end - time.monotonic())
            if left <= 0:
                break
            with suppress(PoolUnreachable):
                history = within(left, partial(_ask_history, place), f"node {place.machine}")
                found.update(endings_in(history, place))
        return {**found, **self._with_who_asked(in_question(found.values(), places), end)}

    @staticmethod
    def _with_who_asked(endings: Sequence[Ending], end: float) -> dict[str, Ending]:
        """The endings by run, as far as access points tell by whom until `end` (s of the monotonic clock)."""
        known = {one.run: one for one in endings}
        for name in sorted({one.run.partition("#")[0] for one in endings}):
            left = min(NODE_SECONDS, end - time.monotonic())
            hers = [one for one in endings if one.run.partition("#")[0] == name]
            if left <= 0:
                break
            with suppress(PoolUnreachable):
                jobs = within(left, partial(_ask_jobs, name, hers), f"access point {name}")
                known.update((one.run, with_who_asked(one, jobs)) for one in hers)
        return known

    def tend(self, snapshot: Snapshot) -> list[str]:  # noqa: ARG002 - the startds enforce every deadline
        """See `Pool`: nothing is ever left to do."""
        return []


@contextmanager
def without_collection() -> Iterator[None]:
    """Many new values, no garbage: Python's collector would go through all of them again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


# The bindings are imported in the child that asks: each question reads the configuration as it is then, and a command
# that asks nothing does not need them.


def _require_bindings() -> None:
    from drainwise.htcondor.bindings import require_bindings  # noqa: PLC0415

    require_bindings()


def _ask_collector() -> Iterable[Others | Bundle]:
    from drainwise.htcondor.collector import pool_ads  # noqa: PLC0415

    return pool_ads()


def _give(order: Order, slot: str, machine: str) -> Iterator[None]:
    from drainwise.htcondor.order_road import give_order  # noqa: PLC0415

    return give_order(order, slot, machine)


def _take_back(run: str, slot: str, machine: str) -> Iterator[None]:
    from drainwise.htcondor.order_road import take_back  # noqa: PLC0415

    return take_back(run, slot, machine)


def _ask_knobs(nodes: Mapping[str, str]) -> dict[str, str]:
    from drainwise.htcondor.order_road import knobs_of  # noqa: PLC0415

    return knobs_of(nodes)


def _ask_places() -> list[Ad]:
    from drainwise.htcondor.collector import slots_with_orders  # noqa: PLC0415

    return slots_with_orders()


def _ask_jobs(access_point: str, endings: Sequence[Ending]) -> list[Ad]:
    from drainwise.htcondor.collector import jobs_at_their_end  # noqa: PLC0415

    return jobs_at_their_end(access_point, endings)


def _ask_history(place: Place) -> list[Ad]:
    from drainwise.htcondor.collector import startd_history  # noqa: PLC0415

    return startd_history(place)

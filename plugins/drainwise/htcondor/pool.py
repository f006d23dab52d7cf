"""HTCondor as a `Pool`: the collector tells, the startds take the orders."""

from __future__ import annotations

from drainwise.htcondor.orders import Order
from drainwise.htcondor.pool_ads import Ad
from drainwise.htcondor.pool_view import snapshot_of
from drainwise.htcondor.time_limit import within
from drainwise.pool import Pilot, Snapshot

SNAPSHOT_SECONDS = 8.0
ORDER_SECONDS = 30.0  # a startd is deaf for some seconds while it reconfigures


class HTCondorPool:
    """The pool that HTCondor's own configuration (CONDOR_CONFIG) names, with the credentials that it names.

    snapshot_seconds, order_seconds: how long the collector may take for a snapshot, and a node for an order. A snapshot
    needs level READ at the collector, an order level ADMINISTRATOR at the node.
    """

    def __init__(self, snapshot_seconds: float = SNAPSHOT_SECONDS, order_seconds: float = ORDER_SECONDS) -> None:
        self._snapshot_seconds, self._order_seconds = snapshot_seconds, order_seconds

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`."""
        slots, accounting, submitters = within(self._snapshot_seconds, _ask_collector, "the collector")
        return snapshot_of(slots, accounting, submitters, now)

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the order is read back before this returns."""
        order = Order(pilot.run, deadline)
        within(self._order_seconds, lambda: _give(order, pilot.name, pilot.node), f"node {pilot.node}")

    def tend(self, snapshot: Snapshot) -> list[str]:  # noqa: ARG002 - the startds enforce every deadline
        """See `Pool`: nothing is ever left to do."""
        return []


# The bindings are imported in the child that asks: each question reads the configuration as it is then, and a command
# that asks nothing does not need them.


def _ask_collector() -> tuple[list[Ad], list[Ad], list[Ad]]:
    from drainwise.htcondor.collector import pool_ads  # noqa: PLC0415

    return pool_ads()


def _give(order: Order, slot: str, machine: str) -> None:
    from drainwise.htcondor.order_road import give_order  # noqa: PLC0415

    give_order(order, slot, machine)

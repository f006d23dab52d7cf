"""Orders that a slot shows and its startd does not have. Pure.

The orders of a node are its knob PILOT_RECLAIM, which only ADMINISTRATOR sets. What its slots show of them is an
attribute, which whoever has level WRITE at the startd can set (condor_update_machine_ad). A slot with an order retires
within seconds, and nobody can set that from outside. So the startd itself is asked about each run that is shown with an
order and does not retire: it has just been ordered, or somebody pretends that it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drainwise.htcondor.orders import order_of, parse_orders
from drainwise.pool import Pilot, Snapshot

MOST = 32
"""Nodes that are asked for one snapshot; what more show is believed."""


def to_be_asked(snapshot: Snapshot) -> dict[str, str]:
    """The nodes whose orders are in doubt, each with one of its slots."""
    found: dict[str, str] = {}
    for pilot in snapshot.pilots:
        if pilot.deadline is not None and not pilot.leaving and (pilot.node in found or len(found) < MOST):
            found.setdefault(pilot.node, pilot.name)
    return found


def with_knobs(snapshot: Snapshot, knobs: Mapping[str, str]) -> Snapshot:
    """The snapshot without the orders that their startds do not have; `knobs` is PILOT_RECLAIM of the asked nodes."""
    pretended: set[str] = set()

    def checked(pilot: Pilot) -> Pilot:
        if pilot.deadline is None or pilot.leaving or pilot.node not in knobs:
            return pilot
        if order_of(pilot.run, parse_orders(knobs[pilot.node])) is not None:
            return pilot
        pretended.add(pilot.node)
        lease_end = None if pilot.lease_end == pilot.deadline else pilot.lease_end
        return replace(pilot, deadline=None, lease_end=lease_end)

    pilots = tuple(checked(pilot) for pilot in snapshot.pilots)
    if not pretended:
        return snapshot
    notices = (
        f"{node} shows orders that were never given: somebody with level WRITE at its startd set PilotReclaimOrders;"
        " restrict ALLOW_WRITE_STARTD there and restart the startd when it is next empty"
        for node in sorted(pretended)
    )
    return replace(snapshot, pilots=pilots, notices=(*snapshot.notices, *notices))

"""Orders of which nobody knows whether they are carried out, and nodes that took none: nobody is asked in their place.

A batch system that does not answer, or refuses whoever gives orders, is no fault of the pilot that was to be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drainwise.pool import Pilot, Snapshot
from drainwise.reclaim.record import NodeFault, Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock, duration

IN_DOUBT = 600
"""Seconds for which an order that was not answered counts as on its way, when nothing tells what became of it."""

_NAMED = 3
_MOST_DOUBLINGS = 5  # from 10 minutes to 5 hours


def with_unanswered(snapshot: Snapshot, unanswered: Mapping[str, int]) -> Snapshot:
    """The snapshot with the orders that were not answered (run -> deadline, UNIX s) at the pilots that show none."""
    if not unanswered:
        return snapshot
    pilots = (
        replace(one, unanswered=unanswered[one.run])
        if one.run in unanswered and one.deadline is None and not one.leaving
        else one
        for one in snapshot.pilots
    )
    return replace(snapshot, pilots=tuple(pilots))


def why_held_off(pilot: Pilot, now: int, settings: Settings, record: Record) -> str:
    """Why a pilot is not asked at `now` (UNIX s) for what became of orders to it or to its node; "" when it may be."""
    if pilot.unanswered is not None:
        return f"an order to be gone by {clock(pilot.unanswered)} was not answered and may still be carried out"
    if (failed := record.failed.get(pilot.run)) is not None and now - failed < settings.retry_after:
        return f"the order of {clock(failed)} was refused; not tried again for {duration(settings.retry_after)}"
    fault = record.nodes.get(pilot.node)
    if fault is None or now - fault.time >= _left_alone(fault, settings):
        return ""
    if fault.denied:
        return (
            f"{pilot.node} refused the agent's orders at {clock(fault.time)}; none is sent there for"
            f" {duration(_left_alone(fault, settings))}"
        )
    if fault.count == 1 and pilot.heard is not None and pilot.heard > fault.time:
        return ""
    return f"{pilot.node} did not answer at {clock(fault.time)}" + (
        "; none is sent there until it is heard of"
        if fault.count == 1
        else f", {fault.count} times in a row; none is sent there for {duration(settings.retry_after)}"
    )


def _left_alone(fault: NodeFault, settings: Settings) -> int:
    """Seconds for which a node is left alone: where it refuses, twice as long each time, so that others are reached."""
    return settings.retry_after << (min(fault.count - 1, _MOST_DOUBLINGS) if fault.denied else 0)


def refusing_nodes(nodes: Mapping[str, NodeFault], now: int, settings: Settings) -> str:
    """A sentence that names the nodes that refuse the agent's orders at `now` (UNIX s), or ""."""
    names = sorted(name for name, one in nodes.items() if one.denied and now - one.time < _left_alone(one, settings))
    if not names:
        return ""
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    who = "1 node refuses" if len(names) == 1 else f"{len(names)} nodes refuse"
    return f"{who} the agent's orders: {some}; `drainwise check` tells why"

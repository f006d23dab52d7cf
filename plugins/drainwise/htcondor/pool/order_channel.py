"""Give an order to a node and withdraw it, and have it keep room, each by a knob of the node: see `knob_channel`.

The node's configuration turns it into PREEMPT and MAXJOBRETIREMENTTIME: the startd alone enforces the deadline. To be
imported and called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

import classad2
import htcondor2

from drainwise.facts.errors import ActionRefused, PoolUnreachable, RunEnded
from drainwise.htcondor.ads.values import Ad, text, whole
from drainwise.htcondor.knobs.kept_rooms import ROOM_KNOB, parse_rooms, room_entry, rooms_text, with_room
from drainwise.htcondor.knobs.orders import (
    KNOB,
    OrderEntry,
    orders_text,
    parse_orders,
    why_at_once,
    with_order,
)
from drainwise.htcondor.node import CLAIM_VACATE, ORDERS, WITHDRAWN_SHOWN, WITHDRAWN_SHOWN_BEFORE
from drainwise.htcondor.node.order_list import WITHDRAWN, deadline_of, is_endless
from drainwise.htcondor.pool.collector import startd_address, startd_expression
from drainwise.htcondor.pool.knob_channel import (
    SHOWN_SECONDS,
    await_collector,
    change_knob,
    holds_within,
    runs_at,
    value_of,
)
from drainwise.htcondor.pool.order_rights import rights_at
from drainwise.pool.kept_room import KeptRoom

_TOO_LATE = 15  # seconds before its end begins in which a run is not given back any more: the node polls every 5 s
_VACATE = "MachineMaxVacateTime"
_LOOKED_AT = (
    *("State", "Activity", "Draining", "RetirementTimeRemaining"),
    *(_VACATE, CLAIM_VACATE, WITHDRAWN_SHOWN, WITHDRAWN_SHOWN_BEFORE, ORDERS),
)


def give_order(order: OrderEntry, slot: str, machine: str) -> Iterator[None]:
    """Have the startd of `machine` end this run by the deadline, if the run is still in its slot `slot`.

    Yields once, right before the order is sent: who is not answered after that cannot know what became of it. Ends when
    the collector shows it, or after a few seconds: the next snapshot had better know. Raises ActionRefused when the
    node refuses, or would not wait for a deadline that lies ahead; RunEnded; PoolUnreachable when it does not answer.
    """
    orders_text([order])
    address = startd_address(slot, machine)
    if order.run not in _runs(address):
        raise RunEnded(f"{order.run} does not run on {machine} any more")
    if order.deadline > time.time():
        why = why_at_once(startd_expression(address, slot, "MaxJobRetirementTime"))
        if why:
            raise ActionRefused(f"{machine} would end {order.run} at once and not at its deadline: {why}")
    yield
    _put(order, address, machine)
    _await_collector(order, slot, machine)


def withdraw_order(run: str, slot: str, machine: str) -> Iterator[None]:
    """Have the startd of `machine` let this run go on as without its order; do nothing when it has none.

    Yields and raises as `give_order` does. It is refused, too, when it is too late, when the node's drop-in knows no
    such thing, and when the job itself allows no longer retirement: the order stands then.
    """
    address = startd_address(slot, machine)
    here = _runs(address).get(run)
    if here is None:
        raise RunEnded(f"{run} does not run on {machine} any more")
    deadline = deadline_of(run, _value(address))
    if not deadline:
        return
    if here.get(WITHDRAWN_SHOWN) is None and here.get(WITHDRAWN_SHOWN_BEFORE) is None:
        raise ActionRefused(
            f"{machine} cannot withdraw an order: its drop-in is of an older drainwise; render it again"
        )
    vacate = max(whole(here, name) or 0 for name in (_VACATE, CLAIM_VACATE))
    if text(here, "State") != "Claimed" or time.time() > deadline - vacate - _TOO_LATE:
        raise ActionRefused(f"{run}: too late to withdraw the order: {machine} ends it already")
    withdrawn = OrderEntry(run, WITHDRAWN)
    yield
    _put(withdrawn, address, machine)
    if not _goes_on(run, address):
        _put(stands := OrderEntry(run, deadline), address, machine)
        _await_collector(stands, slot, machine)
        raise ActionRefused(
            f"{run}: HTCondor does not end a retirement, and the job allows no longer one (MaxJobRetirementTime): the"
            " order stands"
        )
    _await_collector(withdrawn, slot, machine)


def keep_room(room: KeptRoom) -> None:
    """Have the node keep a room; it does so from its next reconfig on.

    Raises RunEnded or PoolUnreachable when the node is not there or does not answer, ActionRefused when it refuses.
    """
    address = startd_address(room.place, room.node)
    rights_at(address)
    present, now = value_of(address, ROOM_KNOB), int(time.time())
    rooms = rooms_text(with_room(parse_rooms(present), room_entry(room, now), now))
    if rooms == present:
        return
    try:
        htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address, "MyType": "Generic"}))[ROOM_KNOB] = rooms
    except htcondor2.HTCondorException:
        value_of(address, ROOM_KNOB)
        why = "render its drop-in again if that is of an older drainwise"
        raise ActionRefused(f"{room.node} does not take {ROOM_KNOB}: {why}") from None


def knobs_of(nodes: Mapping[str, str]) -> dict[str, str]:
    """Read PILOT_RECLAIM of these nodes, each given with one of its slots; leave out those without an answer."""
    found = {}
    for machine, slot in nodes.items():
        with suppress(PoolUnreachable, RunEnded):
            found[machine] = _value(startd_address(slot, machine))
    return found


def _put(order: OrderEntry, address: str, machine: str) -> None:
    """Write the order into the node's list, and see that it stays there."""
    change_knob(
        address,
        machine,
        KNOB,
        lambda present, running: orders_text(with_order(parse_orders(present), order, running, int(time.time()))),
        lambda value: order in parse_orders(value),
        f"the order for {order.run}",
    )


def _goes_on(run: str, address: str) -> bool:
    """Decide whether a run whose order was just withdrawn keeps its time; or has ended, or is wanted by others."""

    def settled() -> bool:
        slot = _runs(address).get(run)
        return (
            slot is None
            or text(slot, "Activity") != "Retiring"
            or slot.get("Draining") is True
            or is_endless(whole(slot, "RetirementTimeRemaining"))
        )

    return holds_within(SHOWN_SECONDS, settled)


def _await_collector(order: OrderEntry, slot: str, machine: str) -> None:
    await_collector(order.run, slot, machine, ORDERS, lambda value: deadline_of(order.run, value) == order.deadline)


def _runs(address: str) -> dict[str, Ad]:
    return runs_at(address, _LOOKED_AT)


def _value(address: str) -> str:
    return value_of(address, KNOB)

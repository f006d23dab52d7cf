"""Tell a node something by a knob of its runtime configuration, set at level ADMINISTRATOR, then a reconfig; drain it.

By the bindings alone (they do what `condor_config_val -rset` and `condor_reconfig` do), so the agent needs no HTCondor
tools. The startd keeps the value until it restarts, and with it every run that the value could mean. The node's
configuration turns an order into PREEMPT and MAXJOBRETIREMENTTIME: the startd alone enforces the deadline.

To be called in a process of its own (`bounded_call.within`), as the bindings may hang. What gives something to a run
yields once, right before it is sent: who is not answered after that cannot know what became of it. It ends when the
collector shows it, or after a few seconds: the next snapshot had better know.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolUnreachable, RightsRefused, RunEnded
from drainwise.htcondor import node as names
from drainwise.htcondor.ads.query import classad2, htcondor2
from drainwise.htcondor.ads.values import Ad, moment, text, whole
from drainwise.htcondor.node.order_list import WITHDRAWN, deadline_of, is_endless
from drainwise.htcondor.node.parts import asked_of
from drainwise.htcondor.pool import collector, knobs
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import PREFIX, KeptRoom

SHOWN_SECONDS = 5.0
"""For the startd, and the collector, to show what was ordered."""
_TRIES = 5  # another agent may write between our reading and our writing
_SETTLE_SECONDS = (0.5, 1.5)  # until another agent that had read before we wrote must have written
_FRESH_SECONDS = 0.4  # less than the shortest of these: a list that was read before is read again
_LOOK_SECONDS = 0.2
_TOO_LATE = 15  # seconds before its end begins in which a run is not given back any more: the node polls every 5 s
_RUN = ("GlobalJobId", "JobStart")
_VACATE = "MachineMaxVacateTime"
_SETTLED = ("Activity", "Draining", "RetirementTimeRemaining")
_SETTABLE = "SETTABLE_ATTRS_ADMINISTRATOR"
_UNDEFINED = "Not defined"  # what a daemon says of a macro that it does not have


def give_order(order: knobs.OrderEntry, slot: str, machine: str) -> Iterator[None]:
    """Have the startd of `machine` end this run by the deadline, if the run is still in its slot `slot`.

    Raises ActionRefused when the node refuses, or would not wait for a deadline that lies ahead; RunEnded;
    PoolUnreachable when it does not answer.
    """
    knobs.orders_text([order])
    address, _ = _must_run(order.run, slot, machine)
    if order.deadline > time.time():
        why = knobs.why_at_once(collector.startd_expression(address, slot, "MaxJobRetirementTime"))
        if why:
            raise ActionRefused(f"{machine} would end {order.run} at once and not at its deadline: {why}")
    yield
    _put(order, address, machine)
    _await(order, slot, machine)


def withdraw_order(run: str, slot: str, machine: str) -> Iterator[None]:
    """Have the startd of `machine` let this run go on as without its order; do nothing when it has none.

    Raises as `give_order` does. It is refused, too, when it is too late, when the node's drop-in knows no such thing,
    and when the job itself allows no longer retirement: the order stands then.
    """
    looked_at = ("State", _VACATE, names.CLAIM_VACATE, names.WITHDRAWN_SHOWN, names.WITHDRAWN_SHOWN_BEFORE)
    address, here = _must_run(run, slot, machine, looked_at)
    deadline = deadline_of(run, _value_of(address, knobs.KNOB))
    if not deadline:
        return
    if here.get(names.WITHDRAWN_SHOWN) is None and here.get(names.WITHDRAWN_SHOWN_BEFORE) is None:
        raise ActionRefused(
            f"{machine} cannot withdraw an order: its drop-in is of an older drainwise; render it again"
        )
    vacate = max(whole(here, name) or 0 for name in (_VACATE, names.CLAIM_VACATE))
    if text(here, "State") != "Claimed" or time.time() > deadline - vacate - _TOO_LATE:
        raise ActionRefused(f"{run}: too late to withdraw the order: {machine} ends it already")
    withdrawn, stands = knobs.OrderEntry(run, WITHDRAWN), knobs.OrderEntry(run, deadline)
    yield
    _put(withdrawn, address, machine)
    if not _goes_on(run, address):
        _put(stands, address, machine)
        _await(stands, slot, machine)
        raise ActionRefused(
            f"{run}: HTCondor does not end a retirement, and the job allows no longer one (MaxJobRetirementTime): the"
            " order stands"
        )
    _await(withdrawn, slot, machine)


def ask_for_part(run: str, wish: PartialReturn, slot: str, machine: str) -> Iterator[None]:
    """Have the node of `machine` ask this run for so many cores; the update hook tells the pilot.

    Raises as `give_order`; ActionRefused, too, when the node could not lend what comes back, or not one core would
    stay.
    """
    knobs.with_part("", run, wish, ())
    address, here = _must_run(run, slot, machine, ("Cpus",))
    cores = whole(here, "Cpus") or 0
    if wish.cores >= max(1, cores):
        raise ActionRefused(f"{run}: {wish.cores} of its {cores} cores: expected 0 to {max(0, cores - 1)}")
    slots = collector.startd_slots(address, ("Name", names.SECOND_SLOT))
    if not any(ad.get(names.SECOND_SLOT) is True for ad in slots):
        raise ActionRefused(
            f"{machine} has no second slot for cores that pilots return: its startd was not restarted since"
            " [htcondor] partial_return was rendered, or it is not rendered there"
        )

    def changed(present: str, running: Mapping[str, Ad]) -> str:
        return knobs.with_part(present, run, wish, running)

    def stands(value: str) -> bool:
        return asked_of(run, value) == wish

    yield
    _change(address, machine, knobs.RETURN_KNOB, changed, stands, f"what {run} is asked to return")
    await_collector(run, slot, machine, names.RETURN_ASKED, stands)


def keep_room(room: KeptRoom) -> None:
    """Have the node keep a room; it does so from its next reconfig on.

    Raises RunEnded or PoolUnreachable when the node is not there or does not answer, ActionRefused when it refuses.
    """
    address = collector.startd_address(room.place, room.node)
    collector.rights_at(address)
    present, now = _value_of(address, knobs.ROOM_KNOB), int(time.time())
    rooms = knobs.rooms_text(knobs.with_room(knobs.parse_rooms(present), knobs.room_entry(room, now), now))
    if rooms == present:
        return
    try:
        _knobs_at(address)[knobs.ROOM_KNOB] = rooms
    except htcondor2.HTCondorException:
        _value_of(address, knobs.ROOM_KNOB)
        why = "render its drop-in again if that is of an older drainwise"
        raise ActionRefused(f"{room.node} does not take {knobs.ROOM_KNOB}: {why}") from None


def knobs_of(nodes: Mapping[str, str]) -> dict[str, str]:
    """Read PILOT_RECLAIM of these nodes, each given with one of its slots; leave out those without an answer."""
    found = {}
    for machine, slot in nodes.items():
        with suppress(PoolUnreachable, RunEnded):
            found[machine] = _value_of(collector.startd_address(slot, machine), knobs.KNOB)
    return found


def drain(machine: str, reason: str) -> bool:
    """Have a node's startd drain gracefully; return False when it does so already, for whatever reason.

    Raises RightsRefused, ActionRefused, and PoolUnreachable when it does not answer.
    """
    address = collector.machine_address(machine)
    if _drain_reason(address) is not None:
        return False
    kind, then = htcondor2.DrainType.Graceful, htcondor2.CompletionType.Nothing
    _command_drain(
        address,
        machine,
        lambda startd: startd.drainJobs(drain_type=kind, on_completion=then, reason=reason),
        f"{machine} is not drained",
    )
    return True


def end_drain(machine: str) -> bool:
    """Cancel a drain of ours; return False when there is none any more. Raises as `drain`."""
    address = collector.machine_address(machine)
    if not (_drain_reason(address) or "").startswith(PREFIX):
        return False
    refused = f"the drain of {machine} is not cancelled"
    _command_drain(address, machine, lambda startd: startd.cancelDrainJobs(), refused)
    return True


def _drain_reason(address: str) -> str | None:
    """Return why the startd drains, None when it does not: its own answer is newer than the collector's."""
    slots = collector.startd_slots(address, ("Draining", "DrainReason"))
    return next((text(one, "DrainReason") or "" for one in slots if one.get("Draining") is True), None)


def _command_drain(address: str, machine: str, command: Callable[[Any], object], refused: str) -> None:
    if not collector.rights_at(address).allowed:
        raise RightsRefused(
            f"{machine} takes no drain of the agent's: its identity must be in ALLOW_ADMINISTRATOR there; `drainwise"
            " check htcondor` names it",
            machine,
        )
    try:
        command(htcondor2.Startd(classad2.ClassAd({"MyAddress": address})))
    except htcondor2.HTCondorException as fault:
        raise ActionRefused(f"{refused}: {fault}") from None


def _must_run(run: str, slot: str, machine: str, attributes: Iterable[str] = ()) -> tuple[str, Ad]:
    """Return the address of the startd that has this run, and the attributes of its slot. Raises RunEnded."""
    address = collector.startd_address(slot, machine)
    here = _runs_at(address, attributes).get(run)
    if here is None:
        raise RunEnded(f"{run} does not run on {machine} any more")
    return address, here


def _put(order: knobs.OrderEntry, address: str, machine: str) -> None:
    """Write the order into the node's list, and see that it stays there."""

    def changed(present: str, running: Mapping[str, Ad]) -> str:
        orders = knobs.with_order(knobs.parse_orders(present), order, running, int(time.time()))
        return knobs.orders_text(orders)

    def stands(value: str) -> bool:
        return order in knobs.parse_orders(value)

    _change(address, machine, knobs.KNOB, changed, stands, f"the order for {order.run}")


def _await(order: knobs.OrderEntry, slot: str, machine: str) -> None:
    await_collector(
        order.run, slot, machine, names.ORDERS, lambda value: deadline_of(order.run, value) == order.deadline
    )


def _goes_on(run: str, address: str) -> bool:
    """Decide whether a run whose order was just withdrawn keeps its time; or has ended, or is wanted by others."""

    def settled() -> bool:
        slot = _runs_at(address, _SETTLED).get(run)
        return (
            slot is None
            or text(slot, "Activity") != "Retiring"
            or slot.get("Draining") is True
            or is_endless(whole(slot, "RetirementTimeRemaining"))
        )

    return _holds_within(SHOWN_SECONDS, settled)


def _change(
    address: str,
    machine: str,
    knob: str,
    changed: Callable[[str, Mapping[str, Ad]], str],
    stands: Callable[[str], bool],
    what: str,
) -> None:
    """Write a change into the value of a node's knob, and see that it stays there.

    changed: makes the new value of the present one and of the node's runs. stands: whether a value has the change.
    what: the change, in words. Raises OrderUnanswered when it does not stay, and as `_set`.
    """
    collector.rights_at(address)  # from here on as whom it takes orders of, where we can be several
    for left in reversed(range(_TRIES)):
        running = _runs_at(address)  # first: nothing may take time between reading the list and writing it
        read = time.monotonic()
        present = _value_of(address, knob)
        if stands(present):
            return
        value = changed(present, running)
        if left and time.monotonic() - read > _FRESH_SECONDS:
            continue  # this process stood still: what another agent has written since would be lost
        _set(address, knob, value, machine)
        if stands(_value_of(address, knob)):
            time.sleep(random.uniform(*_SETTLE_SECONDS))  # noqa: S311 - so that two agents do not keep step
            if stands(_value_of(address, knob)):
                return
    raise OrderUnanswered(f"{machine} did not keep {what}: does another agent give orders, too?")


def _runs_at(address: str, attributes: Iterable[str] = ()) -> dict[str, Ad]:
    """Query the runs on a node by its startd, with these attributes of their slots."""
    runs = {}
    for slot in collector.startd_slots(address, (*_RUN, *attributes)):
        run = knobs.run_name(text(slot, "GlobalJobId"), moment(slot, "JobStart"))
        if run is not None:
            runs[run] = slot
    return runs


def _value_of(address: str, knob: str) -> str:
    """Read a knob of a startd, "" where it is not set. Raises PoolUnreachable."""
    try:
        value = _knobs_at(address).get(knob, "")
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the startd at {address} does not answer with its {knob}: {fault}") from None
    return "" if value == _UNDEFINED else str(value)


def _holds_within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait for a condition for at most `seconds`; return whether it came to hold."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def await_collector(run: str, slot: str, machine: str, attribute: str, stands: Callable[[str], bool]) -> None:
    """Wait until the collector shows what now stands for a run in its slot, as the reconfig has it do.

    stands: whether the text of that attribute of the slot has it. It stands, whatever the collector shows: nothing is
    raised.
    """

    def shown() -> bool:
        ad = collector.collector_slot(slot, machine, (*_RUN, attribute))
        if ad is None or knobs.run_name(text(ad, "GlobalJobId"), moment(ad, "JobStart")) != run:
            return True
        return stands(text(ad, attribute) or "")

    with suppress(PoolUnreachable):
        _holds_within(SHOWN_SECONDS, shown)


def _set(address: str, knob: str, value: str, machine: str) -> None:
    try:
        _knobs_at(address)[knob] = value
    except htcondor2.HTCondorException:
        _value_of(address, knob)  # a node that does not answer has not refused anything
        raise RightsRefused(f"{machine} refused the order: {_why_refused(address, knob)}", machine) from None
    try:
        htcondor2.send_command(_located(address), htcondor2.DaemonCommands.Reconfig)
    except htcondor2.HTCondorException as fault:
        raise OrderUnanswered(
            f"{machine} took the order and not the reconfig after which it counts: {fault}", machine
        ) from None


def _why_refused(address: str, knob: str) -> str:
    """Say which of its three conditions an order lacks at this startd, and what to do."""
    if not collector.rights_at(address).allowed:
        return "the agent's identity must be in its ALLOW_ADMINISTRATOR; `drainwise check htcondor` names it"
    try:
        there = _knobs_at(address)
        enabled, settable = (str(there.get(name, "")) for name in ("ENABLE_RUNTIME_CONFIG", _SETTABLE))
    except htcondor2.HTCondorException as fault:
        return f"the agent's identity may give orders, but the startd does not show its configuration: {fault}"
    if knob.casefold() not in settable.casefold().replace(",", " ").split():
        return f"its {_SETTABLE} does not name {knob}: install the drop-in of drainwise there"
    if enabled.strip().casefold() not in {"true", "t", "yes", "1"}:
        return "ENABLE_RUNTIME_CONFIG is not true there: install the drop-in of drainwise, last"
    return (
        "ENABLE_RUNTIME_CONFIG was not yet true when its startd started: the node's next reboot will do; condor_restart"
        " -peaceful -startd takes no job there until the last one has ended, any other restart evicts them"
    )


def _located(address: str) -> Any:
    # MyType Generic: the bindings know no type for a startd here, and a reconfig is the same for every daemon.
    return classad2.ClassAd({"MyAddress": address, "MyType": "Generic"})


def _knobs_at(address: str) -> Any:
    return htcondor2.RemoteParam(_located(address))

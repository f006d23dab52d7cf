"""The channel to a node: a knob of its runtime configuration, set at level ADMINISTRATOR, then a reconfig.

By the bindings alone (they do what `condor_config_val -rset` and `condor_reconfig` do), so the agent needs no HTCondor
tools. The startd keeps the value until it restarts, and with it every run that the value could mean. To be imported and
called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import classad2
import htcondor2

from drainwise.facts.errors import OrderUnanswered, PoolUnreachable, RightsRefused
from drainwise.htcondor.ads.values import Ad, moment, text
from drainwise.htcondor.knobs.orders import run_name
from drainwise.htcondor.pool.collector import collector_slot, startd_slots
from drainwise.htcondor.pool.order_rights import rights_at

SHOWN_SECONDS = 5.0
"""For the startd, and the collector, to show what was ordered."""
_TRIES = 5  # another agent may write between our reading and our writing
_SETTLE_SECONDS = (0.5, 1.5)  # until another agent that had read before we wrote must have written
_FRESH_SECONDS = 0.4  # less than the shortest of these: a list that was read before is read again
_LOOK_SECONDS = 0.2
_RUN = ("GlobalJobId", "JobStart")
_SETTABLE = "SETTABLE_ATTRS_ADMINISTRATOR"
_UNDEFINED = "Not defined"  # what a daemon says of a macro that it does not have


def change_knob(
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
    rights_at(address)  # from here on as whom it takes orders of, where we can be several
    for left in reversed(range(_TRIES)):
        running = runs_at(address)  # first: nothing may take time between reading the list and writing it
        read = time.monotonic()
        present = value_of(address, knob)
        if stands(present):
            return
        value = changed(present, running)
        if left and time.monotonic() - read > _FRESH_SECONDS:
            continue  # this process stood still: what another agent has written since would be lost
        _set(address, knob, value, machine)
        if stands(value_of(address, knob)):
            time.sleep(random.uniform(*_SETTLE_SECONDS))  # noqa: S311 - so that two agents do not keep step
            if stands(value_of(address, knob)):
                return
    raise OrderUnanswered(f"{machine} did not keep {what}: does another agent give orders, too?")


def runs_at(address: str, attributes: Iterable[str] = ()) -> dict[str, Ad]:
    """Query the runs on a node by its startd, with these attributes of their slots."""
    runs = {}
    for slot in startd_slots(address, (*_RUN, *attributes)):
        run = run_name(text(slot, "GlobalJobId"), moment(slot, "JobStart"))
        if run is not None:
            runs[run] = slot
    return runs


def value_of(address: str, knob: str) -> str:
    """Read a knob of a startd, "" where it is not set. Raises PoolUnreachable."""
    try:
        value = htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address})).get(knob, "")
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the startd at {address} does not answer with its {knob}: {fault}") from None
    return "" if value == _UNDEFINED else str(value)


def holds_within(seconds: float, condition: Callable[[], bool]) -> bool:
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
        ad = collector_slot(slot, machine, (*_RUN, attribute))
        if ad is None or run_name(text(ad, "GlobalJobId"), moment(ad, "JobStart")) != run:
            return True
        return stands(text(ad, attribute) or "")

    with suppress(PoolUnreachable):
        holds_within(SHOWN_SECONDS, shown)


def _set(address: str, knob: str, value: str, machine: str) -> None:
    # MyType Generic: the bindings know no type for a startd here, and a reconfig is the same for every daemon.
    startd = classad2.ClassAd({"MyAddress": address, "MyType": "Generic"})
    try:
        htcondor2.RemoteParam(startd)[knob] = value
    except htcondor2.HTCondorException:
        value_of(address, knob)  # a node that does not answer has not refused anything
        raise RightsRefused(f"{machine} refused the order: {_why_refused(address, knob)}", machine) from None
    try:
        htcondor2.send_command(startd, htcondor2.DaemonCommands.Reconfig)
    except htcondor2.HTCondorException as fault:
        raise OrderUnanswered(
            f"{machine} took the order and not the reconfig after which it counts: {fault}", machine
        ) from None


def _why_refused(address: str, knob: str) -> str:
    """Say which of its three conditions an order lacks at this startd, and what to do."""
    if not rights_at(address).allowed:
        return "the agent's identity must be in its ALLOW_ADMINISTRATOR; `drainwise check htcondor` names it"
    try:
        knobs = htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address}))
        enabled, settable = (str(knobs.get(name, "")) for name in ("ENABLE_RUNTIME_CONFIG", _SETTABLE))
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

"""The road of an order to a node: its runtime configuration, set at level ADMINISTRATOR, then a reconfig.

By the bindings alone (they do what `condor_config_val -rset` and `condor_reconfig` do), so the agent needs no HTCondor
tools. The startd keeps the value until it restarts, and with it every run that the value could mean. The node's
configuration turns it into PREEMPT and MAXJOBRETIREMENTTIME: the startd alone enforces the deadline. To be imported and
called in a process of its own (`time_limit.within`), as the bindings may hang.
"""

from __future__ import annotations

import random
import time

import classad2
import htcondor2

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.htcondor.collector import startd_address, startd_slots
from drainwise.htcondor.orders import KNOB, Order, orders_text, parse_orders, run_name, with_order
from drainwise.htcondor.pool_ads import moment, text

_TRIES = 5  # another agent may write between our reading and our writing
_SETTLE_SECONDS = (0.5, 1.5)  # until another agent that had read before we wrote must have written
_UNDEFINED = "Not defined"  # what a daemon says of a macro that it does not have


def give_order(order: Order, slot: str, machine: str) -> None:
    """Have the startd of `machine` end this run by the deadline, if the run is still in its slot `slot`.

    Raises ActionRefused when the node refuses, PoolUnreachable when it does not answer or the run is there no more.
    """
    orders_text([order])
    address = startd_address(slot, machine)
    running = _running(address)
    if order.run not in running:
        raise PoolUnreachable(f"{order.run} does not run on {machine} any more")
    for _ in range(_TRIES):
        present = parse_orders(_value(address))
        if order in present:
            return
        _set(address, orders_text(with_order(present, order, running, time.time())), machine)
        if order in parse_orders(_value(address)):
            time.sleep(random.uniform(*_SETTLE_SECONDS))  # noqa: S311 - so that two agents do not keep step
            if order in parse_orders(_value(address)):
                return
    raise PoolUnreachable(f"{machine} did not keep the order for {order.run}: does another agent give orders, too?")


def _running(address: str) -> set[str]:
    """The runs on a node by the startd's own word."""
    slots = startd_slots(address, ("GlobalJobId", "JobStart"))
    runs = (run_name(text(slot, "GlobalJobId"), moment(slot, "JobStart")) for slot in slots)
    return {run for run in runs if run is not None}


def _value(address: str) -> str:
    try:
        value = htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address})).get(KNOB, "")
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the startd at {address} does not tell its {KNOB}: {fault}") from None
    return "" if value == _UNDEFINED else str(value)


def _set(address: str, value: str, machine: str) -> None:
    # MyType Generic: the bindings know no type for a startd here, and a reconfig is the same for every daemon.
    startd = classad2.ClassAd({"MyAddress": address, "MyType": "Generic"})
    try:
        htcondor2.RemoteParam(startd)[KNOB] = value
        htcondor2.send_command(startd, htcondor2.DaemonCommands.Reconfig)
    except htcondor2.HTCondorException:
        raise ActionRefused(
            f"{machine} refused the order: the agent's identity must be in its ALLOW_ADMINISTRATOR, and"
            f" ENABLE_RUNTIME_CONFIG and SETTABLE_ATTRS_ADMINISTRATOR ({KNOB}) set there since the startd's start"
        ) from None

"""Nodes that take no orders are known by what they publish, counted and named; an older node is asked as it was."""

from __future__ import annotations

import pytest

from drainwise.htcondor.ads.values import Ad
from drainwise.htcondor.pool.slots import NOT_IN_FORCE, NOT_INSTALLED, RESTART, Slot, closed_notices, why_no_orders

START = 1795240000


def slot(ad: Ad, machine: str) -> Slot:
    return Slot(ad, f"slot1_1@{machine}", machine, 8, 8.0, "Claimed", None, None)


def closed(machine: str, since: int = START + 1) -> Slot:
    return slot({"PilotReclaimOrders": "", "PilotOrdersSince": since, "DaemonStartTime": START}, machine)


@pytest.mark.parametrize(
    ("ad", "why"),
    [
        ({"PilotOrdersSince": START + 1, "DaemonStartTime": START}, RESTART),
        ({"PilotOrdersSince": START, "DaemonStartTime": START}, ""),
        ({"PilotOrdersSince": 1, "DaemonStartTime": START}, ""),
        ({"PilotOrdersSince": 0, "DaemonStartTime": START}, NOT_IN_FORCE),
        ({"DaemonStartTime": START}, ""),
        ({"PilotOrdersSince": START}, ""),
        ({"PilotOrdersSince": "soon", "DaemonStartTime": START}, ""),
        ({"PilotOrdersSince": True, "DaemonStartTime": START}, ""),
        ({"PilotOrdersSince": START + 1, "DaemonStartTime": "long ago"}, ""),
        ({}, ""),
    ],
)
def test_a_startd_that_started_before_takes_no_orders(ad: Ad, why: str) -> None:
    """Whatever the orders are that the node shows."""
    assert why_no_orders({"PilotReclaimOrders": "", **ad}) == why


def test_a_node_without_the_drop_in_takes_no_orders() -> None:
    """Its pilots have the reason; that there are such nodes is no news in each cycle."""
    assert why_no_orders({"DaemonStartTime": START}) == NOT_INSTALLED
    assert closed_notices([slot({}, "n1")]) == ()


def test_each_node_is_counted_once_and_some_are_named() -> None:
    """Slots of one node are one node."""
    slots = [closed(f"n{number}") for number in range(7) for _ in range(3)]
    [notice] = closed_notices([*slots, closed("open", since=START)])
    assert notice.startswith("7 nodes take no orders until the startd is restarted: the next reboot will do.")
    assert notice.endswith("(n0, n1, n2, n3, n4 and 2 more)")


def test_each_reason_has_its_sentence() -> None:
    first, second = closed_notices([closed("a"), closed("b", since=0)])
    assert first.startswith("1 node takes no orders until") or second.startswith("1 node takes no orders until")
    assert "not in force" in first + second
    assert closed_notices([]) == ()

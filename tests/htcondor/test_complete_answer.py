"""A collector that has just started does not know all nodes yet: nothing is decided until it can."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.pool.startds import Startds, require_refilled

NOW = 1795249000
NODES = ("node1", "node2", "node3")


def collector(age: object) -> dict[str, object]:
    return {"Name": "pool", "StatsLifetime": age, "StatsLastUpdateTime": NOW}


def startd(node: str, started: int = NOW - 86_400, **more: object) -> dict[str, object]:
    name = f"slot1@{node}"
    return {"Name": name, "Machine": node, "DaemonStartTime": started, "LastHeardFrom": NOW - 1, **more}


def check(
    nodes: Collection[str],
    age: object,
    before: Collection[str] = (),
    masters: Collection[str] = (),
    slots: Collection[str] = (),
    silent: Collection[str] = (),
    **more: object,
) -> str:
    """Why the answer is refused, "" when it is believed."""
    startds = Startds([startd(node, **more) for node in nodes])  # type: ignore[arg-type]
    told = [{"Machine": node, "DaemonStartTime": NOW - 86_400, "STARTD_StartTime": 1} for node in masters]
    try:
        require_refilled(startds, slots, [collector(age)], told, before, NOW, silent)
    except PoolUnreachable as fault:
        return str(fault)
    return ""


def test_a_collector_that_has_just_started_is_not_believed() -> None:
    """Startds tell it one after the other; each may be late by its interval, and its first word is lost."""
    assert check(NODES[:1], 40) == (
        "incomplete answer: the collector started 40 s ago, and not every startd has sent it its ads yet: nothing"
        " is decided before all are back, or 575 s have passed"
    )
    assert check(NODES[:1], 614)
    assert not check(NODES[:1], 615)


def test_the_nodes_own_intervals_count() -> None:
    assert check(NODES, 34, PilotUpdateInterval=10)
    assert not check(NODES, 35, PilotUpdateInterval=10)


def test_what_a_loop_saw_before_is_waited_for_and_no_longer() -> None:
    refused = check(NODES[:2], 40, before=NODES)
    assert "1 nodes are missing (node3)" in refused
    assert not check(NODES, 40, before=NODES)
    assert not check(NODES[:2], 700, before=NODES), "a node that has gone stops nobody for ever"


def test_a_node_that_does_not_answer_itself_is_waited_for_two_minutes() -> None:
    assert check(NODES[:2], 119, before=NODES, silent=NODES[2:])
    assert not check(NODES[:2], 120, before=NODES, silent=NODES[2:])
    assert check(NODES[:1], 120, before=NODES, silent=NODES[2:])


def test_masters_name_the_nodes_that_are_missing() -> None:
    assert "1 nodes are missing (node3)" in check(NODES[:2], 40, masters=NODES)


def test_a_startd_that_is_back_without_its_dynamic_slots_is_not() -> None:
    """Seen on 23.9.6: a partitionable slot came two seconds before its four dynamic ones."""
    parts = {"before": NODES[:1], "ChildDSlotId": [1, 2], "slots": ["slot1@node1", "slot1_2@node1"]}
    assert "1 slots are missing (slot1_1@node1)" in check(NODES[:1], 40, **parts)  # type: ignore[arg-type]


def test_a_pool_that_has_started_with_its_collector_is_whole() -> None:
    assert not check(NODES, 40, started=NOW - 41)
    assert not check(NODES, 40, started=NOW - 69), "their clocks may differ by half a minute"
    assert check(NODES, 40, started=NOW - 101)


@pytest.mark.parametrize("age", [None, "40", -1, 1e300, float("nan"), True])
def test_a_collector_that_does_not_say_its_age_is_believed(age: object) -> None:
    assert not check(NODES[:1], age)

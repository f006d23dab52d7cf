"""What the agent makes of a slot's ad is what the node itself makes of it: the two read the same text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import classad2
import htcondor2  # noqa: F401 - without it ClassAds lack HTCondor's own functions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.node.order_list import WITHDRAWN, deadline_of
from drainwise.htcondor.node.update_hook import ordered_deadline
from drainwise.htcondor.pool.slots import NO_UPDATE_HOOK, pilot_of, slot_of
from drainwise.htcondor.setup import render
from drainwise.htcondor.setup.render import drop_in_path
from drainwise.pool.facts import Pilot
from drainwise.siteconfig import FeaturesSection, SiteConfig

NOW, START, LIMIT = 1795259000, 1795258515, 172_800
JOB = "central.pool.test#28.0#1795258311"
Node = Callable[[str], "tuple[int | None, int | None]"]


@pytest.fixture(scope="module")
def node(answers: Callable[[str, Iterable[str]], dict[str, str]]) -> Node:
    """Deadline and lease end of the slot, as a node's own expressions give them for a text of orders."""
    files = render.render(SiteConfig(features=FeaturesSection(wall_limit=LIMIT)), "execute")
    [text] = [file.text for file in files if file.path == drop_in_path("execute")]
    names = ("PilotReclaimDeadline", "PilotLeaseEnd", "PilotWallLimit")
    found = answers(f"{text}\nPILOT_RECLAIM = ORDERS-OF-THE-NODE\n", names)
    assert found["pilotwalllimit"] == str(LIMIT)

    def told(orders: str) -> tuple[int | None, int | None]:
        ad = classad2.ClassAd({"GlobalJobId": JOB, "JobStart": START})
        for name in names[:2]:
            ad[name] = classad2.ExprTree(found[name.lower()].replace("ORDERS-OF-THE-NODE", orders))
        deadline, lease_end = (ad.eval(name) for name in names[:2])
        return (deadline if type(deadline) is int else None), (lease_end if type(lease_end) is int else None)

    return told


SLOT = {
    "Name": "slot1_1@n",
    "Machine": "n",
    "State": "Claimed",
    "Activity": "Busy",
    "Cpus": 8,
    "RemoteOwner": "alice@pool.test",
    "GlobalJobId": JOB,
    "JobStart": START,
}


def agent(orders: str, **more: object) -> Pilot:
    slot = slot_of({**SLOT, "PilotReclaimOrders": orders, "PilotWallLimit": LIMIT, **more})
    assert slot is not None
    pilot = pilot_of(slot, "group_a", NOW)
    assert pilot is not None
    return pilot


runs = st.sampled_from(
    (
        f"{JOB}@{START}",
        f"{JOB}@{START}",
        f"{JOB}@{START + 1}",
        f"x{JOB}@{START}",
        f"{JOB[:-1]}@{START}",
        f"{JOB}1@{START}",
    )
)
deadlines = st.integers(NOW - 10_000, NOW + 400_000) | st.sampled_from([0, "00", f"00{NOW + 90}", "soon", ""])
lists = st.lists(st.builds("{}={}".format, runs, deadlines), max_size=5).map(" ".join)


@given(orders=lists)
def test_deadline_and_lease_are_those_that_the_node_enforces(node: Node, orders: str) -> None:
    """HOSTILE 50: of the last entry for exactly this run, none where that was withdrawn; the hook reads the same."""
    pilot = agent(orders)
    assert (pilot.deadline, pilot.lease_end) == node(orders)
    assert (
        ordered_deadline({"GlobalJobId": JOB, "JobStart": START, "PilotReclaimOrders": orders}) or None
    ) == pilot.deadline


def test_an_order_whose_withdrawal_follows_is_none(node: Node) -> None:
    """For the expressions, the hook and the agent alike."""
    run = f"{JOB}@{START}"
    assert node(f"{run}=1795259000 {run}=0")[0] is agent(f"{run}=1795259000 {run}=0").deadline is None
    assert deadline_of(run, f"{run}=1795259000 {run}=0") == WITHDRAWN
    assert node(f"{run}=0 {run}=1795259000")[0] == deadline_of(run, f"{run}=0 {run}=1795259000") == 1795259000


@pytest.mark.parametrize("limit", [None, "2d", -1, 1e300, 2**62, True])
def test_a_wall_limit_that_cannot_be_is_none(limit: object) -> None:
    assert agent("", PilotWallLimit=limit).lease_end is None
    assert agent(f"{JOB}@{START}={NOW + 60}", PilotWallLimit=limit).lease_end == NOW + 60


@pytest.mark.parametrize(
    ("more", "since", "can"),
    [
        ({}, None, True),  # a node of an earlier drainwise
        ({}, START, True),
        ({}, START + 1, False),
        ({"PilotHookRan": True}, START + 1, True),
        ({"PilotHookRan": 1}, START + 1, False),
        ({"PilotHeartbeat": START + 5}, START + 1, True),
    ],
)
def test_a_run_older_than_the_hooks_cannot_be_told(more: dict[str, object], since: int | None, can: bool) -> None:
    """Its starter read the configuration before: it runs no update hook, however often the node is reconfigured."""
    slot = slot_of({**SLOT, "PilotReclaimOrders": "", **more})
    assert slot is not None
    pilot = pilot_of(slot, "group_a", NOW, since)
    assert pilot is not None
    assert (pilot.cannot != NO_UPDATE_HOOK) is can

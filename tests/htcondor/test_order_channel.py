"""What a node is asked about orders, and what is said of a refusal."""

from __future__ import annotations

import time

import htcondor2
import pytest

from drainwise.facts.errors import ActionRefused, PoolUnreachable, RunEnded
from drainwise.htcondor.knobs.orders import OrderEntry
from drainwise.htcondor.node.order_list import WITHDRAWN
from drainwise.htcondor.pool import knob_channel, part_channel
from drainwise.htcondor.pool import order_channel as order_road
from drainwise.htcondor.pool.order_rights import OrderRights
from drainwise.pilotad.partial_return import PartialReturn


def test_a_slot_that_has_gone_meanwhile_hides_no_other_nodes_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was just ordered may end before its startd is asked; a run in several slots has no slot's name."""

    def address(slot: str, machine: str) -> str:
        if machine == "n1":
            raise RunEnded(f"the collector knows no slot {slot} on {machine} any more")
        if machine == "n2":
            raise PoolUnreachable("no answer")
        return f"<{machine}>"

    monkeypatch.setattr(order_road, "startd_address", address)
    monkeypatch.setattr(order_road, "_value", lambda address: f"orders of {address}")
    asked = {"n1": "slot1_1@n1 and 1 more", "n2": "slot1_1@n2", "n3": "slot1_1@n3"}
    assert order_road.knobs_of(asked) == {"n3": "orders of <n3>"}


def test_a_refusal_is_named_with_bindings_that_have_no_ping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 24.0: what cannot be named would count as an order that nobody answered."""
    monkeypatch.delattr(htcondor2, "ping")
    monkeypatch.setattr(knob_channel, "rights_at", lambda _: OrderRights("condor@password", False))
    assert "ALLOW_ADMINISTRATOR" in knob_channel._why_refused("<n1>", "PILOT_RECLAIM")


@pytest.mark.parametrize("shown", ["PilotReclaimWithdrawn", "PilotReclaimTakenBack", ""])
def test_a_node_rendered_by_an_earlier_version_withdraws_an_order_too(
    monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """Its drop-in calls the same attribute by another name; one without either cannot withdraw an order."""
    run, deadline = "access#1.0#5@5", int(time.time()) + 3600
    here = {"State": "Claimed", "PilotVacateTime": 0, **({shown: False} if shown else {})}
    put: list[OrderEntry] = []
    monkeypatch.setattr(order_road, "startd_address", lambda *_: "<n1>")
    monkeypatch.setattr(order_road, "_runs", lambda _: {run: here})
    monkeypatch.setattr(order_road, "_value", lambda _: f"{run}={deadline}")
    monkeypatch.setattr(order_road, "_put", lambda order, *_: put.append(order))
    monkeypatch.setattr(order_road, "_goes_on", lambda *_: True)
    monkeypatch.setattr(order_road, "_await_collector", lambda *_: None)
    given = order_road.withdraw_order(run, "slot1_1@n1", "n1")
    if shown:
        assert (list(given), put) == ([None], [OrderEntry(run, WITHDRAWN)])
    else:
        with pytest.raises(ActionRefused, match="render it again"):
            list(given)


RUN = "access#1.0#1795249000@1795249001"
WISH = PartialReturn(5, None, 4)


@pytest.mark.parametrize(
    ("slots", "wish", "fault"),
    [
        pytest.param([{"Cpus": 8}, {"PilotSecondSlot": True}], WISH, None, id="asked"),
        pytest.param([{"Cpus": 8}, {"PilotSecondSlot": True}], PartialReturn(8), "expected 0 to 7", id="all cores"),
        pytest.param([{"Cpus": 8}, {}], WISH, "was not restarted", id="without a second slot"),
    ],
)
def test_only_what_a_node_can_lend_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, slots: list[dict[str, object]], wish: PartialReturn, fault: str | None
) -> None:
    """A startd reads its slot types at its start alone."""
    set_to: list[str] = []
    monkeypatch.setattr(part_channel, "startd_address", lambda *_: "<n1>")
    monkeypatch.setattr(part_channel, "runs_at", lambda *_: {RUN: slots[0]})
    monkeypatch.setattr(part_channel, "startd_slots", lambda *_: slots)
    monkeypatch.setattr(part_channel, "change_knob", lambda *words: set_to.append(words[3]("", [RUN])))
    monkeypatch.setattr(part_channel, "await_collector", lambda *_: None)
    given = part_channel.ask_for_part(RUN, wish, "slot1_1@n1", "n1")
    if fault is None:
        assert (list(given), set_to) == ([None], [f"{RUN}=5:0:4"])
    else:
        with pytest.raises(ActionRefused, match=fault):
            list(given)


def test_a_run_that_has_ended_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its successor in the slot has another name."""
    monkeypatch.setattr(part_channel, "startd_address", lambda *_: "<n1>")
    monkeypatch.setattr(part_channel, "runs_at", lambda *_: {})
    with pytest.raises(RunEnded):
        list(part_channel.ask_for_part(RUN, WISH, "slot1_1@n1", "n1"))

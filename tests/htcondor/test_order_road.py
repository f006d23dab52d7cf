"""What a node is asked about orders, and what is said of a refusal."""

from __future__ import annotations

import htcondor2
import pytest

from drainwise.errors import PoolUnreachable, RunEnded
from drainwise.htcondor import order_road
from drainwise.htcondor.order_rights import OrderRights


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
    monkeypatch.setattr(order_road, "rights_at", lambda _: OrderRights("condor@password", False))
    assert "ALLOW_ADMINISTRATOR" in order_road._why_refused("<n1>")

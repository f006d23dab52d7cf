"""The channel of a drain to a node: its startd's command, at level ADMINISTRATOR as an order.

To be imported and called in a process of its own (`bounded_call.within`), as the bindings may hang.
"""

from __future__ import annotations

from drainwise.facts.errors import ActionRefused, PoolUnreachable, RightsRefused
from drainwise.htcondor.ads.bindings import classad2, htcondor2
from drainwise.htcondor.ads.query import COLLECTOR, query, quoted
from drainwise.htcondor.ads.values import text
from drainwise.htcondor.pool.collector import startd_slots
from drainwise.htcondor.pool.order_rights import rights_at
from drainwise.pool.closing import PREFIX


def drain(machine: str, reason: str) -> bool:
    """Have a node's startd drain gracefully; return False when it does so already, for whatever reason.

    Raises RightsRefused, ActionRefused, and PoolUnreachable when it does not answer.
    """
    address = _address(machine)
    if _reason(address) is not None:
        return False
    _require_rights(address, machine)
    kind, then = htcondor2.DrainType.Graceful, htcondor2.CompletionType.Nothing
    try:
        _startd(address).drainJobs(drain_type=kind, on_completion=then, reason=reason)
    except htcondor2.HTCondorException as fault:
        raise ActionRefused(f"{machine} is not drained: {fault}") from None
    return True


def end_drain(machine: str) -> bool:
    """Cancel a drain of ours; return False when there is none any more. Raises as `drain`."""
    address = _address(machine)
    if not (_reason(address) or "").startswith(PREFIX):
        return False
    _require_rights(address, machine)
    try:
        _startd(address).cancelDrainJobs()
    except htcondor2.HTCondorException as fault:
        raise ActionRefused(f"the drain of {machine} is not cancelled: {fault}") from None
    return True


def _address(machine: str) -> str:
    constraint = f"DynamicSlot =!= true && Machine == {quoted(machine)}"
    found = query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, ("MyAddress",))
    address = text(found[0], "MyAddress") if found else None
    if address is None:
        raise PoolUnreachable(f"the collector knows no startd on {machine}")
    return address


def _reason(address: str) -> str | None:
    """Return why the startd drains, None when it does not: its own answer is newer than the collector's."""
    slots = startd_slots(address, ("Draining", "DrainReason"))
    return next((text(one, "DrainReason") or "" for one in slots if one.get("Draining") is True), None)


def _require_rights(address: str, machine: str) -> None:
    if not rights_at(address).allowed:
        raise RightsRefused(
            f"{machine} takes no drain of the agent's: its identity must be in ALLOW_ADMINISTRATOR there; `drainwise"
            " check htcondor` names it",
            machine,
        )


def _startd(address: str) -> htcondor2.Startd:
    return htcondor2.Startd(classad2.ClassAd({"MyAddress": address}))

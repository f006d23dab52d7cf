"""Find the nodes that take no orders by what each publishes, and word it for the administrator. Pure.

See `node_knobs`: a startd that started before its node's configuration allowed orders takes none until it is restarted.
A node of an older drainwise publishes nothing of it, and is given orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from drainwise.htcondor.ads.values import STARTD_START, Ad
from drainwise.htcondor.node import ORDERS, ORDERS_SINCE
from drainwise.htcondor.node.knobs import NEVER
from drainwise.pool.facts import Pilot

RESTART = "its node's startd has not been restarted since orders were configured there"
NOT_INSTALLED = f"its node shows no {ORDERS}: the drop-in of drainwise is not in force there"
NOT_IN_FORCE = "on its node ENABLE_RUNTIME_CONFIG or the job hooks of drainwise are not in force"

_DONE_BY: Mapping[str, str] = {
    RESTART: (
        "until the startd is restarted: the next reboot will do. condor_restart -peaceful -startd takes no job on the"
        " node until its last one has ended: one node after the other. Any other restart evicts them"
    ),
    NOT_IN_FORCE: (
        "since ENABLE_RUNTIME_CONFIG or the job hooks of drainwise are not in force there: drainwise check htcondor"
    ),
}
_SHOWN = 5


class _Slot(Protocol):
    @property
    def ad(self) -> Ad: ...
    @property
    def machine(self) -> str: ...


def why_no_orders(ad: Ad) -> str:
    """Say why the node of this slot takes no orders, "" when it does or does not say."""
    if ORDERS not in ad:
        return NOT_INSTALLED
    since, started = ad.get(ORDERS_SINCE), ad.get(STARTD_START)
    if type(since) is not int:
        return ""
    if since == NEVER:
        return NOT_IN_FORCE
    return RESTART if type(started) is int and started < since else ""


def closed_pilots(pilots: Iterable[Pilot], slots: Iterable[_Slot]) -> Iterator[Pilot]:
    """Yield the pilots; each without a reason gets the one that another slot of its node shows.

    A dynamic slot that was just made shows nothing of the cron's before its next run.
    """
    reasons = {slot.machine: why for slot in slots if (why := why_no_orders(slot.ad)) in _DONE_BY}
    for pilot in pilots:
        why = "" if pilot.cannot else reasons.get(pilot.node, "")
        yield replace(pilot, cannot=why) if why else pilot


def closed_notices(slots: Iterable[_Slot]) -> tuple[str, ...]:
    """Write a sentence for each reason: how many nodes take no orders, some of their names, and what ends it.

    Nodes without drainwise are not meant: a site may have them on purpose, and their pilots have the reason.
    """
    nodes: dict[str, set[str]] = {}
    for slot in slots:
        why = why_no_orders(slot.ad)
        if why in _DONE_BY:
            nodes.setdefault(why, set()).add(slot.machine)
    return tuple(_notice(why, sorted(names)) for why, names in sorted(nodes.items()))


def _notice(why: str, names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    takes = "1 node takes" if len(names) == 1 else f"{len(names)} nodes take"
    return f"{takes} no orders {_DONE_BY[why]} ({shown})"

"""How runs that were asked have ended, out of what their nodes keep. Pure: ads in, endings out.

A startd writes a line into its history (STARTD_HISTORY) for each run, on its own clock: `CompletionDate` less
`RemoteWallClockTime` is the run's JobStart. Which node that was tells the node's list of orders, where a spent order
stays for a while. 25.x say why a run was vacated (`VacateReason`); 23.9 does not: there, a run ended by itself that was
not killed by a signal and was gone before its slot would have ended it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drainwise.htcondor.orders import Order, parse_orders, run_name
from drainwise.htcondor.pool_ads import ORDERS, Ad, moment, number, text, whole
from drainwise.pool import Ending

PLACE_ATTRIBUTES = ("Machine", "MyAddress", ORDERS, "GlobalJobId", "JobStart", "MachineMaxVacateTime")
HISTORY_ATTRIBUTES = (
    *("GlobalJobId", "CompletionDate", "RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"),
    *("ExitBySignal", "VacateReason", "BadputCausedByPreemption"),
)

_ROUNDED = 2  # seconds by which a start may differ that is made of two other times


@dataclass(frozen=True)
class Place:
    """One node's startd, the orders for runs that it has no more, and how long before a deadline it ends a run (s)."""

    machine: str
    address: str
    vacate: int
    orders: tuple[Order, ...]


def places_of(slots: Iterable[Ad], runs: Collection[str]) -> tuple[Place, ...]:
    """The nodes that were asked to end any of these runs, by the slots of all nodes that have orders."""
    running: set[str | None] = set()
    machines: dict[str, Ad] = {}
    for slot in slots:
        running.add(run_name(text(slot, "GlobalJobId"), moment(slot, "JobStart")))
        machine = text(slot, "Machine")
        if machine is not None and text(slot, "MyAddress"):
            machines[machine] = slot
    wanted = set(runs) - running
    places = []
    for machine, slot in machines.items():
        orders = tuple(one for one in parse_orders(text(slot, ORDERS) or "") if one.run in wanted)
        if orders:
            address, vacate = text(slot, "MyAddress") or "", whole(slot, "MachineMaxVacateTime") or 0
            places.append(Place(machine, address, vacate, orders))
    return tuple(places)


def endings_in(history: Sequence[Ad], place: Place) -> Mapping[str, Ending]:
    """The endings of the place's runs that its history has, by run."""
    endings = {}
    for order in place.orders:
        job, _, start = order.run.rpartition("@")
        for ad in history:
            ended, seconds = moment(ad, "CompletionDate"), whole(ad, "RemoteWallClockTime")
            if text(ad, "GlobalJobId") != job or ended is None or seconds is None:
                continue
            if abs(ended - seconds - int(start)) <= _ROUNDED:
                vacated = _was_vacated(ad, ended, order, place.vacate)
                endings[order.run] = Ending(order.run, ended, vacated, _cpu_seconds(ad))
    return endings


def _was_vacated(ad: Ad, ended: int, order: Order, vacate: int) -> bool:
    if text(ad, "VacateReason") is not None or ad.get("ExitBySignal") is True:
        return True
    return ad.get("BadputCausedByPreemption") is True and 0 < order.deadline - vacate <= ended


def _cpu_seconds(ad: Ad) -> float | None:
    """None where it is exactly 0: nothing on the node could measure it, or the run ended before anybody did."""
    user, system = number(ad, "RemoteUserCpu"), number(ad, "RemoteSysCpu")
    return (user or 0.0) + (system or 0.0) or None

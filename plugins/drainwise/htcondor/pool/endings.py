"""Find how ordered runs have ended, from what their nodes keep. Pure: ads in, endings out.

A startd writes a line into its history (STARTD_HISTORY) for each run, on its own clock: `CompletionDate` less
`RemoteWallClockTime` is the run's JobStart. Which node that was tells the node's list of orders, where a spent order
stays for a while. 25.x say why a run was vacated (`VacateReason`); 23.9 does not: there, a run ended by itself that was
not killed by a signal and was gone before its slot would have ended it.

Who had a run ended before that, the node knows only of its own administrators: 25.x by `VacateReasonCode`, every
release of a drain. Of jobs that were removed or held, the access point keeps by whom.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.htcondor.ads.values import LARGEST_SLOT, Ad, moment, number, text, whole
from drainwise.htcondor.node import ORDERS
from drainwise.htcondor.pool.knobs import OrderEntry, parse_orders, run_name
from drainwise.pool.facts import Ending

PLACE_ATTRIBUTES = ("Machine", "MyAddress", ORDERS, "GlobalJobId", "JobStart", "MachineMaxVacateTime")
HISTORY_ATTRIBUTES = (
    *("GlobalJobId", "CompletionDate", "RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"),
    *("ExitBySignal", "VacateReason", "VacateReasonCode", "BadputCausedByPreemption", "BadputCausedByDraining"),
)
JOB_ATTRIBUTES = ("GlobalJobId", "Owner", "RemoveReason", "HoldReason", "HoldReasonCode", "EnteredCurrentStatus")
"""Of an access point's jobs, in its queue and of its history."""

_ENDED = ("User", "AccountingGroup", "CpusProvisioned", "RequestCpus")
ENDED_ATTRIBUTES = (*_ENDED, "CompletionDate", "RemoteWallClockTime")
"""What a startd's history is asked for runs that came and went between two snapshots."""

_BY_ADMINISTRATOR = {1010, 1014}  # VacateReasonCode of condor_vacate and condor_drain
_ON_REQUEST = 1  # HoldReasonCode of condor_hold
_BY_USER = re.compile(r"\(by user ([^()]+)\)$")
_TAKES = 900  # seconds that a job which is removed or held may take to end
_ROUNDED = 2  # seconds by which a start may differ that is made of two other times


@dataclass(frozen=True)
class OrderedNode:
    """One node's startd, the orders for runs that it has no more, and how long before a deadline it ends a run (s)."""

    machine: str
    address: str
    vacate: int
    orders: tuple[OrderEntry, ...]


def places_of(slots: Iterable[Ad], runs: Collection[str]) -> tuple[OrderedNode, ...]:
    """List the nodes with orders for any of these runs, by the slots of all nodes that have orders."""
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
            places.append(OrderedNode(machine, address, vacate, orders))
    return tuple(places)


def endings_in(history: Sequence[Ad], place: OrderedNode) -> Mapping[str, Ending]:
    """Find the endings of the place's runs in its history, by run."""
    endings = {}
    for order in place.orders:
        job, _, start = order.run.rpartition("@")
        for ad in history:
            ended, seconds = moment(ad, "CompletionDate"), whole(ad, "RemoteWallClockTime")
            if text(ad, "GlobalJobId") != job or ended is None or seconds is None:
                continue
            if abs(ended - seconds - int(start)) <= _ROUNDED:
                vacated = _was_vacated(ad, ended, order, place.vacate)
                drained = ad.get("BadputCausedByDraining") is True
                by_administrator = drained or whole(ad, "VacateReasonCode") in _BY_ADMINISTRATOR
                others = ended < order.deadline - place.vacate and by_administrator
                endings[order.run] = Ending(order.run, ended, vacated, _cpu_seconds(ad), others)
    return endings


def ended_since(history: Iterable[Ad], account: str, since: int) -> Iterator[tuple[int, int, int]]:
    """Yield start and end (UNIX s) and cores of an account's runs that began after `since` and ended; history: ads."""
    for ad in history:
        user, ended, seconds = text(ad, "User") or "", moment(ad, "CompletionDate"), whole(ad, "RemoteWallClockTime")
        submitter = text(ad, "AccountingGroup") or user
        submitter += "" if "@" in submitter else f"@{user.rpartition('@')[2]}"
        cores = whole(ad, "CpusProvisioned") or whole(ad, "RequestCpus") or 1
        is_its = submitter == account or submitter.startswith(f"{account}.")
        if is_its and ended is not None and seconds is not None and ended - seconds >= since:
            yield ended - seconds, ended, min(cores, LARGEST_SLOT)


def in_question(endings: Iterable[Ending], places: Iterable[OrderedNode]) -> list[Ending]:
    """Return those that ended before their node would have ended them, without the node knowing by whom."""
    due = {order.run: order.deadline - place.vacate for place in places for order in place.orders}
    return [one for one in endings if one.vacated and not one.by_others and one.ended < due.get(one.run, 0)]


def with_who_ended(ending: Ending, jobs: Iterable[Ad]) -> Ending:
    """Add to the ending whether another user than the job's owner removed or held the job at its end; jobs: as read."""
    job = ending.run.rpartition("@")[0]
    for ad in jobs:
        when = moment(ad, "EnteredCurrentStatus")
        if text(ad, "GlobalJobId") != job or when is None or abs(when - ending.ended) > _TAKES:
            continue
        held = whole(ad, "HoldReasonCode") == _ON_REQUEST
        match = _BY_USER.search(text(ad, "RemoveReason") or (text(ad, "HoldReason") if held else "") or "")
        if match is not None and match[1].partition("@")[0] != text(ad, "Owner"):
            return replace(ending, by_others=True)
    return ending


def _was_vacated(ad: Ad, ended: int, order: OrderEntry, vacate: int) -> bool:
    if text(ad, "VacateReason") is not None or ad.get("ExitBySignal") is True:
        return True
    return ad.get("BadputCausedByPreemption") is True and 0 < order.deadline - vacate <= ended


def _cpu_seconds(ad: Ad) -> float | None:
    """Return the CPU time; None where it is exactly 0: the node could not measure it, or the run was too short."""
    user, system = number(ad, "RemoteUserCpu"), number(ad, "RemoteSysCpu")
    return (user or 0.0) + (system or 0.0) or None

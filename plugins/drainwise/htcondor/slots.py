"""One slot of the pool, and the pilot that runs in it, out of the slot's ad."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.clocks import CLOCKS_DIFFER
from drainwise.htcondor.closed_nodes import why_no_orders
from drainwise.htcondor.orders import SETTLED_AFTER, order_of, parse_orders, run_name
from drainwise.htcondor.pool_ads import (
    CLAIM_VACATE,
    HOOK_RAN,
    LARGEST_SLOT,
    ORDERS,
    WALL_LIMIT,
    Ad,
    contradicts_itself,
    moment,
    number,
    report_of,
    text,
    whole,
)
from drainwise.htcondor.retirement import TAKEN_BACK, is_endless
from drainwise.pilotad.attributes import HEARTBEAT
from drainwise.pilotad.values import LATEST
from drainwise.pool import Pilot

SILENT_AFTER = 900
"""Seconds after which the collector's word on a daemon is too old; the collector itself forgets it about then."""

TOLD_NOTHING = "it started before its node had the hooks that tell it of an order"
"""Why a pilot cannot be asked whose starter does not run the update hook: a starter reads its configuration once."""

_LEAVING = ("Retiring", "Vacating", "Killing")
_IN_USE = ("Claimed", "Preempting")


@dataclass(frozen=True)
class Slot:
    """One slot as far as every slot has it: `cores`, its slot weight (0 for one that is none), `heard` of in UNIX s.

    `submitter` (the name that is charged) is set while the slot is claimed for a known user.
    """

    ad: Ad
    name: str
    machine: str
    cores: int
    weight: float
    state: str
    heard: int | None
    submitter: str | None

    @property
    def owner(self) -> str:
        """The user whose job runs here, "" when there is none."""
        return text(self.ad, "RemoteOwner") or text(self.ad, "RemoteUser") or self.submitter or ""

    @property
    def run(self) -> str | None:
        """The name of the run in it, where it has one that an order could name."""
        return run_name(text(self.ad, "GlobalJobId"), moment(self.ad, "JobStart"))

    @property
    def idle(self) -> bool:
        """Whether it is claimed without a job: one has gone, and the claim has not ended yet; or one will start."""
        return self.submitter is not None and self.state == "Claimed" and text(self.ad, "Activity") == "Idle"

    @property
    def usable(self) -> bool:
        """Whether a new job could start on its cores: free, with memory left."""
        return self.state == "Unclaimed" and whole(self.ad, "Memory") != 0


def heard_lately(ad: Ad, now: int) -> bool:
    """Whether the collector heard this daemon in the last SILENT_AFTER seconds; `now` in UNIX s."""
    heard = moment(ad, "LastHeardFrom")
    return heard is None or now - heard <= SILENT_AFTER


def slot_of(ad: Ad) -> Slot | None:
    """A slot; None for another kind of ad, a machine that sleeps, or an ad without the least that a slot has.

    A claimed slot does not sleep, whatever its ad says: anybody with level WRITE at its startd can make it say so.
    """
    name, machine, state, cores = text(ad, "Name"), text(ad, "Machine"), text(ad, "State"), whole(ad, "Cpus")
    if name is None or machine is None or state is None or cores is None or cores > LARGEST_SLOT:
        return None
    if text(ad, "MyType") not in {None, "Machine"} or (ad.get("Offline") is True and state not in _IN_USE):
        return None
    submitter = None
    if state in _IN_USE and cores > 0 and ad.get("PartitionableSlot") is not True:
        submitter = text(ad, "AccountingGroup") or text(ad, "RemoteUser") or text(ad, "RemoteOwner")
    weight = cores if ad.get("SlotWeight") is None else number(ad, "SlotWeight") or 0.0
    return Slot(ad, name, machine, cores, weight, state, moment(ad, "LastHeardFrom"), submitter)


def given_back(slots: Sequence[Slot], now: int) -> frozenset[str]:
    """Names of slots whose run has left as it was asked, but whose claim has not ended yet at `now` (UNIX s).

    For a moment nobody's pilot is there, and the cores are not free either: who counts them as held asks another pilot
    for the same cores. Which order was a slot's cannot be told any more, so these are the idle claims on a node that
    has a recent order for a run that it has no more. Elsewhere an idle claim is soon used again by who holds it.
    """
    idle: dict[str, list[str]] = defaultdict(list)
    for slot in slots:
        if slot.idle:
            idle[slot.machine].append(slot.name)
    nodes: dict[str, list[Slot]] = {machine: [] for machine in idle}
    for slot in slots:
        if slot.machine in nodes:
            nodes[slot.machine].append(slot)
    spent = (machine for machine, there in nodes.items() if _has_spent_order(there, now))
    return frozenset(name for machine in spent for name in idle[machine])


def deadline_of(run: str, orders: str | None) -> int | None:
    """By when a run was asked to be gone (UNIX s) by the `orders` that its node tells; None when it was not.

    The node enforces by an expression that finds the same in the same text; a test holds the two equal.
    """
    if not orders or run not in orders:
        return None
    order = order_of(run, parse_orders(orders))
    return order.deadline if order is not None and TAKEN_BACK != order.deadline <= LATEST else None


def _goes_on(slot: Slot, run: str) -> bool:
    """Whether it retires only because of an order that was taken back: see `retirement`."""
    if slot.state != "Claimed" or not is_endless(whole(slot.ad, "RetirementTimeRemaining")):
        return False
    order = order_of(run, parse_orders(text(slot.ad, ORDERS) or ""))
    return order is not None and order.deadline == TAKEN_BACK


def _has_spent_order(slots: Sequence[Slot], now: int) -> bool:
    runs = {slot.run for slot in slots}
    texts = {text(slot.ad, ORDERS) or "" for slot in slots}
    return any(
        order.run not in runs and now <= order.deadline + SETTLED_AFTER
        for value in texts
        for order in parse_orders(value)
    )


def _is_told(ad: Ad, start: int, hooks_since: int | None) -> bool:
    """Whether the update hook runs for a run that started then: it reports, or the other hook has run, too.

    A node of an earlier drainwise does not tell since when it has hooks; its pilots are taken to have them.
    """
    return hooks_since is None or start >= hooks_since or ad.get(HOOK_RAN) is True or moment(ad, HEARTBEAT) is not None


def pilot_of(slot: Slot, principal: str, now: int, hooks_since: int | None = None) -> Pilot | None:
    """The run in a claimed slot; None between two runs, and for a run that no order could name.

    That is one whose name could not be put into an order, and one on a node whose clock is far ahead: there, a deadline
    of ours would be over before it is set. hooks_since: since when jobs that start on its node find the hooks, UNIX s.
    """
    start, run = moment(slot.ad, "JobStart"), slot.run
    if run is None or start is None or start > now + CLOCKS_DIFFER:
        return None
    activity, deadline = text(slot.ad, "Activity"), deadline_of(run, text(slot.ad, ORDERS))
    limit = whole(slot.ad, WALL_LIMIT)
    leaving = (slot.state == "Preempting" or activity in _LEAVING) and not _goes_on(slot, run)
    ends = [] if deadline is None else [deadline]
    if limit is not None and start + limit <= LATEST:
        ends.append(start + limit)
    if leaving:
        rest = whole(slot.ad, "RetirementTimeRemaining")
        ends.append(min(now + rest, LATEST) if rest is not None and activity == "Retiring" else now)
    return Pilot(
        run=run,
        name=slot.name,
        node=slot.machine,
        principal=principal,
        user=slot.owner,
        cores=slot.cores,
        started=start,
        lease_end=min(ends, default=None),
        report=report_of(slot.ad),
        contradictory=contradicts_itself(slot.ad),
        deadline=deadline,
        leaving=leaving,
        heard=slot.heard,
        cannot=why_no_orders(slot.ad) if _is_told(slot.ad, start, hooks_since) else TOLD_NOTHING,
        vacate=whole(slot.ad, CLAIM_VACATE),
    )

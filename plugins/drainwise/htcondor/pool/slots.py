"""One slot of the pool, and the pilot that runs in it, out of the slot's ad; why its node takes no orders. Pure.

A startd that started before its node's configuration allowed orders takes none until it is restarted. Each publishes
when that was; a node of an older drainwise publishes nothing of it, and is given orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules, user_texts
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.htcondor.ads.values import (
    BACKFILL,
    LARGEST_SLOT,
    STARTD_START,
    Ad,
    moment,
    named,
    number,
    shown,
    slot_amounts,
    text,
    whole,
)
from drainwise.htcondor.node import CLAIM_VACATE, CLIENT, HOOK_RAN, NEVER, ORDERS, ORDERS_SINCE, WALL_LIMIT
from drainwise.htcondor.node.order_list import ENDLESS, WITHDRAWN, deadline_of, is_endless
from drainwise.htcondor.pool.knobs import SETTLED_AFTER, parse_orders, run_name
from drainwise.pilotad.attributes import ATTRIBUTES, GLIDEIN_AD, HEARTBEAT, OBSERVATION, PILOT_AD, PROCESSES, STANDING
from drainwise.pilotad.observation import observation_in
from drainwise.pilotad.report import CONTRADICTORY, GLIDEIN, OBSERVED, PilotReport
from drainwise.pilotad.values import BELIEVED, LATEST
from drainwise.pool.amounts import Amounts
from drainwise.pool.clocks import CLOCKS_DIFFER
from drainwise.pool.facts import Pilot
from drainwise.pool.identity import PilotIdentity

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


SILENT_AFTER = 900
"""Seconds after which the collector's ad of a daemon is too old; the collector itself forgets it about then."""

NO_UPDATE_HOOK = "it started before its node had the hooks by which an order reaches it"
"""The reason of a pilot whose starter does not run the update hook: a starter reads its configuration once."""

BACKFILL_SLOT = "it runs in a backfill slot: its cores are free for others as it is"
"""Likewise."""

WAITS = "its startd waits for the end of its jobs (condor_restart or condor_off -peaceful) and ends none at a deadline"
"""Likewise: its retirement is longer than that of a run without its order."""

_LEAVING = ("Retiring", "Vacating", "Killing")
_IN_USE = ("Claimed", "Preempting")
_SOURCES: dict[str | None, str] = {GLIDEIN: GLIDEIN_AD, OBSERVED: PROCESSES}
_REPORT = tuple((row.field, row.published, BELIEVED[row.kind]) for row in ATTRIBUTES)


@dataclass(frozen=True)
class Slot:
    """One slot as far as every slot has it: `cores`, its slot weight (0 for one that is none), `heard` of in UNIX s.

    `submitter` (the name that is charged) is set while the slot is claimed for a known user, and what it `holds`, too.
    lent: cores that its run has returned and goes on without; unpaid: those of them that others hold.
    """

    ad: Ad
    name: str
    machine: str
    cores: int
    weight: float
    state: str
    heard: int | None
    submitter: str | None
    holds: Amounts | None = None
    lent: int = 0
    unpaid: int = 0

    @property
    def owner(self) -> str:
        """Return the user whose job runs here, "" when there is none."""
        return text(self.ad, "RemoteOwner") or text(self.ad, "RemoteUser") or self.submitter or ""

    @property
    def run(self) -> str | None:
        """Return the name of its run, where it has one that an order could name."""
        return run_name(text(self.ad, "GlobalJobId"), moment(self.ad, "JobStart"))

    @property
    def is_backfill(self) -> bool:
        """Decide whether it shows cores a second time: see `BACKFILL`."""
        return self.ad.get(BACKFILL) is True

    @property
    def idle(self) -> bool:
        """Decide whether it is claimed without a job: one has ended before its claim, or one will start."""
        return self.submitter is not None and self.state == "Claimed" and text(self.ad, "Activity") == "Idle"

    @property
    def usable(self) -> bool:
        """Decide whether a new job could start on its cores: free, with memory left."""
        return self.state == "Unclaimed" and whole(self.ad, "Memory") != 0


def heard_lately(ad: Ad, now: int) -> bool:
    """Decide whether the collector received an ad of this daemon in the last SILENT_AFTER seconds; `now` in UNIX s."""
    heard = moment(ad, "LastHeardFrom")
    return heard is None or now - heard <= SILENT_AFTER


def slot_of(ad: Ad, resources: Sequence[str] = ()) -> Slot | None:
    """Read a slot; resources: what the pool's slots have beside what every slot has.

    None for another kind of ad, a machine that sleeps, or an ad without the least that a slot has. A
    claimed slot does not sleep, whatever its ad says: anybody with level WRITE at its startd can make it say so.
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
    holds = None if submitter is None else slot_amounts(ad, resources)
    return Slot(ad, name, machine, cores, weight, state, moment(ad, "LastHeardFrom"), submitter, holds)


def at_floor(pilots: Sequence[Pilot], cores: Mapping[str, float], whose: Mapping[str, str]) -> tuple[Pilot, ...]:
    """Return the pilots, of which those may get no order that their submitter needs for its floor: its oldest ones.

    cores: the floor of each submitter that has one, in cores; whose: the submitter by the slot's name.
    """
    left = dict(cores)
    kept: set[str] = set()
    for one in sorted(pilots, key=lambda pilot: pilot.started):
        submitter = whose.get(one.name, "")
        if left.get(submitter, 0.0) > 0 and one.deadline is None and not one.leaving:
            left[submitter] -= one.cores
            kept.add(one.run)
    return tuple(
        replace(one, cannot=f"{whose[one.name]} would have less than its floor of {cores[whose[one.name]]:g} cores")
        if one.run in kept and not one.cannot
        else one
        for one in pilots
    )


def given_back(slots: Sequence[Slot], now: int) -> frozenset[str]:
    """Return the slots whose run has left as ordered, but whose claim has not ended yet at `now` (UNIX s), by name.

    For a moment nobody's pilot is there, and the cores are not free either: whoever counts them as held orders another
    pilot away for the same cores. Which order was a slot's cannot be known any more, so these are the idle claims on a
    node that has a recent order for a run that it has no more. Elsewhere an idle claim is soon used again.
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


def _goes_on(slot: Slot, deadline: int | None) -> bool:
    """Decide whether it retires only because the order for its run was withdrawn: see `order_list`."""
    left = whole(slot.ad, "RetirementTimeRemaining")
    return deadline == WITHDRAWN and slot.state == "Claimed" and is_endless(left)


def _has_spent_order(slots: Sequence[Slot], now: int) -> bool:
    runs = {slot.run for slot in slots}
    texts = {text(slot.ad, ORDERS) or "" for slot in slots}
    return any(
        order.run not in runs and now <= order.deadline + SETTLED_AFTER
        for value in texts
        for order in parse_orders(value)
    )


def _has_update_hook(ad: Ad, start: int, hooks_since: int | None) -> bool:
    """Decide whether the update hook runs for a run that started then: it reports, or the prepare hook has run.

    A node of an earlier drainwise does not tell since when it has hooks; its pilots are taken to have them. What a node
    saw of a pilot that wrote nothing proves nothing.
    """
    reports = moment(ad, HEARTBEAT) is not None and text(ad, STANDING) != OBSERVED
    return hooks_since is None or start >= hooks_since or ad.get(HOOK_RAN) is True or reports


def client_of(slot: Slot, account: str, rules: ClientRules | None) -> ClientProfile:
    """Return which kind of client a slot's pilot is; account: as the accountant calls it.

    What rows ask of the job's own ad the node has looked up: users may set an attribute to an expression that keeps
    busy whoever evaluates it, as the startd and the collector would, so that none is put into the slot.
    """
    if not rules:
        return PAPER
    ad, charged, user = slot.ad, text(slot.ad, "AccountingGroup"), text(slot.ad, "RemoteUser")
    facts: dict[str, tuple[str, ...]] = {}
    facts[USER] = user_texts((user, text(ad, "RemoteOwner")))
    facts[ACCOUNT] = tuple(one for one in (account, charged, (charged or "").rpartition(".")[0], user) if one)
    return rules.profile_of(facts, text(ad, CLIENT) or "")


def report_of(ad: Ad) -> PilotReport | None:
    """Read the pilot's report that a node published on its slot; None when there is none."""
    get = ad.get
    heartbeat = moment(ad, HEARTBEAT)
    if heartbeat is None:
        return None
    source = _SOURCES.get(text(ad, STANDING), PILOT_AD)
    return PilotReport.from_values(
        heartbeat, source, {field: value_of(get(published)) for field, published, value_of in _REPORT}
    )


def pilot_of(
    slot: Slot,
    account: str,
    now: int,
    hooks_since: int | None = None,
    place: str = "",
    sent: Mapping[str, PilotIdentity | None] = MappingProxyType({}),
) -> Pilot | None:
    """Return the run in a claimed slot; None between two runs.

    No order is for one whose name could not be put into an order, nor for one on a node whose clock is far ahead:
    there, a deadline of ours would be over before it is set. hooks_since: since when jobs that start on its node find
    the hooks, UNIX s. place: the name of the slot to which its cores go back. sent: who sent jobs, by GlobalJobId.
    """
    start, job = moment(slot.ad, "JobStart"), text(slot.ad, "GlobalJobId")
    if job is None or start is None:
        return None
    run, cannot = slot.run or f"{shown(job)}@{start}", why_no_orders(slot.ad)
    if not _has_update_hook(slot.ad, start, hooks_since):
        cannot = NO_UPDATE_HOOK
    if slot.is_backfill:
        cannot = BACKFILL_SLOT
    elif slot.run is None:
        cannot = f"no order can name it: its GlobalJobId, {shown(job)}, has a sign that no list of orders may have"
    elif start > now + CLOCKS_DIFFER:
        cannot = (
            f"the clock of {slot.machine} is at least {start - now} s ahead: a deadline would be over there already"
        )
    activity, orders, rest = text(slot.ad, "Activity"), text(slot.ad, ORDERS), whole(slot.ad, "RetirementTimeRemaining")
    if activity == "Retiring" and rest is not None and rest > ENDLESS:
        cannot = WAITS
    stands = deadline_of(run, orders) if orders and run in orders else None
    limit = whole(slot.ad, WALL_LIMIT)
    leaving = (slot.state == "Preempting" or activity in _LEAVING) and not _goes_on(slot, stands)
    deadline = stands if stands and stands <= LATEST else None
    ends = [] if deadline is None else [deadline]
    if limit is not None and start + limit <= LATEST:
        ends.append(start + limit)
    if leaving:
        ends.append(min(now + rest, LATEST) if rest is not None and activity == "Retiring" else now)
    return Pilot(
        run=run,
        name=slot.name,
        node=slot.machine,
        account=account,
        user=slot.owner,
        cores=slot.cores,
        started=min(start, now),
        lease_end=min(ends, default=None),
        report=report_of(slot.ad),
        seen=observation_in(slot.ad.get(OBSERVATION)),
        contradictory=text(slot.ad, STANDING) == CONTRADICTORY,
        deadline=deadline,
        leaving=leaving,
        heard=slot.heard,
        cannot=cannot,
        vacate=whole(slot.ad, CLAIM_VACATE),
        place=place,
        holds=slot.holds,
        identity=sent.get(job),
        billed=None if slot.weight == slot.cores else slot.weight,
    )


def closed_pilots(pilots: Iterable[Pilot], slots: Iterable[Slot], unordered: Mapping[str, str]) -> Iterator[Pilot]:
    """Yield the pilots; each without a reason gets the one of its node (`unordered`), or that another slot there shows.

    A dynamic slot that was just made shows nothing of the cron's before its next run.
    """
    reasons = dict(unordered) | {slot.machine: why for slot in slots if (why := why_no_orders(slot.ad)) in _DONE_BY}
    for pilot in pilots:
        why = "" if pilot.cannot else reasons.get(pilot.node, "")
        yield replace(pilot, cannot=why) if why else pilot


def closed_notices(slots: Iterable[Slot]) -> tuple[str, ...]:
    """Write a sentence for each reason: how many nodes take no orders, some of their names, and what ends it.

    Nodes without drainwise are not meant: a site may have them on purpose, and their pilots have the reason.
    """
    nodes: dict[str, set[str]] = {}
    for slot in slots:
        why = why_no_orders(slot.ad)
        if why in _DONE_BY:
            nodes.setdefault(why, set()).add(slot.machine)
    found = []
    for why, names in sorted(nodes.items()):
        takes = "1 node takes" if len(names) == 1 else f"{len(names)} nodes take"
        found.append(f"{takes} no orders {_DONE_BY[why]} ({named(names, 5)})")
    return tuple(found)

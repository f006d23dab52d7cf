"""Ask a pool's collector, or one startd, for ads: only the attributes that are used, as plain values; and for rights.

To be imported and called in a process that ends after one question (`bounded_call.within`): the bindings may hang.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib import import_module
from typing import Any

from drainwise.facts.errors import PoolUnreachable, RightsRefused, RunEnded
from drainwise.htcondor import node as names
from drainwise.htcondor.ads.query import (
    COLLECTOR,
    Bundle,
    classad2,
    htcondor2,
    packed,
    plain,
    queried,
    query,
    quoted,
    unpacked,
)
from drainwise.htcondor.ads.values import BACKFILL, CLOCK, DAEMON_ADDRESS, STARTD_START, Ad, Others, resources_of, text
from drainwise.htcondor.pool import endings
from drainwise.htcondor.pool.knobs import TRIAL_KNOB
from drainwise.htcondor.pool.startds import collector_start
from drainwise.pilotad.attributes import ATTRIBUTES, HEARTBEAT, OBSERVATION, STANDING
from drainwise.pool.abilities import AgentNotice
from drainwise.pool.clocks import CLOCKS_DIFFER, wrong_clock
from drainwise.pool.facts import Ending

SLOTS = "Cpus > 0"
"""The slots that are queried: most nodes are full, and nothing is left of their partitionable slots."""

# Deadline and lease as a node publishes them are long expressions: sent and evaluated for each slot, they would double
# the time of a snapshot. They are made of the orders, the start and the wall limit instead.
SLOT_ATTRIBUTES = (
    *("MyType", "Name", "Machine", "State", "Activity", "Cpus", "Memory", "Disk", "SlotWeight", "PartitionableSlot"),
    *(BACKFILL, "Offline", "LastHeardFrom", "GlobalJobId", "JobStart", "AccountingGroup", "RemoteUser", "RemoteOwner"),
    *("RetirementTimeRemaining", STARTD_START, HEARTBEAT, STANDING, OBSERVATION),
    *(names.ORDERS, names.ORDERS_SINCE, names.CLAIM_VACATE, names.CLIENT, names.WALL_LIMIT, names.HOOK_RAN),
    *(names.RETURNED_BY, names.RETURNED_AT, names.RETURN_ASKED, names.LENDS_NO_MORE),
    *(attribute.published for attribute in ATTRIBUTES),
)
# Most slots are dynamic: the collector evaluates no more than the first term for them.
MACHINES = "DynamicSlot =!= true && (PartitionableSlot =?= true || SlotID =?= 1)"
"""The slots that say what concerns all slots of their startd: the partitionable ones, and of static ones the first."""

MACHINE_ATTRIBUTES = (
    *("MyType", "Name", "Machine", "TotalSlotCpus", "DaemonStartTime", "LastHeardFrom", "NumDynamicSlots"),
    *("ChildDSlotId", "MachineResources", "DrainReason", "MyAddress"),
    *(names.UPDATE_INTERVAL, names.HOOKS_SINCE, names.SECOND_SLOT, names.RETURNED_AGE, CLOCK),
    *(names.CRON_VERSION, names.CRON_HEARTBEAT),
)
"""MyType is sent in any case."""
ACCOUNTING_ATTRIBUTES = (
    *("Name", "IsAccountingGroup", "EffectiveQuota", "SubtreeQuota", "Priority", "PriorityFactor", "ResourcesUsed"),
    *("WeightedResourcesUsed", "Ceiling", "Floor", "SurplusPolicy", "LastHeardFrom"),
)
SUBMITTER_ATTRIBUTES = ("Name", "ScheddName", "IdleJobs", "WeightedIdleJobs", "RunningJobs", "LastHeardFrom")
SCHEDD_ATTRIBUTES = ("Name", "MaxJobsRunning", "ShadowsRunning", "LastHeardFrom")
COLLECTOR_ATTRIBUTES = ("Name", "StatsLifetime", "StatsLastUpdateTime")
MASTER_ATTRIBUTES = ("Machine", "DaemonStartTime", "STARTD_StartTime")

AGENT_TYPE = "DrainwiseAgent"
"""The MyType of the ad by which the collector shows the agent."""
_AGENT_ATTRIBUTES = (
    *("Name", "Machine", "AgentPid", "DrainwiseVersion", "Policy", "DaemonStartTime", "LastCycle", "NextCycle"),
    *("CyclePeriod", "Acting", "AgentState", "AgentStateReason", "LastError", "LastErrorTime", "ClassAdLifetime"),
)
"""Of that ad, in the order of the notice's fields."""
_YOUNG = 200_000  # seconds; no startd is slower than once in a day to tell a new collector of itself
_HISTORY_MARGIN = 600  # s
_TRIES = 2
_SHOW = ("WRITE", "DAEMON")
"""A level at which the collector tells as whom it knows us, and the one that an ad of no daemon's kind needs."""


def pool_ads() -> Iterator[Others | Bundle]:
    """Query the configured pool: all beside the slots, then all slots that have cores.

    All of it is asked for before any of it is yielded. Raises PoolUnreachable when the collector does not answer, or
    its clock is another one than this machine's.
    """
    collector, kinds = htcondor2.Collector(), htcondor2.AdType
    _require_same_clock(collector)

    def ask(kind: object, attributes: Sequence[str]) -> list[Ad]:
        return query(collector, COLLECTOR, kind, None, attributes)

    startds = [
        ad
        for bundle in packed(
            queried(collector, COLLECTOR, kinds.Startd, MACHINES, MACHINE_ATTRIBUTES), MACHINE_ATTRIBUTES
        )
        for ad in unpacked(bundle, MACHINE_ATTRIBUTES)
    ]
    resources = resources_of(startds)
    attributes = (*SLOT_ATTRIBUTES, *resources)
    slots = queried(collector, COLLECTOR, kinds.Startd, SLOTS, attributes)
    collectors = ask(kinds.Collector, COLLECTOR_ATTRIBUTES)
    start = collector_start(collectors)
    young = start is not None and time.time() - start < _YOUNG
    yield Others(
        accounting=ask(kinds.Accounting, ACCOUNTING_ATTRIBUTES),
        submitters=ask(kinds.Submitter, SUBMITTER_ATTRIBUTES),
        schedds=ask(kinds.Schedd, SCHEDD_ATTRIBUTES),
        startds=startds,
        collectors=collectors,
        masters=ask(kinds.Master, MASTER_ATTRIBUTES) if young else (),
    )
    yield from packed(slots, attributes)


def ad_of(notice: AgentNotice) -> dict[str, str | int | bool]:
    """Return the ad that shows an agent; the collector drops it when its lifetime is over."""
    return {"MyType": AGENT_TYPE, **dict(zip(_AGENT_ATTRIBUTES, astuple(notice)))}


def show_agent(notice: AgentNotice) -> None:
    """Have the collector show an ad of a kind of our own, for which it wants level DAEMON.

    Raises RightsRefused when it does not give that level, PoolUnreachable when it does not answer.
    """
    collector = htcondor2.Collector()
    found = query(collector, COLLECTOR, htcondor2.AdType.Collector, None, ("MyAddress",))
    address = text(found[0], "MyAddress") if found else None
    if address is None:
        raise PoolUnreachable("the collector does not say its address")
    rights = rights_at(address, *_SHOW)
    if not rights.allowed:
        who = f"as {rights.identity}" if rights.identity else "and knows no identity of whoever runs the agent"
        raise RightsRefused(
            f"the collector refuses its ad {who}: name that identity in ALLOW_DAEMON of the central manager, or set"
            " [agent] advertise = no"
        )
    try:
        collector.advertise([classad2.ClassAd(ad_of(notice))], "UPDATE_AD_GENERIC")
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the collector does not take the agent's ad: {fault}") from None


def _require_same_clock(collector: Any) -> None:
    """Have the collector find its own ad by what time it is there: no ad tells that. Raises PoolUnreachable."""
    for how, beyond in (("ahead of", "time() < {} - {}"), ("behind", "time() > {} + {}")):
        for _ in range(_TRIES):  # one that was slow to answer has a later time
            constraint = beyond.format(int(time.time()), CLOCKS_DIFFER)
            if not query(collector, COLLECTOR, htcondor2.AdType.Collector, constraint, ("Name",)):
                break
        else:
            raise wrong_clock(f"more than {CLOCKS_DIFFER} s {how}", "the collector's")


def collector_slot(slot: str, machine: str, attributes: Sequence[str]) -> Ad | None:
    """Query the collector for this slot; None for a slot that it does not know."""
    constraint = f"Name == {quoted(slot)} && Machine == {quoted(machine)}"
    found = query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, attributes)
    return found[0] if found else None


def startd_address(slot: str, machine: str) -> str:
    """Return the address of the startd that has this slot. Raises RunEnded when the collector knows none."""
    found = collector_slot(slot, machine, ("MyAddress",))
    address = found.get("MyAddress") if found else None
    if not isinstance(address, str):
        raise RunEnded(f"the collector knows no slot {slot} on {machine} any more")
    return address


def machine_address(machine: str) -> str:
    """Return the address of a node's startd. Raises PoolUnreachable when the collector knows none."""
    constraint = f"DynamicSlot =!= true && Machine == {quoted(machine)}"
    found = query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, ("MyAddress",))
    address = next((one for ad in found if (one := text(ad, "MyAddress"))), None)
    if address is None:
        raise PoolUnreachable(f"the collector knows no startd on {machine}")
    return address


def slots_with_orders() -> list[Ad]:
    """Return the nodes that have orders, with their runs. Raises PoolUnreachable."""
    constraint = f'isString({names.ORDERS}) && {names.ORDERS} != ""'
    return query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, endings.PLACE_ATTRIBUTES)


def startd_history(place: endings.OrderedNode) -> list[Ad]:
    """Query a startd's history of the jobs of these runs, back to the first of them. Raises PoolUnreachable."""
    parts = [order.run.rpartition("@") for order in place.orders]
    constraint = " || ".join(f"GlobalJobId == {quoted(job)}" for job, _, _ in parts)
    first = min(int(start) for _, _, start in parts)
    return _history(place.machine, place.address, constraint, endings.HISTORY_ATTRIBUTES, first)


def ended_there(machine: str, since: int) -> list[Ad]:
    """Query a node's history of the jobs that have ended since then (UNIX s). Raises PoolUnreachable."""
    address = machine_address(machine)
    return _history(machine, address, f"CompletionDate >= {since}", endings.ENDED_ATTRIBUTES, since)


def _history(machine: str, address: str, constraint: str, attributes: Sequence[str], since: int) -> list[Ad]:
    # As an expression: the bindings of 25.14 fail over one that is a text.
    until = classad2.ExprTree(f"CompletionDate < {since}")
    startd = htcondor2.Startd(classad2.ClassAd({"MyAddress": address}))
    try:
        ads = startd.history(constraint, list(attributes), -1, until)
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{machine} does not answer with its history: {fault}") from None
    return [plain(ad, attributes) for ad in ads]


def jobs_at_their_end(access_point: str, ended: Sequence[Ending]) -> list[Ad]:
    """Query an access point's queue and history for these jobs. Raises PoolUnreachable."""
    found = queried(
        htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Schedd, f"Name == {quoted(access_point)}", DAEMON_ADDRESS
    )
    constraint = " || ".join(f"GlobalJobId == {quoted(one.run.rpartition('@')[0])}" for one in ended)
    # What left the queue before the first of them is not looked through.
    wanted = list(endings.JOB_ATTRIBUTES)
    since = classad2.ExprTree(f"EnteredCurrentStatus < {min(one.ended for one in ended) - _HISTORY_MARGIN}")
    try:
        schedds = [htcondor2.Schedd(ad) for ad in found]
        ads = [ad for one in schedds for ad in one.query(constraint, wanted)]
        ads += [ad for one in schedds for ad in one.history(constraint, wanted, len(ended), since)]
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the access point {access_point} does not answer with its jobs: {fault}") from None
    return [plain(ad, wanted) for ad in ads]


def startd_slots(address: str, attributes: Sequence[str]) -> list[Ad]:
    """Ask a startd for its slots: its answer is newer than the collector's."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    return query(startd, f"the startd at {address}", htcondor2.AdType.Startd, None, attributes)


def startd_answer(attributes: Sequence[str], address: str) -> tuple[list[Ad], list[Ad]]:
    """Ask a startd for what the collector is asked for: its machine ads, and its slots. Raises PoolUnreachable."""
    startd, kind = htcondor2.Collector(classad2.ClassAd({"MyAddress": address})), htcondor2.AdType.Startd
    who = f"the startd at {address}"
    return query(startd, who, kind, MACHINES, MACHINE_ATTRIBUTES), query(startd, who, kind, SLOTS, attributes)


def startd_expression(address: str, slot: str, name: str) -> str | None:
    """Return an attribute of one of a startd's slots, not evaluated; None when there is none."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    ads = queried(startd, f"the startd at {address}", htcondor2.AdType.Startd, f"Name == {quoted(slot)}", (name,))
    return next((str(ad.lookup(name)) for ad in ads if name in ad), None)


_SET, _LEVEL = "DC_CONFIG_RUNTIME", "ADMINISTRATOR"  # the command of an order, and the level that it is held to
_TOKENS, _MACHINES_TOKENS = "SEC_TOKEN_DIRECTORY", "SEC_TOKEN_SYSTEM_DIRECTORY"


@dataclass(frozen=True)
class OrderRights:
    """Our identity by a daemon ("" when it knows none), and whether it gives that the level which is needed."""

    identity: str
    allowed: bool


def rights_at(address: str, command: str = _SET, level: str = _LEVEL) -> OrderRights:
    """Ask a daemon, a startd about an order by default; nothing is changed there.

    Since HTCondor 24 the bindings show root's own tokens and not those of the machine, and without any they come by
    the pool's password, as a name that nodes of 23.x do not know. So root shows the machine's tokens from then on, if
    the configuration names no others, unless they are refused. They come first: what is refused stands in the log.
    """
    if tokens := _machines_tokens():
        before, htcondor2.param[_TOKENS] = htcondor2.param.get(_TOKENS), tokens
        found = _asked(address, command, level)
        if found.allowed:
            return found
        htcondor2.param[_TOKENS] = before or ""
    return _asked(address, command, level)


def is_order_taken(address: str) -> bool:
    """Try whether the startd takes a value as it takes an order: of a knob that nothing reads, without a reconfig."""
    try:
        htcondor2.RemoteParam(classad2.ClassAd({"MyAddress": address}))[TRIAL_KNOB] = "True"
    except htcondor2.HTCondorException:
        return False
    return True


def _asked(address: str, command: str, level: str) -> OrderRights:
    identity, _ = _identity(address, command)
    at_level, allowed = _identity(address, level)
    return OrderRights(at_level or identity, allowed)


def _identity(address: str, what: str) -> tuple[str, bool]:
    """Return as whom a startd knows the caller of a command or level, and whether it would be granted."""
    try:
        answer = _ping(address, what)
    except htcondor2.HTCondorException:
        return "", False
    return str(answer.get("MyRemoteUserName") or ""), True


def _ping(address: str, what: str) -> Mapping[str, object]:
    """Return a daemon's answer to who asks for a command or level; raises HTCondorException when it refuses."""
    answer: Mapping[str, object]
    if hasattr(htcondor2, "ping"):
        answer = htcondor2.ping(address, what)
        return answer
    # In the bindings of 24.0 only their first version has it; both are one library, with one configuration.
    classad, htcondor = import_module("classad"), import_module("htcondor")
    try:
        answer = htcondor.SecMan().ping(classad.ClassAd({"MyAddress": address}), what)
    except htcondor.HTCondorIOError as fault:
        raise htcondor2.HTCondorException(str(fault)) from None
    return answer


def _machines_tokens() -> str:
    """Return the directory of the machine's tokens, where this is root, has any there, and no other is configured."""
    directory = str(htcondor2.param.get(_MACHINES_TOKENS) or "")
    if os.geteuid() != 0 or htcondor2.param.get(_TOKENS) or not directory:
        return ""
    try:
        return directory if any(not name.startswith(".") for name in os.listdir(directory)) else ""
    except OSError:
        return ""

"""Ask a pool's collector, or one startd, for ads: only the attributes that are used, as plain values.

To be imported and called in a process that ends after one question (`bounded_call.within`): the bindings may hang.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drainwise.facts.errors import PoolUnreachable, RightsRefused, RunEnded
from drainwise.htcondor.ads.bindings import classad2, htcondor2
from drainwise.htcondor.ads.packed_ads import Bundle, packed, plain, unpacked
from drainwise.htcondor.ads.query import COLLECTOR, queried, query, quoted
from drainwise.htcondor.ads.values import (
    ACCOUNTING_ATTRIBUTES,
    COLLECTOR_ATTRIBUTES,
    DAEMON_ADDRESS,
    MACHINE_ATTRIBUTES,
    MACHINES,
    MASTER_ATTRIBUTES,
    SCHEDD_ATTRIBUTES,
    SLOT_ATTRIBUTES,
    SLOTS,
    SUBMITTER_ATTRIBUTES,
    Ad,
    Others,
    text,
)
from drainwise.htcondor.demand.resources import resources_of
from drainwise.htcondor.node import ORDERS
from drainwise.htcondor.pool.complete_answer import collector_start
from drainwise.htcondor.pool.endings import (
    ENDED_ATTRIBUTES,
    HISTORY_ATTRIBUTES,
    JOB_ATTRIBUTES,
    PLACE_ATTRIBUTES,
    OrderedNode,
)
from drainwise.htcondor.pool.order_rights import rights_at
from drainwise.pool.clocks import CLOCKS_DIFFER, wrong_clock
from drainwise.pool.facts import Ending

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


def show_agent(attributes: Mapping[str, str | int | bool]) -> None:
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
        collector.advertise([classad2.ClassAd(dict(attributes))], "UPDATE_AD_GENERIC")
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


def slots_with_orders() -> list[Ad]:
    """Return the nodes that have orders, with their runs. Raises PoolUnreachable."""
    constraint = f'isString({ORDERS}) && {ORDERS} != ""'
    return query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, PLACE_ATTRIBUTES)


def startd_history(place: OrderedNode) -> list[Ad]:
    """Query a startd's history of the jobs of these runs, back to the first of them. Raises PoolUnreachable."""
    parts = [order.run.rpartition("@") for order in place.orders]
    constraint = " || ".join(f"GlobalJobId == {quoted(job)}" for job, _, _ in parts)
    first = min(int(start) for _, _, start in parts)
    return _history(place.machine, place.address, constraint, HISTORY_ATTRIBUTES, first)


def ended_there(machine: str, since: int) -> list[Ad]:
    """Query a node's history of the jobs that have ended since then (UNIX s). Raises PoolUnreachable."""
    constraint = f"Machine == {quoted(machine)}"
    found = query(htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Startd, constraint, ("MyAddress",))
    address = next((one for ad in found if (one := text(ad, "MyAddress"))), None)
    if address is None:
        raise PoolUnreachable(f"the collector knows no startd on {machine} any more")
    return _history(machine, address, f"CompletionDate >= {since}", ENDED_ATTRIBUTES, since)


def _history(machine: str, address: str, constraint: str, attributes: Sequence[str], since: int) -> list[Ad]:
    # As an expression: the bindings of 25.14 fail over one that is a text.
    until = classad2.ExprTree(f"CompletionDate < {since}")
    startd = htcondor2.Startd(classad2.ClassAd({"MyAddress": address}))
    try:
        ads = startd.history(constraint, list(attributes), -1, until)
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{machine} does not answer with its history: {fault}") from None
    return [plain(ad, attributes) for ad in ads]


def jobs_at_their_end(access_point: str, endings: Sequence[Ending]) -> list[Ad]:
    """Query an access point's queue and history for these jobs. Raises PoolUnreachable."""
    found = queried(
        htcondor2.Collector(), COLLECTOR, htcondor2.AdType.Schedd, f"Name == {quoted(access_point)}", DAEMON_ADDRESS
    )
    constraint = " || ".join(f"GlobalJobId == {quoted(one.run.rpartition('@')[0])}" for one in endings)
    # What left the queue before the first of them is not looked through.
    since = classad2.ExprTree(f"EnteredCurrentStatus < {min(one.ended for one in endings) - _HISTORY_MARGIN}")
    try:
        schedds = [htcondor2.Schedd(ad) for ad in found]
        ads = [ad for one in schedds for ad in one.query(constraint, list(JOB_ATTRIBUTES))]
        ads += [ad for one in schedds for ad in one.history(constraint, list(JOB_ATTRIBUTES), len(endings), since)]
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"the access point {access_point} does not answer with its jobs: {fault}") from None
    return [plain(ad, JOB_ATTRIBUTES) for ad in ads]


def startd_slots(address: str, attributes: Sequence[str]) -> list[Ad]:
    """Ask a startd for its slots: its answer is newer than the collector's."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    return query(startd, f"the startd at {address}", htcondor2.AdType.Startd, None, attributes)


def startd_answer(address: str, attributes: Sequence[str]) -> tuple[list[Ad], list[Ad]]:
    """Ask a startd for what the collector is asked for: its machine ads, and its slots. Raises PoolUnreachable."""
    startd, kind = htcondor2.Collector(classad2.ClassAd({"MyAddress": address})), htcondor2.AdType.Startd
    who = f"the startd at {address}"
    return query(startd, who, kind, MACHINES, MACHINE_ATTRIBUTES), query(startd, who, kind, SLOTS, attributes)


def startd_expression(address: str, slot: str, name: str) -> str | None:
    """Return an attribute of one of a startd's slots, not evaluated; None when there is none."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    ads = queried(startd, f"the startd at {address}", htcondor2.AdType.Startd, f"Name == {quoted(slot)}", (name,))
    return next((str(ad.lookup(name)) for ad in ads if name in ad), None)

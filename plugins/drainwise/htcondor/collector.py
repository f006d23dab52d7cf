"""Asks a pool's collector, or one startd, for ads: only the attributes that are used, as plain values.

To be imported and called in a process that ends after one question (`time_limit.within`): the bindings may hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from drainwise.errors import PoolUnreachable
from drainwise.htcondor.bindings import classad2, htcondor2
from drainwise.htcondor.endings import HISTORY_ATTRIBUTES, PLACE_ATTRIBUTES, Place
from drainwise.htcondor.packed_ads import Bundle, packed, plain
from drainwise.htcondor.pool_ads import ACCOUNTING_ATTRIBUTES, ORDERS, SLOT_ATTRIBUTES, SLOTS, SUBMITTER_ATTRIBUTES, Ad

_COLLECTOR = "the collector (COLLECTOR_HOST of HTCondor's configuration)"


def pool_ads() -> Iterator[tuple[list[Ad], list[Ad]] | Bundle]:
    """The accountant's lines and who submits; then all slots that have cores: of the configured pool.

    All of it is asked for before any of it is told. Raises PoolUnreachable when the collector does not answer.
    """
    collector, kinds = htcondor2.Collector(), htcondor2.AdType
    slots = _told(collector, _COLLECTOR, kinds.Startd, SLOTS, SLOT_ATTRIBUTES)
    yield (
        _query(collector, _COLLECTOR, kinds.Accounting, None, ACCOUNTING_ATTRIBUTES),
        _query(collector, _COLLECTOR, kinds.Submitter, None, SUBMITTER_ATTRIBUTES),
    )
    yield from packed(slots, SLOT_ATTRIBUTES)


def collector_slot(slot: str, machine: str, attributes: Sequence[str]) -> Ad | None:
    """What the collector knows of this slot; None for a slot that it does not know."""
    constraint = f"Name == {_quoted(slot)} && Machine == {_quoted(machine)}"
    found = _query(htcondor2.Collector(), _COLLECTOR, htcondor2.AdType.Startd, constraint, attributes)
    return found[0] if found else None


def startd_address(slot: str, machine: str) -> str:
    """The address of the startd that has this slot. Raises PoolUnreachable when the collector knows none."""
    found = collector_slot(slot, machine, ("MyAddress",))
    address = found.get("MyAddress") if found else None
    if not isinstance(address, str):
        raise PoolUnreachable(f"the collector knows no slot {slot} on {machine} any more")
    return address


def slots_with_orders() -> list[Ad]:
    """Where the nodes that have orders are, with their runs. Raises PoolUnreachable."""
    constraint = f'isString({ORDERS}) && {ORDERS} != ""'
    return _query(htcondor2.Collector(), _COLLECTOR, htcondor2.AdType.Startd, constraint, PLACE_ATTRIBUTES)


def startd_history(place: Place) -> list[Ad]:
    """What a startd kept of the jobs of these runs, back to the first of them. Raises PoolUnreachable."""
    parts = [order.run.rpartition("@") for order in place.orders]
    constraint = " || ".join(f"GlobalJobId == {_quoted(job)}" for job, _, _ in parts)
    # As an expression: the bindings of 25.14 fail over one that is a text.
    since = classad2.ExprTree(f"CompletionDate < {min(int(start) for _, _, start in parts)}")
    startd = htcondor2.Startd(classad2.ClassAd({"MyAddress": place.address}))
    try:
        ads = startd.history(constraint, list(HISTORY_ATTRIBUTES), -1, since)
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{place.machine} does not tell its history: {fault}") from None
    return [plain(ad, HISTORY_ATTRIBUTES) for ad in ads]


def startd_slots(address: str, attributes: Sequence[str]) -> list[Ad]:
    """A startd's own word on its slots, which is newer than the collector's."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    return _query(startd, f"the startd at {address}", htcondor2.AdType.Startd, None, attributes)


def startd_expression(address: str, slot: str, name: str) -> str | None:
    """How a startd has an attribute of one of its slots, not evaluated; None when there is none."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    ads = _told(startd, f"the startd at {address}", htcondor2.AdType.Startd, f"Name == {_quoted(slot)}", (name,))
    return next((str(ad.lookup(name)) for ad in ads if name in ad), None)


def _query(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> list[Ad]:
    return [plain(ad, attributes) for ad in _told(who, name, kind, constraint, attributes)]


def _told(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> Iterable[Any]:
    query: Callable[..., Iterable[Any]] = who.query
    try:
        return query(kind, constraint, list(attributes))
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{name} does not answer: {fault}") from None


def _quoted(text: str) -> str:
    """A text as a ClassAd string literal."""
    return str(classad2.quote(text))

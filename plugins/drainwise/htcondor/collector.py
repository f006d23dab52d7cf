"""Asks a pool's collector, or one startd, for ads: only the attributes that are used, as plain values.

To be imported and called in a process that ends after one question (`time_limit.within`): the bindings may hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import classad2
import htcondor2

from drainwise.errors import PoolUnreachable
from drainwise.htcondor.pool_ads import ACCOUNTING_ATTRIBUTES, SLOT_ATTRIBUTES, SUBMITTER_ATTRIBUTES, Ad

_COLLECTOR = "the collector (COLLECTOR_HOST of HTCondor's configuration)"


def plain(ad: Any, attributes: Iterable[str]) -> Ad:
    """The evaluated values of a ClassAd that are text, numbers or flags; what is undefined or an error is not there.

    An expression is evaluated within the ad, so the attributes that it names must have been asked for as well.
    """
    values: dict[str, object] = {}
    for name in attributes:
        value = ad.get(name)
        if value is not None and not isinstance(value, (str, int, float)):
            value = ad.eval(name)
        if isinstance(value, (str, float, bool)) or type(value) is int:  # Undefined and Error are kinds of int
            values[name] = value
    return values


def pool_ads() -> tuple[list[Ad], list[Ad], list[Ad]]:
    """All slots, the accountant's lines, and who submits, of the configured pool.

    Raises PoolUnreachable when the collector does not answer.
    """
    collector, kinds = htcondor2.Collector(), htcondor2.AdType
    return (
        _query(collector, _COLLECTOR, kinds.Startd, None, SLOT_ATTRIBUTES),
        _query(collector, _COLLECTOR, kinds.Accounting, None, ACCOUNTING_ATTRIBUTES),
        _query(collector, _COLLECTOR, kinds.Submitter, None, SUBMITTER_ATTRIBUTES),
    )


def startd_address(slot: str, machine: str) -> str:
    """The address of the startd that has this slot. Raises PoolUnreachable when the collector knows none."""
    constraint = f"Name == {_quoted(slot)} && Machine == {_quoted(machine)}"
    found = _query(htcondor2.Collector(), _COLLECTOR, htcondor2.AdType.Startd, constraint, ("MyAddress",))
    address = found[0].get("MyAddress") if found else None
    if not isinstance(address, str):
        raise PoolUnreachable(f"the collector knows no slot {slot} on {machine} any more")
    return address


def startd_slots(address: str, attributes: Sequence[str]) -> list[Ad]:
    """A startd's own word on its slots, which is newer than the collector's."""
    startd = htcondor2.Collector(classad2.ClassAd({"MyAddress": address}))
    return _query(startd, f"the startd at {address}", htcondor2.AdType.Startd, None, attributes)


def _query(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> list[Ad]:
    query: Callable[..., Iterable[Any]] = who.query
    try:
        return [plain(ad, attributes) for ad in query(kind, constraint, list(attributes))]
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{name} does not answer: {fault}") from None


def _quoted(text: str) -> str:
    """A text as a ClassAd string literal."""
    return str(classad2.quote(text))

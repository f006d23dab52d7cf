"""Ask a daemon for ads: only the attributes that are used.

To be imported and called in a process that ends after one question (`bounded_call.within`): the bindings may hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.bindings import classad2, htcondor2
from drainwise.htcondor.ads.packed_ads import plain
from drainwise.htcondor.ads.values import Ad

COLLECTOR = "the collector (COLLECTOR_HOST of HTCondor's configuration)"
"""The name of the pool's collector in a message."""


def queried(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> Iterable[Any]:
    """Return the ClassAds of a kind that fulfil a constraint. Raises PoolUnreachable with the daemon's `name`."""
    query: Callable[..., Iterable[Any]] = who.query
    try:
        return query(kind, constraint, list(attributes))
    except htcondor2.HTCondorException as fault:
        raise PoolUnreachable(f"{name} does not answer: {fault}") from None


def query(who: Any, name: str, kind: object, constraint: str | None, attributes: Sequence[str]) -> list[Ad]:
    """Return the ads as plain values. Raises as `queried`."""
    return [plain(ad, attributes) for ad in queried(who, name, kind, constraint, attributes)]


def quoted(text: str) -> str:
    """Write a text as a ClassAd string literal."""
    return str(classad2.quote(text))

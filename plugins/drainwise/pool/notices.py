"""What an administrator is told of a snapshot: notices of the batch system, and why pilots can get no order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from drainwise.pool.facts import Snapshot

_MOST = 20
"""Notices that are shown; of more only the number."""


def notices_of(snapshot: Snapshot, first: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the sentences `first`, the snapshot's notices, and why pilots can get no order."""
    pilots: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    for pilot in snapshot.pilots:
        if pilot.cannot:
            pilots[pilot.cannot] += 1
            cores[pilot.cannot] += pilot.cores
    reasons = sorted(pilots, key=lambda reason: (-cores[reason], reason))
    found = [*first, *snapshot.notices]
    found += [f"{_pilots(pilots[why], cores[why])} cannot be given an order: {why}" for why in reasons]
    return (*found[:_MOST], f"{len(found) - _MOST} more notices") if len(found) > _MOST else tuple(found)


def _pilots(number: int, cores: int) -> str:
    return f"{number} {'pilot' if number == 1 else 'pilots'} ({cores} cores)"

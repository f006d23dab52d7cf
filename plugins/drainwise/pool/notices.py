"""What an administrator is told of a snapshot: notices of the batch system, and why pilots can get no order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from drainwise.facts.signs import NO_SIGN
from drainwise.pool.facts import Snapshot
from drainwise.pool.finding import first_few

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
    for why in reasons:
        number = f"{pilots[why]} {'pilot' if pilots[why] == 1 else 'pilots'}"
        silent = sorted({pilot.node for pilot in snapshot.pilots if pilot.cannot == why == NO_SIGN})
        where = f" ({first_few(silent)})" if silent else ""
        found.append(f"{number} ({cores[why]} cores) cannot be given an order: {why}{where}")
    return (*found[:_MOST], f"{len(found) - _MOST} more notices") if len(found) > _MOST else tuple(found)


UNKNOWN = "unknown"
"""What a version is called that a node does not say."""

_LONGEST = 32
_MOST_VERSIONS = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.+-"


def counted(versions: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Count the nodes' versions, one of each node, in an order that stays; what can be none counts as "".

    Of more than a few the rarest count as "" as well: whoever forges a node may say anything.
    """
    plain = Counter(one if len(one) <= _LONGEST and not one.strip(_LETTERS) else "" for one in versions)
    kept = {version for version, _ in sorted(plain.items(), key=lambda row: (-row[1], row[0]))[:_MOST_VERSIONS]}
    found: Counter[str] = Counter()
    for version, nodes in plain.items():
        found[version if version in kept else ""] += nodes
    return tuple(sorted(found.items()))


def mixed_line(versions: Sequence[tuple[str, int]], own: str) -> str:
    """Say which versions the nodes run where that is not `own` alone; "" where it is, or nothing is known."""
    if not versions or [version for version, _ in versions] == [own]:
        return ""
    each = ", ".join(f"{nodes} of {version or UNKNOWN}" for version, nodes in versions)
    return f"nodes by the version of drainwise: {each}; here it is {own}"

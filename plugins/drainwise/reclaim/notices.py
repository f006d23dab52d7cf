"""What a decision could not count on: demand that is paused, what the answer left out, pilots that cannot be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from drainwise.pool import Snapshot
from drainwise.reclaim.paused_demand import Paused

_MOST = 20
"""Notices that are shown; of more only the number."""


def notices_of(snapshot: Snapshot, pauses: Sequence[Paused] = ()) -> tuple[str, ...]:
    """What demand is paused, the snapshot's own notices, then why pilots cannot be asked, the most cores first."""
    pilots: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    for pilot in snapshot.pilots:
        if pilot.cannot:
            pilots[pilot.cannot] += 1
            cores[pilot.cannot] += pilot.cores
    reasons = sorted(pilots, key=lambda reason: (-cores[reason], reason))
    found = [*(one.sentence for one in pauses), *snapshot.notices]
    found += [f"{_pilots(pilots[why], cores[why])} cannot be asked: {why}" for why in reasons]
    return (*found[:_MOST], f"{len(found) - _MOST} more notices") if len(found) > _MOST else tuple(found)


def _pilots(number: int, cores: int) -> str:
    return f"{number} {'pilot' if number == 1 else 'pilots'} ({cores} cores)"

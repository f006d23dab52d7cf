"""Which requests have lost their reason: bob has left, or alice's quota was raised. Those pilots may go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool import Pilot, Snapshot
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.cover import cheapest_of_total
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.quota import Balance, whole_cores
from drainwise.reclaim.reach import total_to_give
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import core_hours


@dataclass(frozen=True)
class Cancel:
    """One pilot whose request is to be taken back; `saved` in core-seconds is what that should save."""

    pilot: Pilot
    saved: int
    reason: str


def cancels(
    snapshot: Snapshot, balance: Balance, now: int, settings: Settings, record: Record | None = None
) -> tuple[Cancel, ...]:
    """The requests to take back at `now` (UNIX s).

    No more cores than are on their way beyond the demand, or beyond what an account holds over its quota: so no cycle
    asks again for what this one takes back. An order that was not answered takes none back, as it may not be carried
    out. The best priority is released first. Of one user's pilots those that save the most; how many cores are released
    comes from the sizes alone.
    """
    in_doubt = sum(one.cores for one in snapshot.pilots if one.unanswered is not None)
    spare = whole_cores(balance.free + balance.leaving - in_doubt - balance.demand)
    released: list[Cancel] = []
    for principal in sorted(snapshot.principals, key=lambda one: (one.priority, one.name)):
        pilots = [one for one in snapshot.pilots if one.principal == principal.name]
        asked = [one for one in pilots if one.deadline is not None and one.deadline > now]
        going = sum(one.cores for one in pilots if one.deadline is not None or one.leaving)
        beyond = whole_cores(going - max(0.0, principal.cores_in_use - principal.cores_owed))
        for user in sorted(
            {one.user for one in asked}, key=lambda name: (snapshot.user_priorities.get(name, 0.0), name)
        ):
            hers = [one for one in asked if one.user == user]
            reason = (
                "nobody waits for these cores any more" if spare >= beyond else f"{principal.name} is not over quota"
            )
            part = _released(hers, max(spare, beyond), reason, now, settings, record or Record())
            cores = sum(one.pilot.cores for one in part)
            spare, beyond = max(0, spare - cores), max(0, beyond - cores)
            released += part
    return tuple(released)


def _released(
    pilots: Sequence[Pilot], cores: int, reason: str, now: int, settings: Settings, record: Record
) -> list[Cancel]:
    """Of one user's pilots as many cores as can be, never more than `cores`: those that save the most."""
    pilots = sorted(pilots, key=lambda one: one.run)
    columns = columns_of(pilots, now, settings, record)
    # That it drains now is our own doing: when it need not, what would idle is saved too.
    columns = replace(columns, draining=np.zeros(len(pilots), dtype=bool))
    saved = figures_of(columns, now, settings).asked
    total = total_to_give(columns.cores, cores, cores)
    rows = cheapest_of_total(columns.cores, saved.max(initial=0.0) * columns.cores - saved, -columns.priority, total)
    return [
        Cancel(pilots[row], int(saved[row]), f"{reason}; going on saves {core_hours(int(saved[row]))}")
        for row in rows.tolist()
    ]

"""Find the orders that have lost their reason: bob has left, or alice's quota was raised. Those pilots may go on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.facts.units import core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.free_cores import whole_cores
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.history import History, cancelled_runs
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.exact import cheapest_of_total, total_to_give


@dataclass(frozen=True)
class Withdrawal:
    """One pilot whose order is to be withdrawn; `saved` in core-seconds is what that should save.

    instead: runs that get an order in its place, by name; none where its reason has gone.
    """

    pilot: Pilot
    saved: int
    reason: str
    instead: tuple[str, ...] = ()


def withdrawals(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History | None = None,
    needed: Collection[str] | None = None,
) -> tuple[Withdrawal, ...]:
    """Return the orders to withdraw at `now` (UNIX s).

    No more cores than are on their way beyond the demand, or beyond what an account holds over its quota: so no cycle
    orders again what this one withdraws. For an order that was not answered none is withdrawn, as it may not be carried
    out. The best priority comes first. Of one user's pilots those that save the most; how many cores that are comes
    from the sizes alone. An order to a reserved pilot has a reason of its own; one for a request that was cancelled is
    withdrawn in any case, as its deadline was that request's.
    needed: the runs whose room waiting jobs use, where that is known: then those keep their orders and no others.
    """
    in_doubt = sum(one.cores for one in snapshot.pilots if one.unanswered is not None and not one.reserved)
    spare = whole_cores(balance.free + balance.leaving - in_doubt - balance.demand)
    if needed is not None:
        spare = sum(one.cores for one in snapshot.pilots if one.run not in needed and one.unanswered is None)
    history, withdrawn = history or History(), list[Withdrawal]()
    cancelled = cancelled_runs(snapshot, history)
    ending = defaultdict[str, "list[Pilot]"](list)
    for one in snapshot.pilots:
        if one.deadline is not None or one.leaving:
            ending[one.account].append(one)
    for account in sorted(snapshot.accounts, key=lambda one: (one.priority, one.name)):
        pilots = ending[account.name]
        ordered = [one for one in pilots if one.deadline is not None and one.deadline > now and not one.reserved]
        going = sum(one.cores for one in pilots)
        beyond = whole_cores(going - max(0.0, account.cores_in_use - account.cores_owed))
        for user in sorted(
            {one.user for one in ordered}, key=lambda name: (snapshot.user_priorities.get(name, 0.0), name)
        ):
            theirs = [one for one in ordered if one.user == user and one.run in cancelled and one.unanswered is None]
            if theirs:
                names = ", ".join(sorted({cancelled[one.run] for one in theirs}))
                cores = sum(one.cores for one in theirs)
                withdrawn += _withdrawn(theirs, cores, f"{names} was cancelled", now, settings, history)
                spare, beyond = max(0, spare - cores), max(0, beyond - cores)
            theirs = [one for one in ordered if one.user == user and one.run not in cancelled]
            if needed is not None and spare >= beyond:
                theirs = [one for one in theirs if one.run not in needed]
            reason = "nobody waits for these cores any more" if spare >= beyond else f"{account.name} is not over quota"
            part = _withdrawn(theirs, max(spare, beyond), reason, now, settings, history)
            cores = sum(one.pilot.cores for one in part)
            spare, beyond = max(0, spare - cores), max(0, beyond - cores)
            withdrawn += part
    return tuple(withdrawn)


def _withdrawn(
    pilots: Sequence[Pilot], cores: int, reason: str, now: int, settings: ReclaimSettings, history: History
) -> list[Withdrawal]:
    """Choose of one user's pilots as many cores as can be, never more than `cores`: those that save the most."""
    pilots = sorted(pilots, key=lambda one: one.run)
    columns = columns_of(pilots, now, settings, history)
    # That it drains now is our own doing: when it need not, what would idle is saved too.
    columns = replace(columns, draining=np.zeros(len(pilots), dtype=bool))
    saved = figures_of(columns, now, settings).drained
    total = total_to_give(columns.cores, cores, cores)
    rows = cheapest_of_total(columns.cores, saved.max(initial=0.0) * columns.cores - saved, total)
    return [
        Withdrawal(pilots[row], int(saved[row]), f"{reason}; going on saves {core_hours(int(saved[row]))}")
        for row in rows.tolist()
    ]

"""Serve a need that stays open until a moment: decide again each cycle whom to end now, whom to let go on, and wait.

Nothing forces a decision before the moment, and pilots become cheap by themselves: a payload ends, and the next one has
hardly begun. To drain takes time, so whom it should waste least to drain is asked at once. Who is to be killed is taken
only when it is cheap now, below a threshold: what the cores that are missing should cost if the rest of them are taken
later. What a kill loses grows by a second each second on each busy core, so a pilot stays below x core-seconds a core
for about x seconds: if C cores are below x now, about C·R/x more will come below it within the R seconds that are left.
The less time is left, the higher is the threshold; in the end it is what the cheapest pilots cost that are there.

Waiting costs, too: a core-hour that somebody waits is worth `waiting_cost` wasted ones. Pilots whose lease ends in time
give their cores back by themselves, and others end as often as pilots have begun. An order is withdrawn when others
have become cheaper by far, and its pilot gets no other one for `PAUSE`. Everything comes from the snapshot and from
when orders were withdrawn: nothing is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.figures import Figures, figures_of
from drainwise.reclaim.history import DAY, History
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Mask, Real, Whole
from drainwise.reclaim.totals.knapsack import cheapest_of_total
from drainwise.reclaim.totals.subset_sums import total_to_give

WAITING_COST = 0.02
"""Wasted core-hours that a core-hour of waiting is worth."""
RATE_WINDOW = 3 * DAY
"""Seconds in which beginnings of pilots are counted."""
LAST_MOMENTS = 300
"""Seconds before and after the moment of a need in which what is missing is taken whatever it costs."""
_COME_LATER = 0.5  # of those that should become cheap later, the share that is counted on
_WORSE = 1.5  # an order stands until it costs so many times what another pilot costs
_LEAST_WORSE = 300  # and core-seconds a core more


@dataclass(frozen=True)
class OpenNeed:
    """Cores that are missing until `due` (UNIX s). cycle: seconds until this is decided again, at most."""

    cores: int
    due: int
    cycle: int


@dataclass(frozen=True)
class NeedStep:
    """What one cycle does for an open need.

    rows: of the candidates, those that get an order now, each in its cheapest way. withdrawn: runs whose orders are
    withdrawn. threshold: core-seconds for each core up to which pilots are ended now.
    """

    candidates: Candidates
    rows: tuple[int, ...]
    withdrawn: tuple[str, ...]
    threshold: float


def need_step(
    pilots: Sequence[Pilot],
    need: OpenNeed,
    now: int,
    settings: ReclaimSettings,
    history: History,
    paused: Collection[str] = (),
    waiting_cost: float = WAITING_COST,
) -> NeedStep:
    """Decide at `now` (UNIX s) for one user's `pilots`; those with a deadline have an order.

    settings: the horizon is replaced by what is left of the need's. paused: runs whose order was withdrawn within
    `PAUSE`.
    """
    left = max(0, need.due - now)
    site = replace(settings, horizon=left)
    among = candidates_of(pilots, now, site, history)
    ordered = np.array([one.deadline is not None for one in among.pilots], dtype=bool)
    closed = np.array([one.run in paused or one.leaving for one in among.pilots], dtype=bool)
    columns = columns_of(among.pilots, now, site, history)
    # Who drains by our order need not: what idles from now on is no waste that is lost already.
    deadlines = np.array([np.inf if one.deadline is None else one.deadline for one in among.pilots])
    columns = replace(columns, draining=columns.draining & ~ordered, lease_end=np.minimum(columns.lease_end, deadlines))
    it = figures_of(columns, now, site)
    by_itself = ~ordered & np.array(
        [one.lease_end is not None and one.lease_end <= need.due for one in among.pilots], dtype=bool
    )
    sizes = among.sizes
    missing = need.cores - int(sizes[by_itself].sum())
    cost = _with_waiting(it, waiting_cost)
    open_to = ~by_itself & (~closed | ordered)
    withdrawn = _withdrawn(cost / sizes, sizes, ordered, open_to, missing) if left > need.cycle else []
    stands = ordered.copy()
    stands[withdrawn] = False
    missing -= int(sizes[stands].sum())
    able = np.flatnonzero(open_to & ~ordered)
    others = others_that_end(it, by_itself, left)
    threshold = threshold_of(it, sizes, able, missing - others, left if left > need.cycle else 0, need.cycle)
    total = total_to_give(sizes[able], missing, missing) if missing > 0 else 0
    rows = able[cheapest_of_total(sizes[able], cost[able], it.priority[able], total)] if total > 0 else able[:0]
    threshold += waiting_cost * left / 2
    at_once = (it.kill > it.drained) | (cost / sizes <= threshold) | (left <= need.cycle)
    now_rows = tuple(row for row in rows.tolist() if at_once[row])
    return NeedStep(among, now_rows, tuple(among.pilots[row].run for row in withdrawn), threshold)


def others_that_end(it: Figures, by_itself: Mask, left: int) -> int:
    """Return the cores of pilots that should end by themselves in the time left, beside those whose lease does.

    Pilots end as often as they begin: so many cores as began in `RATE_WINDOW`, for as much of it as is left.
    """
    window = max(RATE_WINDOW, left)
    began = float(it.columns.cores[it.columns.started > it.now - window].sum()) * left / window
    return int(_COME_LATER * max(0.0, began - it.columns.cores[by_itself].sum()))


def open_since(known: Mapping[str, int], waiting: Iterable[str], now: int, horizon: int) -> dict[str, int]:
    """Return since when the need of each account is open at `now` (UNIX s).

    known: what is remembered. waiting: accounts that wait for cores that they are owed. A need that was not met within
    `horizon` and `LAST_MOMENTS` opens anew: no agent was there, or a limit held it up.
    """
    since = {name: min(known.get(name, now), now) for name in waiting}
    return {name: now if now > time + horizon + LAST_MOMENTS else time for name, time in since.items()}


def worth_replacing(cost: Real | float) -> Real | float:
    """Return what a core of another pilot may cost, in core-seconds, for an order at this `cost` a core to be worse by
    far.
    """
    return (cost - _LEAST_WORSE) / _WORSE


def _with_waiting(it: Figures, waiting_cost: float) -> Real:
    """Return what each pilot costs in its cheapest way, with what waiting for its cores is worth, in core-seconds."""
    wait = np.where(it.kill <= it.drained, 0.0, it.drain_time)
    found: Real = it.least + waiting_cost * it.columns.cores * wait
    return found


def _withdrawn(cost: Real, sizes: Whole, ordered: Mask, able: Mask, missing: int) -> list[int]:
    """Return the rows whose order has become the worse choice by far: others cost much less for each core.

    The dearest first, each against as many cores of the cheapest that have no order.
    """
    found: list[int] = []
    others = [row for row in np.argsort(cost, kind="stable").tolist() if able[row] and not ordered[row]]
    mine = [row for row in np.argsort(-cost, kind="stable").tolist() if ordered[row]]
    spare = int(sizes[ordered].sum()) - max(0, missing)
    place = 0
    for row in mine:
        if spare >= sizes[row]:
            spare -= int(sizes[row])
            found.append(row)
            continue
        cores, worth, ahead = int(sizes[row]) - max(0, spare), 0.0, place
        while cores > 0 and ahead < len(others):
            worth, cores, ahead = max(worth, float(cost[others[ahead]])), cores - int(sizes[others[ahead]]), ahead + 1
        if cores > 0 or worth >= worth_replacing(float(cost[row])):
            break
        place = ahead
        found.append(row)
    return found


def threshold_of(it: Figures, sizes: Whole, able: Whole, missing: int, left: int, cycle: int) -> float:
    """Return the least core-seconds a core below which as many cores should come in time as are missing."""
    if missing <= 0 or not len(able):
        return 0.0
    each = it.kill_waste[able] / sizes[able]
    order = np.argsort(each, kind="stable")
    threshold, cores = each[order], np.cumsum(sizes[able][order])
    flows = np.cumsum(sizes[able][order] * it.columns.believed[able][order])
    reach = cores + _COME_LATER * flows * left / np.maximum(threshold, cycle)
    enough = np.flatnonzero(reach >= missing)
    return float(threshold[enough[0]] if len(enough) else threshold[-1])

"""Calculate the metrics of many pilots at once, and the expected waste of each way to end each of them.

Per pilot there are three ways, and the cores must be back within the horizon, else a way does not count:
  kill   after the site's shortest notice;
  leave  ordered to drain, it leaves by itself when its last payload ends, with the whole margin before its deadline;
         what ends later may be stopped first: pilots as well as batch systems begin with that before the deadline;
  cut    ordered to drain, it is cut at a deadline: when so many of its payloads have ended that waiting for more is not
         worth it (`best_cut`), or where nobody is killed at once when the least grace is over, or at the limit,
         whatever should waste least.
Who does not drain by an order (`drains`) never leaves by it. What its ended payloads leave free it fills again, and a
cut costs that too.
So the cheapest way of each pilot is the cheapest of these, and the cheapest set is made of pilots ended in that way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from drainwise.facts.cut_deadline import best_cut
from drainwise.facts.waste import at_least, at_most, bounded_draining_waste, bounded_remaining
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.cut_wastes import (
    StatedCurve,
    claims_of,
    cut_at,
    goes_on_starting,
    has_curve,
    lost_by_kill,
    most_lost,
    wasted_when_stopped,
)
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.elementwise import (
    INFINITE,
    any_of,
    everywhere,
    negated,
    rounded,
    rounded_up,
    where,
)

if TYPE_CHECKING:
    from drainwise.reclaim.totals.arrays import Mask, Real
    from drainwise.reclaim.totals.elementwise import Quantity

_OF_ROWS = ("remaining", "draining_waste", "kill_waste", "leave", "leave_deadline", "cut", "cut_deadline", "kill")
_BLOCK = 16384  # rows whose columns stay in the processor's cache while all formulas pass over them


@dataclass(frozen=True)
class Figures:
    """Rows as in `columns`, calculated for `now` (UNIX s); wastes in whole core-seconds, remaining in s.

    remaining, draining_waste and kill_waste are the metrics; of a pilot that is not believed remaining and draining
    waste are NaN. leave, cut and kill are what the three ways waste, infinite where a way does not count; the deadlines
    are those of the orders (UNIX s). notice: until a kill, s. waiting_cost: wasted core-seconds that a core-second of
    waiting for the cores is worth.
    """

    now: int
    columns: Columns
    notice: int
    waiting_cost: float
    remaining: Real
    draining_waste: Real
    kill_waste: Real
    leave: Real
    leave_deadline: Real
    cut: Real
    cut_deadline: Real
    kill: Real

    def __len__(self) -> int:
        return len(self.columns)

    def some(self, rows: Sequence[int]) -> Figures:
        """Return the figures of these rows."""
        import numpy as np  # noqa: PLC0415 - the figures of one pilot need none

        which = np.array(rows, dtype=np.int64)
        columns = self.columns.rows(which)
        return replace(self, columns=columns, **{name: getattr(self, name)[which] for name in _OF_ROWS})

    @property
    def drained(self) -> Real:
        """Waste when it is ordered to drain: it leaves in time or is cut."""
        found: Real = at_most(self.leave, self.cut)
        return found

    @property
    def least(self) -> Real:
        """Waste of the cheapest way that counts: with what waiting for the cores is worth, where that has a cost."""
        return self._cheapest[0]

    @property
    def price(self) -> Real:
        """Its waste, and what waiting for the cores is worth, in whole core-seconds."""
        waste, waiting = self._cheapest
        found: Real = waste + rounded(waiting)
        return found

    @property
    def _cheapest(self) -> tuple[Real, Real]:
        """Waste of the cheapest way of each, and what waiting for its cores is worth."""
        import numpy as np  # noqa: PLC0415 - the figures of one pilot need none

        leaves, killed = np.where(self.leave < INFINITE, self.remaining, 0.0), np.full(len(self), float(self.notice))
        waits = np.array((leaves, self.cut_deadline - self.now, killed)) * self.waiting_cost * self.columns.cores
        wastes = np.array((self.leave, self.cut, self.kill))
        way = (wastes + waits).argmin(axis=0), np.arange(len(self))
        return wastes[way], waits[way]

    @property
    def drain_time(self) -> Real:
        """Seconds until the cores are back in the cheaper way to drain."""
        found: Real = where(self.leave <= self.cut, self.remaining, self.cut_deadline - self.now)
        return found

    @property
    def priority(self) -> Real:
        """PRIORITY_FACTOR: of equals, the pilot that its user values least goes first."""
        return self.columns.priority_factor

    @property
    def unprotected(self) -> Mask:
        """Whether a pilot's protection has run out."""
        return self.columns.unprotected


def figures_of(columns: Columns, now: int, settings: ReclaimSettings) -> Figures:
    """Return the figures at `now` (UNIX s)."""
    import numpy as np  # noqa: PLC0415 - the figures of one pilot need none

    found = np.empty((8, len(columns)))
    for begin in range(0, len(columns), _BLOCK):
        end = min(begin + _BLOCK, len(columns))
        rows = row_of_figures(columns.rows(slice(begin, end)), now, settings)
        for row, figure in enumerate(rows):
            found[row, begin:end] = figure
    return Figures(now, columns, settings.notice, settings.waiting_cost, *found)


def row_of_figures(it: Columns, now: int, settings: ReclaimSettings) -> tuple[Quantity, ...]:
    """Return the eight columns of `Figures` in their order, at `now` (UNIX s); of one pilot eight numbers."""
    left = bounded_remaining(it.last_exp_job_end, now, it.lease_end)
    drain = rounded(
        bounded_draining_waste(it.cores, it.used_cpu, it.first_exp_job_end, it.add_final_exp_waste, now, it.lease_end)
    )
    kill = lost_by_kill(it, now)

    latest = _by_lease(it, now, now + max(settings.notice, min(settings.grace, settings.max_grace)))
    limit = at_most(latest, now + max(settings.notice, settings.horizon))
    # It knows of the order late, and the batch system begins to end it early: both times come on top.
    on_top = it.vacate + settings.order_latency
    soonest = at_least(now + settings.min_grace + on_top, now + settings.notice)
    if settings.drain_only and settings.need_left is not None:
        limit = at_most(limit, at_least(now + settings.need_left, soonest))
    leave_deadline = at_most(at_least(now + left + settings.margin + on_top, soonest), latest)
    earliest = at_most(soonest, limit)
    idle = at_most(drain, it.cores * left)  # whatever it claims, no more cores than its own until it is gone
    spare = at_least(it.vacate, settings.margin)
    goes_on = goes_on_starting(it)
    in_time = it.believed & negated(goes_on) & (now + left <= limit) & (now + left <= latest - spare)
    idle = where(it.draining, 0.0, idle)
    leave = idle + rounded(it.broken * lost_by_kill(it, leave_deadline))
    # Its tail is never dearer than a cut right before the last end.
    leave = where(left > 0, at_most(leave, at_least(wasted_when_stopped(it, now, now + left - 1), idle)), leave)
    leave = where(in_time, leave, INFINITE)

    cut, cut_deadline = where(in_time, INFINITE, cut_at(it, now, limit, settings.margin)), limit
    moments = [at_most(at_least(rounded_up(best_cut(*claims_of(it), now, it.broken)) + it.vacate, earliest), limit)]
    if settings.drain_only:
        moments.append(earliest)
    if any_of(goes_on):  # right after its last end, with the margin that this takes
        moments.append(at_most(at_least(now + left + settings.margin + it.vacate, earliest), limit))
    for moment in moments:
        while_busy = negated(it.believed) | goes_on | (at_least(moment - it.vacate, now) < now + left)
        sooner = where(while_busy, cut_at(it, now, moment, settings.margin), INFINITE)
        cut, cut_deadline = at_most(cut, sooner), where(sooner < cut, moment, cut_deadline)
    if any_of(stated := has_curve(it)):
        curve = StatedCurve(it, now)
        leave = where(stated & in_time, curve.waste(at_least(leave_deadline - it.vacate, now)), leave)
        found, moment = curve.least(earliest, limit)
        cut, cut_deadline = where(stated, found, cut), where(stated, moment, cut_deadline)
    end = now + settings.notice
    killed = everywhere(INFINITE, it.cores) if settings.drain_only else kill
    if settings.notice and not settings.drain_only:
        killed = lost_by_kill(it, end) + where(it.believed, rounded((it.cores - it.used_cpu) * settings.notice), 0.0)
    if any_of(it.doubt > 0):
        leave, cut, killed = (
            rounded(claim + it.doubt * at_least(most_lost(it, until) - claim, 0))
            for claim, until in ((leave, leave_deadline), (cut, cut_deadline), (killed, end))
        )
    return (
        where(it.believed, left, math.nan),
        where(it.believed, drain, math.nan),
        kill,
        leave,
        leave_deadline,
        cut,
        cut_deadline,
        killed,
    )


def _by_lease(it: Columns, now: int, deadline: int) -> Quantity:
    """Return the deadline, or the lease's end where that comes first and is not past already."""
    ends_before = (it.lease_end > now) & (it.lease_end < deadline)
    return where(ends_before, it.lease_end, float(deadline))

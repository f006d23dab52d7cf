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

from dataclasses import dataclass

import numpy as np

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
from drainwise.reclaim.totals.arrays import Mask, Real

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

    @property
    def drained(self) -> Real:
        """Waste when it is ordered to drain: it leaves in time or is cut."""
        return np.minimum(self.leave, self.cut)

    @property
    def least(self) -> Real:
        """Waste of the cheapest way that counts: with what waiting for the cores is worth, where that has a cost."""
        if not self.waiting_cost:
            return np.minimum(self.drained, self.kill)
        found: Real = self._in_cheapest_way((self.leave, self.cut, self.kill))
        return found

    @property
    def waiting(self) -> Real:
        """What waiting for the cores is worth in the cheapest way, in whole core-seconds."""
        if not self.waiting_cost:
            return np.zeros(len(self))
        return np.rint(self.waiting_cost * self.columns.cores * self._in_cheapest_way(self._waits))

    @property
    def drain_time(self) -> Real:
        """Seconds until the cores are back in the cheaper way to drain."""
        found: Real = np.where(self.leave <= self.cut, self.remaining, self.cut_deadline - self.now)
        return found

    @property
    def _waits(self) -> tuple[Real, Real, Real]:
        """Seconds until the cores are back: by leaving, cut and killed; 0 where it does not count."""
        leaves = np.where(self.leave < np.inf, self.remaining, 0.0)
        return leaves, self.cut_deadline - self.now, np.full(len(self), float(self.notice))

    def _in_cheapest_way(self, values: tuple[Real, Real, Real]) -> Real:
        """Return of three values, for leaving, cut and killed, that of the cheapest way, with waiting counted."""
        wastes = np.array([self.leave, self.cut, self.kill])
        best = np.argmin(wastes + self.waiting_cost * self.columns.cores * np.array(self._waits), axis=0)
        found: Real = np.array(values)[best, np.arange(len(self))]
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
    found = np.empty((8, len(columns)))
    for begin in range(0, len(columns), _BLOCK):
        end = min(begin + _BLOCK, len(columns))
        rows = _figures(columns.rows(slice(begin, end)), now, settings)
        for row, figure in enumerate(rows):
            found[row, begin:end] = figure
    return Figures(now, columns, settings.notice, settings.waiting_cost, *found)


def _figures(it: Columns, now: int, settings: ReclaimSettings) -> tuple[Real, ...]:
    """Return the eight columns of `Figures` in their order."""
    left = bounded_remaining(it.last_exp_job_end, now, it.lease_end)
    drain = np.rint(
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
    if settings.drain_only:  # nothing says how long who reports nothing needs
        earliest = np.where(it.silent & it.drains, limit, earliest)
    idle = at_most(drain, it.cores * left)  # whatever it claims, no more cores than its own until it is gone
    spare = at_least(it.vacate, settings.margin)
    goes_on = goes_on_starting(it)
    in_time = it.believed & ~goes_on & (now + left <= limit) & (now + left <= latest - spare)
    idle = np.where(it.draining, 0.0, idle)
    leave = idle + np.rint(it.broken * lost_by_kill(it, leave_deadline))
    # Its tail is never dearer than a cut right before the last end.
    leave = np.where(left > 0, at_most(leave, at_least(wasted_when_stopped(it, now, now + left - 1), idle)), leave)
    leave = np.where(in_time, leave, np.inf)

    cut, cut_deadline = np.where(in_time, np.inf, cut_at(it, now, limit, settings.margin)), limit
    moments = [at_most(at_least(np.ceil(best_cut(*claims_of(it), now, it.broken)) + it.vacate, earliest), limit)]
    if settings.drain_only:
        moments.append(earliest)
    if goes_on.any():  # right after its last end, with the margin that this takes
        moments.append(at_most(at_least(now + left + settings.margin + it.vacate, earliest), limit))
    for moment in moments:
        while_busy = ~it.believed | goes_on | (at_least(moment - it.vacate, now) < now + left)
        sooner = np.where(while_busy, cut_at(it, now, moment, settings.margin), np.inf)
        cut, cut_deadline = np.minimum(cut, sooner), np.where(sooner < cut, moment, cut_deadline)
    if (stated := has_curve(it)).any():
        curve = StatedCurve(it, now)
        leave = np.where(stated & in_time, curve.waste(at_least(leave_deadline - it.vacate, now)), leave)
        found, moment = curve.least(earliest, limit)
        cut, cut_deadline = np.where(stated, found, cut), np.where(stated, moment, cut_deadline)
    end = now + settings.notice
    killed = np.full(len(it), np.inf) if settings.drain_only else kill
    if settings.notice and not settings.drain_only:
        killed = lost_by_kill(it, end) + np.where(it.believed, np.rint((it.cores - it.used_cpu) * settings.notice), 0.0)
    if it.doubt.any():
        leave, cut, killed = (
            np.rint(claim + it.doubt * at_least(most_lost(it, until) - claim, 0))
            for claim, until in ((leave, leave_deadline), (cut, cut_deadline), (killed, end))
        )
    return (
        np.where(it.believed, left, np.nan),
        np.where(it.believed, drain, np.nan),
        kill,
        leave,
        leave_deadline,
        cut,
        cut_deadline,
        killed,
    )


def _by_lease(it: Columns, now: int, deadline: int) -> Real:
    """Return the deadline, or the lease's end where that comes first and is not past already."""
    ends_before = (it.lease_end > now) & (it.lease_end < deadline)
    return np.where(ends_before, it.lease_end, float(deadline))

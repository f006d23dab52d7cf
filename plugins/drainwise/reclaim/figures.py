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

from drainwise.facts.cut_deadline import best_cut, cut_waste
from drainwise.facts.stated_curve import between
from drainwise.facts.waste import (
    at_least,
    at_most,
    bounded_draining_waste,
    bounded_kill_waste,
    bounded_remaining,
    uncommitted_run,
)
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.history import DAY
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Mask, Real, Whole

_OFF_PER_DAY = 0.2
"""How much of the probability of a broken promise a stated curve is off by a day ahead; chosen on MetaCentrum's log."""
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
    kill = _killed(it, now)

    latest = _by_lease(it, now, now + max(settings.notice, min(settings.grace, settings.max_grace)))
    limit = at_most(latest, now + max(settings.notice, settings.horizon))
    # It knows of the order late, and the batch system begins to end it early: both times come on top.
    on_top = it.vacate + settings.order_latency
    soonest = at_least(now + settings.min_grace + on_top, now + settings.notice)
    leave_deadline = at_most(at_least(now + left + settings.margin + on_top, soonest), latest)
    earliest = at_most(soonest, limit)
    if settings.drain_only:  # nothing says how long who reports nothing needs
        earliest = np.where(it.silent & it.drains, limit, earliest)
    idle = at_most(drain, it.cores * left)  # whatever it claims, no more cores than its own until it is gone
    spare = at_least(it.vacate, settings.margin)
    goes_on = _goes_on(it)
    in_time = it.believed & ~goes_on & (now + left <= limit) & (now + left <= latest - spare)
    idle = np.where(it.draining, 0.0, idle)
    leave = idle + np.rint(it.broken * _killed(it, leave_deadline))
    # Its tail is never dearer than a cut right before the last end.
    leave = np.where(left > 0, at_most(leave, at_least(_cut(it, now, now + left - 1), idle)), leave)
    leave = np.where(in_time, leave, np.inf)

    cut, cut_deadline = np.where(in_time, np.inf, _cut_at(it, now, limit, settings.margin)), limit
    moments = [at_most(at_least(np.ceil(best_cut(*_claims(it), now, it.broken)) + it.vacate, earliest), limit)]
    if settings.drain_only:
        moments.append(earliest)
    if goes_on.any():  # right after its last end, with the margin that this takes
        moments.append(at_most(at_least(now + left + settings.margin + it.vacate, earliest), limit))
    for moment in moments:
        while_busy = ~it.believed | goes_on | (at_least(moment - it.vacate, now) < now + left)
        sooner = np.where(while_busy, _cut_at(it, now, moment, settings.margin), np.inf)
        cut, cut_deadline = np.minimum(cut, sooner), np.where(sooner < cut, moment, cut_deadline)
    if (stated := _stated(it)).any():
        curve = _StatedCurve(it, now)
        leave = np.where(stated & in_time, curve.waste(at_least(leave_deadline - it.vacate, now)), leave)
        found, moment = curve.least(earliest, limit)
        cut, cut_deadline = np.where(stated, found, cut), np.where(stated, moment, cut_deadline)
    end = now + settings.notice
    killed = np.full(len(it), np.inf) if settings.drain_only else kill
    if settings.notice and not settings.drain_only:
        killed = _killed(it, end) + np.where(it.believed, np.rint((it.cores - it.used_cpu) * settings.notice), 0.0)
    if it.doubt.any():
        leave, cut, killed = (
            np.rint(claim + it.doubt * at_least(_known(it, until) - claim, 0))
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


def cut_wastes(it: Columns, now: int, deadline: Real, margin: int) -> Real:
    """Return what each pilot wastes from `now` on when it is cut at its `deadline` (UNIX s); margin: the site's, s."""
    found, stated = _cut_at(it, now, deadline, margin), _stated(it)
    if not stated.any():
        return found
    return np.where(stated, _StatedCurve(it, now).waste(at_least(deadline - it.vacate, now)), found)


def _stated(it: Columns) -> Mask:
    found: Mask = it.believed & ~np.isnan(it.curve[:, 0])
    return found


class _StatedCurve:
    """The curves of all rows from `now` (UNIX s) on, each bounded by what the batch system knows; NaN without one."""

    def __init__(self, it: Columns, now: int) -> None:
        self._it, self._now = it, now
        times, idle, lost = (it.curve[:, column::3].T for column in range(3))
        written = it.heartbeat
        idle_now = between([written, *times], [np.zeros(len(it)), *idle], float(now))
        self._times: list[Real] = [np.full(len(it), float(now)), *(at_least(one, now) for one in times)]
        self._idle = [np.zeros(len(it)), *(at_least(one - idle_now, 0) for one in idle)]
        killed = _killed(it, now)
        self._lost = [killed, *(np.where(time > now, one, killed) for time, one in zip(times, lost))]

    def waste(self, moment: Real) -> Real:
        """Return the core-seconds that idle until the pilot is ended at `moment`, and those lost then."""
        idle = at_most(between(self._times, self._idle, moment), self._it.cores * (moment - self._now))
        known = _known(self._it, moment)
        lost = at_most(between(self._times, self._lost, moment), known)
        # The likes that an expectation comes from may end sooner than this one: more so, the longer it looks ahead.
        off = self._it.broken * _OFF_PER_DAY * (moment - self._now) / DAY
        lost = lost + at_most(off, 1) * at_least(_killed(self._it, moment) - lost, 0)
        found: Real = np.rint(np.where(self._it.draining, lost, idle + lost))
        return found

    def least(self, earliest: Real, limit: Real) -> tuple[Real, Real]:
        """Return the least waste of a cut at a deadline within both (UNIX s), and the deadline: at a point or there."""
        early = self._it.vacate
        points = (at_most(at_least(np.ceil(one) + early, earliest), limit) for one in self._times[1:])
        moments = np.array([limit, earliest, *points])
        wastes = np.array([self.waste(at_least(one - early, self._now)) for one in moments])
        best = np.argmin(np.where(np.isnan(wastes), np.inf, wastes), axis=0)
        rows = np.arange(len(best))
        return wastes[best, rows], moments[best, rows]


def _known(it: Columns, until: Real | int) -> Real:
    """Return the most that can be lost, by what the batch system itself knows, when the pilot ends then."""
    known: Real = at_least(uncommitted_run(it.cores, it.started, until), 0.0)
    return known


def _killed(it: Columns, end: Real | int) -> Real:
    """Return the kill waste when the pilot ends at `end` (UNIX s)."""
    claimed = bounded_kill_waste(it.cores, it.add_uncom_time, it.used_cpu, it.last_job_start, it.started, end)
    return np.rint(np.where(it.believed | it.seen, claimed, _known(it, end)))


def _goes_on(it: Columns) -> Mask:
    """Return who starts payloads although it has an order, until it is stopped."""
    found: Mask = ~it.drains & ~it.draining
    return found


def _claims(it: Columns) -> tuple[Whole, Real, Real, Real, Real, Real, Real]:
    """Return what `cut_waste` and `best_cut` reckon with."""
    ends = it.first_exp_job_end, it.last_exp_job_end
    return it.cores, it.used_cpu, it.last_job_start, *ends, it.add_uncom_time, it.add_final_exp_waste


def _cut_at(it: Columns, now: int, deadline: Real, margin: int) -> Real:
    """Return what a cut at the deadline wastes without a curve.

    Who is to have ended by then, but not with the whole margin before that, does so with a probability: of the margin
    the part that it has. It is never dearer than a cut right before its end; who goes on loses what it began since.
    """
    stopped: Real = at_least(deadline - it.vacate, now)
    found = _cut_when_stopped(it, now, stopped, margin)
    if not (goes_on := _goes_on(it)).any():
        return found
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    begun_since = np.where(it.believed, it.cores * at_least(stopped - last, 0), 0.0)
    return np.where(goes_on, at_most(found + begun_since, _known(it, stopped)), found)


def _cut_when_stopped(it: Columns, now: int, stopped: Real, margin: int) -> Real:
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    busy_still: Real = at_most(stopped, at_least(last - 1, now))
    found = _cut(it, now, np.where(it.believed, busy_still, stopped))
    ended = it.believed & (stopped >= last)
    if not ended.any():
        return found
    span = at_least(np.where(_goes_on(it), 0.0, it.vacate), max(1, margin))  # who goes on is stopped at once
    late = at_least(1 - (stopped - last) / span, it.broken) - it.broken
    return np.where(ended, at_most(found, _cut(it, now, last) + np.rint(late * _killed(it, last))), found)


def _cut(it: Columns, now: int, stopped: Real) -> Real:
    """Return what idles until then (wasted anyway by a pilot that drains by itself) and what is lost then, UNIX s.

    That some of what should have ended runs still is a part of it.
    """
    stopped = at_least(stopped, now)
    idle, lost = cut_waste(*_claims(it), now, stopped)
    known = _known(it, stopped)
    lost = at_most(lost + it.broken * at_least(_killed(it, stopped) - lost, 0), known)
    return np.rint(np.where(it.believed, np.where(it.draining, lost, idle + lost), known))


def _by_lease(it: Columns, now: int, deadline: int) -> Real:
    """Return the deadline, or the lease's end where that comes first and is not past already."""
    ends_before = (it.lease_end > now) & (it.lease_end < deadline)
    return np.where(ends_before, it.lease_end, float(deadline))

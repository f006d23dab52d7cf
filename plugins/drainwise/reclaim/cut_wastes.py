"""What a pilot wastes that is ended at a time, and what comes free in it until then: by its claims, or by its curve.

Each is bounded by what the batch system itself knows of the pilot, and carries the price of a promise that is not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drainwise.facts.cut_deadline import cut_waste
from drainwise.facts.stated_curve import between
from drainwise.facts.waste import at_least, at_most, bounded_kill_waste, bounded_remaining, uncommitted_run
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.history import DAY
from drainwise.reclaim.totals.elementwise import any_of, everywhere, negated, rounded, rounded_up, where

if TYPE_CHECKING:
    from drainwise.reclaim.totals.arrays import Mask, Real, Whole
    from drainwise.reclaim.totals.elementwise import Quantity

_OFF_PER_DAY = 0.2
"""How much of the probability of a broken promise a stated curve is off by a day ahead; chosen on MetaCentrum's log."""


def cut_wastes(it: Columns, now: int, deadline: Real, margin: int) -> Quantity:
    """Return what each pilot wastes from `now` on when it is cut at its `deadline` (UNIX s); margin: the site's, s."""
    found, stated = cut_at(it, now, deadline, margin), has_curve(it)
    if not any_of(stated):
        return found
    return where(stated, StatedCurve(it, now).waste(at_least(deadline - it.vacate, now)), found)


def has_curve(it: Columns) -> Quantity:
    """Return who states a curve that is believed."""
    if isinstance(it.curve, tuple):  # of one pilot
        return bool(it.believed) and bool(it.curve)
    found: Mask = it.believed & (it.curve[:, 0] == it.curve[:, 0])
    return found


class StatedCurve:
    """The curves of all rows from `now` (UNIX s) on, each bounded by what the batch system knows; NaN without one."""

    def __init__(self, it: Columns, now: int) -> None:
        self._it, self._now = it, now
        if isinstance(it.curve, tuple):
            times, idle, lost = (it.curve[column::3] for column in range(3))
        else:
            times, idle, lost = (it.curve[:, column::3].T for column in range(3))
        written = it.heartbeat
        idle_now = between([written, *times], [everywhere(0.0, it.cores), *idle], float(now))
        self._times: list[Real] = [everywhere(now, it.cores), *(at_least(one, now) for one in times)]
        self._idle = [everywhere(0.0, it.cores), *(at_least(one - idle_now, 0) for one in idle)]
        killed = lost_by_kill(it, now)
        self._lost = [killed, *(where(time > now, one, killed) for time, one in zip(times, lost))]

    def waste(self, moment: Real) -> Real:
        """Return the core-seconds that idle until the pilot is ended at `moment`, and those lost then."""
        idle = at_most(between(self._times, self._idle, moment), self._it.cores * (moment - self._now))
        known = most_lost(self._it, moment)
        lost = at_most(between(self._times, self._lost, moment), known)
        # The likes that an expectation comes from may end sooner than this one: more so, the longer it looks ahead.
        off = self._it.broken * _OFF_PER_DAY * (moment - self._now) / DAY
        lost = lost + at_most(off, 1) * at_least(lost_by_kill(self._it, moment) - lost, 0)
        found: Real = rounded(where(self._it.draining, lost, idle + lost))
        return found

    def busy_share(self, moment: float) -> Real:
        """Return the share of the cores busy now that should be busy at `moment` (UNIX s), if nothing new starts.

        That is, of what would be lost then if everything ran still, the part that should be lost.
        """
        lost = between(self._times, self._lost, everywhere(moment, self._it.cores))
        found: Real = at_most(at_least(lost / at_least(lost_by_kill(self._it, int(moment)), 1.0), 0.0), 1.0)
        return found

    def least(self, earliest: Real, limit: Real) -> tuple[Real, Real]:
        """Return the least waste of a cut at a deadline within both (UNIX s), and the deadline: at a point or there."""
        early = self._it.vacate
        points = (at_most(at_least(rounded_up(one) + early, earliest), limit) for one in self._times[1:])
        least, best = self.waste(at_least(limit - early, self._now)), limit
        for moment in (earliest, *points):
            waste = self.waste(at_least(moment - early, self._now))
            is_less = waste < least
            least, best = where(is_less, waste, least), where(is_less, moment, best)
        return least, best


def most_lost(it: Columns, until: Real | int) -> Real:
    """Return the most that can be lost, by what the batch system itself knows, when the pilot ends then."""
    known: Real = at_least(uncommitted_run(it.cores, it.started, until), 0.0)
    return known


def lost_by_kill(it: Columns, end: Real | int) -> Quantity:
    """Return the kill waste when the pilot ends at `end` (UNIX s)."""
    claimed = bounded_kill_waste(it.cores, it.add_uncom_time, it.used_cpu, it.last_job_start, it.started, end)
    return rounded(where(it.believed | it.seen, claimed, most_lost(it, end)))


def goes_on_starting(it: Columns) -> Mask:
    """Return who starts payloads although it has an order, until it is stopped."""
    found: Mask = negated(it.drains) & negated(it.draining)
    return found


def claims_of(it: Columns) -> tuple[Whole, Real, Real, Real, Real, Real, Real]:
    """Return what `cut_waste` and `best_cut` reckon with."""
    ends = it.first_exp_job_end, it.last_exp_job_end
    return it.cores, it.used_cpu, it.last_job_start, *ends, it.add_uncom_time, it.add_final_exp_waste


def cut_at(it: Columns, now: int, deadline: Real, margin: int) -> Quantity:
    """Return what a cut at the deadline wastes without a curve.

    Who is to have ended by then, but not with the whole margin before that, does so with a probability: of the margin
    the part that it has. It is never dearer than a cut right before its end; who goes on loses what it began since.
    """
    stopped: Real = at_least(deadline - it.vacate, now)
    found = _cut_when_stopped(it, now, stopped, margin)
    if not any_of(goes_on := goes_on_starting(it)):
        return found
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    begun_since = where(it.believed, it.cores * at_least(stopped - last, 0), 0.0)
    return where(goes_on, at_most(found + begun_since, most_lost(it, stopped)), found)


def _cut_when_stopped(it: Columns, now: int, stopped: Real, margin: int) -> Quantity:
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    busy_still: Real = at_most(stopped, at_least(last - 1, now))
    found = wasted_when_stopped(it, now, where(it.believed, busy_still, stopped))
    ended = it.believed & (stopped >= last)
    if not any_of(ended):
        return found
    span = at_least(where(goes_on_starting(it), 0.0, it.vacate), max(1, margin))  # who goes on is stopped at once
    late = at_least(1 - (stopped - last) / span, it.broken) - it.broken
    return where(
        ended, at_most(found, wasted_when_stopped(it, now, last) + rounded(late * lost_by_kill(it, last))), found
    )


def wasted_when_stopped(it: Columns, now: int, stopped: Real) -> Quantity:
    """Return what idles until then (wasted anyway by a pilot that drains by itself) and what is lost then, UNIX s.

    That some of what should have ended runs still is a part of it.
    """
    stopped = at_least(stopped, now)
    idle, lost = cut_waste(*claims_of(it), now, stopped)
    known = most_lost(it, stopped)
    lost = at_most(lost + it.broken * at_least(lost_by_kill(it, stopped) - lost, 0), known)
    # Of who is seen and no more is known it is what a kill loses now, and its cores until then.
    unknown = where(it.seen, at_most(lost_by_kill(it, now) + it.cores * (stopped - now), known), known)
    return rounded(where(it.believed, where(it.draining, lost, idle + lost), unknown))

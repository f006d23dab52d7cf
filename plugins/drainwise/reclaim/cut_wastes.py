"""What a pilot wastes that is ended at a time, and what comes free in it until then: by its claims, or by its curve.

Each is bounded by what the batch system itself knows of the pilot, and carries the price of a promise that is not kept.
"""

from __future__ import annotations

import numpy as np

from drainwise.facts.cut_deadline import busy_share, cut_waste
from drainwise.facts.stated_curve import between
from drainwise.facts.waste import at_least, at_most, bounded_kill_waste, bounded_remaining, uncommitted_run
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.history import DAY
from drainwise.reclaim.totals.arrays import Mask, Real, Whole

_LOOKS = 12
"""Times between now and the moment at which is looked for what is free."""
_OFF_PER_DAY = 0.2
"""How much of the probability of a broken promise a stated curve is off by a day ahead; chosen on MetaCentrum's log."""


def cut_wastes(it: Columns, now: int, deadline: Real, margin: int) -> Real:
    """Return what each pilot wastes from `now` on when it is cut at its `deadline` (UNIX s); margin: the site's, s."""
    found, stated = cut_at(it, now, deadline, margin), has_curve(it)
    if not stated.any():
        return found
    return np.where(stated, StatedCurve(it, now).waste(at_least(deadline - it.vacate, now)), found)


def has_curve(it: Columns) -> Mask:
    """Return who states a curve that is believed."""
    found: Mask = it.believed & ~np.isnan(it.curve[:, 0])
    return found


class StatedCurve:
    """The curves of all rows from `now` (UNIX s) on, each bounded by what the batch system knows; NaN without one."""

    def __init__(self, it: Columns, now: int) -> None:
        self._it, self._now = it, now
        times, idle, lost = (it.curve[:, column::3].T for column in range(3))
        written = it.heartbeat
        idle_now = between([written, *times], [np.zeros(len(it)), *idle], float(now))
        self._times: list[Real] = [np.full(len(it), float(now)), *(at_least(one, now) for one in times)]
        self._idle = [np.zeros(len(it)), *(at_least(one - idle_now, 0) for one in idle)]
        killed = lost_by_kill(it, now)
        self._lost = [killed, *(np.where(time > now, one, killed) for time, one in zip(times, lost))]

    def waste(self, moment: Real) -> Real:
        """Return the core-seconds that idle until the pilot is ended at `moment`, and those lost then."""
        idle = at_most(between(self._times, self._idle, moment), self._it.cores * (moment - self._now))
        known = most_lost(self._it, moment)
        lost = at_most(between(self._times, self._lost, moment), known)
        # The likes that an expectation comes from may end sooner than this one: more so, the longer it looks ahead.
        off = self._it.broken * _OFF_PER_DAY * (moment - self._now) / DAY
        lost = lost + at_most(off, 1) * at_least(lost_by_kill(self._it, moment) - lost, 0)
        found: Real = np.rint(np.where(self._it.draining, lost, idle + lost))
        return found

    def busy_share(self, moment: float) -> Real:
        """Return the share of the cores busy now that should be busy at `moment` (UNIX s), if nothing new starts.

        That is, of what would be lost then if everything ran still, the part that should be lost.
        """
        lost = between(self._times, self._lost, np.full(len(self._it), float(moment)))
        found: Real = np.clip(lost / at_least(lost_by_kill(self._it, int(moment)), 1.0), 0.0, 1.0)
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


def most_lost(it: Columns, until: Real | int) -> Real:
    """Return the most that can be lost, by what the batch system itself knows, when the pilot ends then."""
    known: Real = at_least(uncommitted_run(it.cores, it.started, until), 0.0)
    return known


def most_wasted(it: Columns, now: int, stopped: Real) -> Real:
    """Return the most that is wasted from `now` on by who is stopped then (UNIX s), whatever its payloads do.

    What a kill loses now is known where its node sees its payloads, and nothing but its cores comes on top.
    """
    known = most_lost(it, stopped)
    if not it.seen.any():
        return known
    return np.where(it.seen, at_most(lost_by_kill(it, now) + it.cores * (stopped - now), known), known)


def lost_by_kill(it: Columns, end: Real | int) -> Real:
    """Return the kill waste when the pilot ends at `end` (UNIX s)."""
    claimed = bounded_kill_waste(it.cores, it.add_uncom_time, it.used_cpu, it.last_job_start, it.started, end)
    return np.rint(np.where(it.believed | it.seen, claimed, most_lost(it, end)))


def goes_on_starting(it: Columns) -> Mask:
    """Return who starts payloads although it has an order, until it is stopped."""
    found: Mask = ~it.drains & ~it.draining
    return found


def claims_of(it: Columns) -> tuple[Whole, Real, Real, Real, Real, Real, Real]:
    """Return what `cut_waste` and `best_cut` reckon with."""
    ends = it.first_exp_job_end, it.last_exp_job_end
    return it.cores, it.used_cpu, it.last_job_start, *ends, it.add_uncom_time, it.add_final_exp_waste


def cut_at(it: Columns, now: int, deadline: Real, margin: int) -> Real:
    """Return what a cut at the deadline wastes without a curve.

    Who is to have ended by then, but not with the whole margin before that, does so with a probability: of the margin
    the part that it has. It is never dearer than a cut right before its end; who goes on loses what it began since.
    """
    stopped: Real = at_least(deadline - it.vacate, now)
    found = _cut_when_stopped(it, now, stopped, margin)
    if not (goes_on := goes_on_starting(it)).any():
        return found
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    begun_since = np.where(it.believed, it.cores * at_least(stopped - last, 0), 0.0)
    return np.where(goes_on, at_most(found + begun_since, most_lost(it, stopped)), found)


def _cut_when_stopped(it: Columns, now: int, stopped: Real, margin: int) -> Real:
    last: Real = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    busy_still: Real = at_most(stopped, at_least(last - 1, now))
    found = wasted_when_stopped(it, now, np.where(it.believed, busy_still, stopped))
    ended = it.believed & (stopped >= last)
    if not ended.any():
        return found
    span = at_least(np.where(goes_on_starting(it), 0.0, it.vacate), max(1, margin))  # who goes on is stopped at once
    late = at_least(1 - (stopped - last) / span, it.broken) - it.broken
    return np.where(
        ended, at_most(found, wasted_when_stopped(it, now, last) + np.rint(late * lost_by_kill(it, last))), found
    )


def wasted_when_stopped(it: Columns, now: int, stopped: Real) -> Real:
    """Return what idles until then (wasted anyway by a pilot that drains by itself) and what is lost then, UNIX s.

    That some of what should have ended runs still is a part of it.
    """
    stopped = at_least(stopped, now)
    idle, lost = cut_waste(*claims_of(it), now, stopped)
    known = most_lost(it, stopped)
    lost = at_most(lost + it.broken * at_least(lost_by_kill(it, stopped) - lost, 0), known)
    unknown = most_wasted(it, now, stopped)
    return np.rint(np.where(it.believed, np.where(it.draining, lost, idle + lost), unknown))


class FreeAhead:
    """What comes free in each pilot from `now` until `due` (UNIX s), in chunks of so many cores, if nothing new starts.

    can_return: cores that each pilot can give back. taken: cores of each that others get, the first that come free. By
    the curves that pilots state, else by their other claims; of a pilot that is not believed nothing is expected.
    """

    def __init__(self, it: Columns, can_return: Whole, taken: Whole, now: int, due: int, chunk: int) -> None:
        self._times = np.linspace(now, max(now, due), _LOOKS + 1)
        stated = has_curve(it)
        curve = StatedCurve(it, now) if stated.any() else None
        claims = it.cores, it.used_cpu, it.first_exp_job_end, it.last_exp_job_end, it.add_final_exp_waste
        shares = []
        for moment in self._times.tolist():
            share = busy_share(*claims, now, moment)
            shares.append(share if curve is None else np.where(stated, curve.busy_share(moment), share))
        busy = it.used_cpu * np.array(shares)
        free = np.minimum(it.cores - np.minimum.accumulate(busy, axis=0), can_return) - taken
        free = np.where(it.believed, np.maximum(free, 0.0), 0.0)
        self._chunks: Whole = np.floor(free / chunk + 1e-9).astype(np.int64)
        idle = np.maximum(free - self._chunks * chunk, 0.0) * (chunk > 1)
        each = idle[:-1] * np.diff(self._times)[:, None]  # what comes free later on the way idles from the next look on
        self._idled = np.concatenate([np.zeros((1, len(it.cores))), np.cumsum(each, axis=0)])

    def chunks(self, row: int) -> int:
        """Return how many chunks the pilot of that row should have given back by the moment."""
        return int(self._chunks[-1, row])

    def idle(self, row: int) -> Real:
        """Return the core-seconds that idle until 0, 1, 2, … chunks of the pilot are free."""
        found: Real = np.rint(self._idled[self._looks(row), row])
        return found

    def back(self, row: int) -> list[int]:
        """Return when 0, 1, 2, … chunks of the pilot should be free, UNIX s."""
        return [int(-(-moment // 1)) for moment in self._times[self._looks(row)]]

    def _looks(self, row: int) -> Whole:
        found: Whole = np.searchsorted(self._chunks[:, row], np.arange(self.chunks(row) + 1))
        return found

"""Calculate the metrics of many pilots at once, and the expected waste of each way to end each of them.

Per pilot there are four ways, and the cores must be back within the horizon, else a way does not count:
  kill   after the site's shortest notice;
  leave  ordered to drain, it leaves by itself when its last payload ends, with the whole margin before its deadline;
         what ends later may be stopped first: pilots as well as batch systems begin with that before the deadline;
  commit a cut right after the next time that the pilot saves its work, by itself or because the order asks it to;
  cut    ordered to drain, it is cut at a deadline: when so many of its payloads have ended that waiting for more is not
         worth it (`Claims.best_cut`), or where nobody is killed at once when the least grace is over, or at the limit,
         whatever should waste least.
Who does not drain by an order (`drains`) never leaves by it. What its ended payloads leave free it fills again, and a
cut costs that too.
So the cheapest way of each pilot is the cheapest of these, and the cheapest set is made of pilots ended in that way.

What each way wastes comes from a pilot's claims or from the curve that it states. It is bounded by what the batch
system itself knows, and carries the price of a promise that is not kept. The formulas serve arrays of pilots as well as
the numbers of one, for which numpy is not imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from drainwise.facts.cut_deadline import Claims, between
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

if TYPE_CHECKING:
    from drainwise.facts.waste import Quantity
    from drainwise.reclaim.choose.problem import Mask, Real

FIGURES = (
    "remaining",
    "draining_waste",
    "kill_waste",
    "leave",
    "leave_deadline",
    "cut",
    "cut_deadline",
    "kill",
    "commits",
)
"""Those of each pilot, in the order of `row_of_figures`."""
_OFF_PER_DAY = 0.2
"""How much of the probability of a broken promise a stated curve is off by a day ahead; chosen on MetaCentrum's log."""


def where(condition: Quantity, yes: Quantity, no: Quantity) -> Quantity:
    """Return `yes` where the condition holds, else `no`."""
    if isinstance(condition, bool):
        return yes if condition else no
    import numpy as np  # noqa: PLC0415 - there are arrays, so it is there

    return np.where(condition, yes, no)


def _negated(condition: Quantity) -> Quantity:
    return condition ^ True


def _any_of(condition: Quantity) -> bool:
    return condition if isinstance(condition, bool) else bool(condition.any())


def _rounded(value: Quantity) -> Quantity:
    """Return the nearest whole number, the even one of two, as a real one."""
    if hasattr(value, "round"):
        return value.round()
    return float(round(value)) if math.isfinite(value) else value


def _rounded_up(value: Quantity) -> Quantity:
    """Return the least whole number that is not less, as a real one."""
    if isinstance(value, float):
        return float(math.ceil(value)) if math.isfinite(value) else value
    import numpy as np  # noqa: PLC0415 - there are arrays, so it is there

    return np.ceil(value)


def _everywhere(value: float, like: Quantity) -> Quantity:
    """Return the value, as often as `like` has elements."""
    return value + like * 0.0


@dataclass(frozen=True)
class Figures:
    """Rows as in `columns`, calculated for `now` (UNIX s); wastes in whole core-seconds, remaining in s.

    remaining, draining_waste and kill_waste are the metrics; of a pilot that is not believed remaining and draining
    waste are NaN. leave, cut and kill are what the three ways waste, infinite where a way does not count; the deadlines
    are those of the orders (UNIX s). commits: the cut is right after a save. notice: until a kill, s. waiting_cost:
    wasted core-seconds that a core-second of waiting for the cores is worth.
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
    commits: Mask

    def __len__(self) -> int:
        return len(self.columns)

    def some(self, rows: Sequence[int]) -> Figures:
        """Return the figures of these rows."""
        import numpy as np  # noqa: PLC0415 - the figures of one pilot need none

        which = np.array(rows, dtype=np.int64)
        columns = self.columns.rows(which)
        return replace(self, columns=columns, **{name: getattr(self, name)[which] for name in FIGURES})

    @property
    def drained(self) -> Real:
        """Waste when it is ordered to drain: it leaves in time or is cut."""
        return self.leave.clip(None, self.cut)

    @property
    def least(self) -> Real:
        """Waste of the cheapest way that counts: with what waiting for the cores is worth, where that has a cost."""
        return self._cheapest[0]

    @property
    def price(self) -> Real:
        """Its waste, and what waiting for the cores is worth, in whole core-seconds."""
        waste, waiting = self._cheapest
        found: Real = waste + waiting.round()
        return found

    @property
    def _cheapest(self) -> tuple[Real, Real]:
        """Waste of the cheapest way of each, and what waiting for its cores is worth."""
        import numpy as np  # noqa: PLC0415 - the figures of one pilot need none

        leaves, killed = np.where(self.leave < math.inf, self.remaining, 0.0), np.full(len(self), float(self.notice))
        waits = np.array((leaves, self.cut_deadline - self.now, killed)) * self.waiting_cost * self.columns.cores
        wastes = np.array((self.leave, self.cut, self.kill))
        way = (wastes + waits).argmin(axis=0), np.arange(len(self))
        return wastes[way], waits[way]


def figures_of(columns: Columns, now: int, settings: ReclaimSettings) -> Figures:
    """Return the figures at `now` (UNIX s)."""
    return Figures(now, columns, settings.notice, settings.waiting_cost, *row_of_figures(columns, now, settings))


def row_of_figures(it: Columns, now: int, settings: ReclaimSettings) -> tuple[Quantity, ...]:
    """Return the nine columns of `Figures` in their order, at `now` (UNIX s); of one pilot nine numbers."""
    left = bounded_remaining(it.last_exp_job_end, now, it.lease_end)
    drain = _rounded(
        bounded_draining_waste(it.cores, it.used_cpu, it.first_exp_job_end, it.add_final_exp_waste, now, it.lease_end)
    )
    kill = lost_by_kill(it, now)

    latest = now + max(settings.notice, min(settings.grace, settings.max_grace))
    latest = where((it.lease_end > now) & (it.lease_end < latest), it.lease_end, float(latest))
    limit = at_most(latest, now + max(settings.notice, settings.horizon))
    # It knows of the order late, and the batch system begins to end it early: both times come on top.
    on_top = it.vacate + settings.order_latency
    soonest = at_least(now + it.least_grace + on_top, now + settings.notice)
    if settings.need_left is not None:
        limit = at_most(limit, at_least(now + settings.need_left, soonest))
    leave_deadline = at_most(at_least(now + left + settings.margin + on_top, soonest), latest)
    earliest = at_most(soonest, limit)
    idle = at_most(drain, it.cores * left)  # whatever it claims, no more cores than its own until it is gone
    spare = at_least(it.vacate, settings.margin)
    goes_on = goes_on_starting(it)
    in_time = it.believed & _negated(goes_on) & (now + left <= limit) & (now + left <= latest - spare)
    idle = where(it.draining, 0.0, idle)
    leave = idle + _rounded(it.broken * lost_by_kill(it, leave_deadline))
    # Its tail is never dearer than a cut right before the last end.
    leave = where(left > 0, at_most(leave, at_least(wasted_when_stopped(it, now, now + left - 1), idle)), leave)
    leave = where(in_time, leave, math.inf)

    cut, cut_deadline = where(in_time, math.inf, cut_at(it, now, limit, settings.margin)), limit
    moments = [at_most(at_least(_rounded_up(claims_of(it).best_cut(now, it.broken)) + it.vacate, earliest), limit)]
    if settings.drain_only:
        moments.append(earliest)
    if _any_of(goes_on):  # right after its last end, with the margin that this takes
        moments.append(at_most(at_least(now + left + settings.margin + it.vacate, earliest), limit))
    for moment in moments:
        while_busy = _negated(it.believed) | goes_on | (at_least(moment - it.vacate, now) < now + left)
        sooner = where(while_busy, cut_at(it, now, moment, settings.margin), math.inf)
        cut, cut_deadline = at_most(cut, sooner), where(sooner < cut, moment, cut_deadline)
    if _any_of(stated := has_curve(it)):
        curve = StatedCurve(it, now)
        leave = where(stated & in_time, curve.waste(at_least(leave_deadline - it.vacate, now)), leave)
        found, moment = curve.least(earliest, limit)
        cut, cut_deadline = where(stated, found, cut), where(stated, moment, cut_deadline)
    commits = it.cores < 0
    if _any_of(saves(it)):
        for end in after_saves(it, now, earliest):
            moment = at_most(at_least(_rounded_up(end), earliest), limit)
            saved = wasted_after_save(it, now, at_least(moment - it.vacate, now))
            commits = commits | (saved < cut)
            cut, cut_deadline = at_most(cut, saved), where(saved < cut, moment, cut_deadline)
    end = now + settings.notice
    killed = _everywhere(math.inf, it.cores) if settings.drain_only else kill
    if settings.notice and not settings.drain_only:
        killed = lost_by_kill(it, end) + where(it.believed, _rounded((it.cores - it.used_cpu) * settings.notice), 0.0)
    if _any_of(it.doubt > 0):
        leave, cut, killed = (
            _rounded(claim + it.doubt * at_least(uncommitted_run(it.cores, it.started, until) - claim, 0))
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
        commits,
    )


def cut_wastes(it: Columns, now: int, deadline: Real, margin: int) -> Quantity:
    """Return what each pilot wastes from `now` on when it is cut at its `deadline` (UNIX s); margin: the site's, s."""
    found = cut_at(it, now, deadline, margin)
    if _any_of(stated := has_curve(it)):
        found = where(stated, StatedCurve(it, now).waste(at_least(deadline - it.vacate, now)), found)
    if _any_of(saves(it)):
        found = at_most(found, wasted_after_save(it, now, at_least(deadline - it.vacate, now)))
    return found


def saves(it: Columns) -> Quantity:
    """Return who is known to save its work, by itself or on demand."""
    return (it.next_save < math.inf) | (it.writing < math.inf)


def has_curve(it: Columns) -> Quantity:
    """Return who states a curve that is believed."""
    return it.believed & (it.curve[0] == it.curve[0])


class StatedCurve:
    """The curves of all rows from `now` (UNIX s) on, each bounded by what the batch system knows; NaN without one."""

    def __init__(self, it: Columns, now: int) -> None:
        self._it, self._now = it, now
        times, idle, lost = (it.curve[column::3] for column in range(3))
        idle_now = between([it.heartbeat, *times], [_everywhere(0.0, it.cores), *idle], float(now))
        self._times: list[Real] = [_everywhere(now, it.cores), *(at_least(one, now) for one in times)]
        self._idle = [_everywhere(0.0, it.cores), *(at_least(one - idle_now, 0) for one in idle)]
        killed = lost_by_kill(it, now)
        self._lost = [killed, *(where(time > now, one, killed) for time, one in zip(times, lost))]

    def waste(self, moment: Real) -> Quantity:
        """Return the core-seconds that idle until the pilot is ended at `moment`, and those lost then."""
        idle = at_most(between(self._times, self._idle, moment), self._it.cores * (moment - self._now))
        known = most_lost(self._it, moment)
        lost = at_most(between(self._times, self._lost, moment), known)
        # The likes that an expectation comes from may end sooner than this one: more so, the longer it looks ahead.
        off = self._it.broken * _OFF_PER_DAY * (moment - self._now) / DAY
        lost = lost + at_most(off, 1) * at_least(lost_by_kill(self._it, moment) - lost, 0)
        return _rounded(where(self._it.draining, lost, idle + lost))

    def busy_share(self, moment: float) -> Quantity:
        """Return the share of the cores busy now that should be busy at `moment` (UNIX s), if nothing new starts.

        That is, of what would be lost then if everything ran still, the part that should be lost.
        """
        lost = between(self._times, self._lost, _everywhere(moment, self._it.cores))
        return at_most(at_least(lost / at_least(lost_by_kill(self._it, int(moment)), 1.0), 0.0), 1.0)

    def least(self, earliest: Real, limit: Real) -> tuple[Real, Real]:
        """Return the least waste of a cut at a deadline within both (UNIX s), and the deadline: at a point or there."""
        early = self._it.vacate
        points = (at_most(at_least(_rounded_up(one) + early, earliest), limit) for one in self._times[1:])
        least, best = self.waste(at_least(limit - early, self._now)), limit
        for moment in (earliest, *points):
            waste = self.waste(at_least(moment - early, self._now))
            is_less = waste < least
            least, best = where(is_less, waste, least), where(is_less, moment, best)
        return least, best


_LATE_SAVE, _LEAST_LATE = 0.05, 15
"""A save is waited for a part of the time between two longer than it should take, and at least so many seconds."""


def _saves(it: Columns) -> tuple[Quantity, Quantity, Quantity]:
    """Return how long one takes on demand (0 where that is not known), the time between two, how late one may come."""
    period = at_least(it.next_save - it.saved, 1.0)
    return where(it.writing < math.inf, it.writing, 0.0), period, at_least(period * _LATE_SAVE, _LEAST_LATE)


def after_saves(it: Columns, now: int, earliest: Quantity) -> tuple[Quantity, Quantity]:
    """Return the first deadlines from `earliest` on (UNIX s) after a save of its own of each, and after one on demand.

    Infinite for none.
    """
    writing, period, late = _saves(it)
    first, step = it.next_save + writing + late + it.vacate, where(it.next_save < math.inf, period, 1.0)
    own = first + step * _rounded_up(at_least(earliest - first, 0.0) / step)
    return own, now + it.writing + _LEAST_LATE + it.vacate


def wasted_after_save(it: Columns, now: int, stopped: Real) -> Quantity:
    """Return what each wastes that is stopped then (UNIX s) and saves before; infinite for who does not.

    Its cores are taken to write for as long as that takes on demand, and what idles until then idles as it drains. What
    it does after its last save is lost: where its payloads save one after the other, those that did so first have gone
    on for as long as they had more unsaved than the last one. That the save does not come is a part of it.
    """
    writing, period, late = _saves(it)
    ready = stopped - late - writing - it.next_save
    by_itself, asked = ready >= 0, now + it.writing + _LEAST_LATE <= stopped
    after = where(by_itself, where(by_itself, ready, 0.0) % where(by_itself, period, 1.0) + late, math.inf)
    apart = where(it.believed, at_most(it.add_uncom_time, it.cores * at_least(it.last_job_start - it.saved, 0)), 0.0)
    after = at_most(after + apart / it.cores, where(asked, float(_LEAST_LATE), math.inf))
    idle = where(it.believed & _negated(it.draining), claims_of(it).cut_waste(now, stopped)[0], 0.0)
    killed = lost_by_kill(it, stopped)
    lost = at_most(it.cores * (writing + after) + it.restart, killed)
    return where(by_itself | asked, _rounded(idle + lost + it.broken * (killed - lost)), math.inf)


def most_lost(it: Columns, until: Real | int) -> Quantity:
    """Return the most that can be lost, by what the batch system itself knows, when the pilot ends then."""
    since_save = uncommitted_run(it.cores, it.saved, until) + it.restart
    return at_least(at_most(uncommitted_run(it.cores, it.started, until), since_save), 0.0)


def lost_by_kill(it: Columns, end: Real | int) -> Quantity:
    """Return the kill waste when the pilot ends at `end` (UNIX s)."""
    claimed = bounded_kill_waste(it.cores, it.add_uncom_time, it.used_cpu, it.last_job_start, it.started, end)
    most = most_lost(it, end)
    return _rounded(where(it.believed | it.seen, at_most(claimed + it.restart, most), most))


def goes_on_starting(it: Columns) -> Quantity:
    """Return who starts payloads although it has an order, until it is stopped."""
    return _negated(it.drains | it.draining)


def claims_of(it: Columns) -> Claims:
    """Return what each pilot claims."""
    ends = it.first_exp_job_end, it.last_exp_job_end
    return Claims(it.cores, it.used_cpu, it.last_job_start, *ends, it.add_uncom_time, it.add_final_exp_waste)


def cut_at(it: Columns, now: int, deadline: Real, margin: int) -> Quantity:
    """Return what a cut at the deadline wastes without a curve.

    Who is to have ended by then, but not with the whole margin before that, does so with a probability: of the margin
    the part that it has. It is never dearer than a cut right before its end; who goes on loses what it began since.
    """
    stopped, goes_on = at_least(deadline - it.vacate, now), goes_on_starting(it)
    last = bounded_remaining(it.last_exp_job_end, now, it.lease_end) + now
    busy_still = at_most(stopped, at_least(last - 1, now))
    found = wasted_when_stopped(it, now, where(it.believed, busy_still, stopped))
    if _any_of(ended := it.believed & (stopped >= last)):
        span = at_least(where(goes_on, 0.0, it.vacate), max(1, margin))  # who goes on is stopped at once
        late = at_least(1 - (stopped - last) / span, it.broken) - it.broken
        by_itself = wasted_when_stopped(it, now, last) + _rounded(late * lost_by_kill(it, last))
        found = where(ended, at_most(found, by_itself), found)
    if not _any_of(goes_on):
        return found
    begun_since = where(it.believed, it.cores * at_least(stopped - last, 0), 0.0)
    return where(goes_on, at_most(found + begun_since, most_lost(it, stopped)), found)


def wasted_when_stopped(it: Columns, now: int, stopped: Real) -> Quantity:
    """Return what idles until then (wasted anyway by a pilot that drains by itself) and what is lost then, UNIX s.

    That some of what should have ended runs still is a part of it.
    """
    stopped = at_least(stopped, now)
    idle, lost = claims_of(it).cut_waste(now, stopped)
    known = most_lost(it, stopped)
    lost = at_most(lost + it.broken * at_least(lost_by_kill(it, stopped) - lost, 0), known)
    # Of who is seen and no more is known it is what a kill loses now, and its cores until then.
    unknown = where(it.seen, at_most(lost_by_kill(it, now) + it.cores * (stopped - now), known), known)
    return _rounded(where(it.believed, where(it.draining, lost, idle + lost), unknown))

"""The clairvoyant that may wait: it knows what every pilot will run, and when to order which to end by when.

What it foresees is what happens without further orders. Payloads that it destroys come back into the queue and start
elsewhere, so it looks again at each step at which it gives orders. It is no proven bound of what waiting can save, but
never wastes more than the best that can be decided at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drainwise.reclaim.choose.problem import Real
from drainwise_simulate.policies.exact_totals import cheapest_of_total, total_to_give
from drainwise_simulate.policies.stepwise import Foreseen, StepDecision, StepOrder, StepView, StepwisePolicy


@dataclass(frozen=True)
class Way:
    """A way to end a pilot: ordered at `begin`, gone by `end` (UNIX s), at a true waste in core-seconds.

    begin: None where it ends by itself without an order.
    """

    waste: float
    begin: int | None
    end: float


class Foresight:
    """The better of waiting for the best steps and of deciding all at once, by what each will really waste."""

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        waiting, at_once = Foreseeing(may_wait=True), Foreseeing(may_wait=False)
        if view.now > view.begun:
            return waiting.step(view)
        sizes = np.array([one.cores for one in view.snapshot().pilots], dtype=np.int64)
        total = total_to_give(sizes, view.wanted, view.wanted)

        def worth(policy: StepwisePolicy) -> tuple[int, float]:
            """Cores short of what every policy gives at once, then waste."""
            missing, waste = view.tried(policy)
            return max(0, total - (view.wanted - missing)), waste

        return min((waiting, at_once), key=worth).step(view)


@dataclass(frozen=True)
class Foreseeing:
    """At each step: the cheapest set for what is missing, each pilot in its best way; orders that are due are given."""

    may_wait: bool

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        latest = view.due + view.settings.margin + view.settings.vacate + view.settings.order_latency
        pilots = view.snapshot().pilots
        left = view.left(pilots)
        free = [one for one in pilots if one.deadline is None]
        sizes = np.array([one.cores for one in free], dtype=np.int64)
        total = total_to_give(sizes, left, left)
        if not total:
            return StepDecision(again=view.due)
        future, steps = view.foreseen(latest), range(view.now, view.due + 1, view.usual)
        ways = []
        for one in free:
            lease = latest if one.lease_end is None else max(view.now, min(latest, one.lease_end))
            if self.may_wait:
                ways.append(best_way(one.cores, future[one.run], steps, lease, view.due))
            else:
                ways.append(best_way(one.cores, replace(future[one.run], gone=None), steps[:1], lease, view.due))
        waste = np.array([round(way.waste) for way in ways], dtype=float)
        chosen = cheapest_of_total(sizes, waste, total).tolist()
        begins = [way.begin for way in (ways[row] for row in chosen) if way.begin is not None]
        now = [row for row in chosen if ways[row].begin == view.now]
        orders = tuple(StepOrder(free[row].run, -int(-ways[row].end // 1), round(ways[row].waste)) for row in now)
        return StepDecision(orders, again=min((one for one in begins if one > view.now), default=view.due))


def best_way(cores: int, foreseen: Foreseen, steps: range, latest: float, due: int) -> Way:
    """Return the least wasteful way to end a pilot: by itself before `due`, or ordered at one of `steps`.

    latest: the last deadline that it may get. Of equals the one that orders last.
    """
    if foreseen.gone is not None and foreseen.gone <= due:
        return Way(0.0, None, foreseen.gone)
    rows = np.array(foreseen.payloads, dtype=float).reshape(-1, 3)
    return min(
        (Way(*_from(cores, rows, begin, latest)) for begin in steps if begin <= latest),
        key=lambda way: (way.waste, -(way.begin or 0)),
    )


def _from(cores: int, rows: Real, begin: int, latest: float) -> tuple[float, int, float]:
    """Return the waste of an order at `begin`, with the best end: where a payload ends, or at once."""
    there = rows[(rows[:, 1] <= begin) & (rows[:, 2] > begin)]
    width, start, end = there[np.argsort(there[:, 2])].T
    # Ended with the pilot at each payload's end in turn; the first place is at once.
    ends = np.concatenate([[begin], end])
    done = np.concatenate([[0.0], np.cumsum(width)])
    ended = np.concatenate([[0.0], np.cumsum(width * end)])
    begun = np.concatenate([[0.0], np.cumsum(width * start)])
    idle = (cores - done[-1]) * (ends - begin) + done * ends - ended
    lost = (done[-1] - done) * ends - (begun[-1] - begun)
    waste = np.where(ends <= latest, idle + lost, np.inf)
    # What ends at the same moment as another is gone with it: the later place has the smaller waste.
    best = len(waste) - 1 - int(np.argmin(waste[::-1]))
    return float(waste[best]), begin, float(ends[best])

"""The clairvoyant: the best one-shot choice of whole pilots, by who knows when every payload really ends.

Nobody can know that. Of all policies that decide once, at the moment of the demand, none wastes less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidates, Option
from drainwise.reclaim.plan import Need
from drainwise_simulate.policies.choosers import Chosen
from drainwise_simulate.policies.exact_totals import cheapest_of_total, total_to_give

Truth = tuple[int, float, float]
"""Of one running payload: its cores, its start and its true end, UNIX s."""


def waste_when_ended(cores: int, payloads: Sequence[Truth], now: float, deadline: float) -> float:
    """Return core-seconds idle from `now` until the pilot is gone, and lost when it ends at `deadline`; UNIX s.

    It starts nothing meanwhile, and goes by itself when its last payload has ended.
    """
    last = max((end for _, _, end in payloads), default=now)
    gone = min(deadline, max(last, now))
    waste = (cores - sum(width for width, _, _ in payloads)) * (gone - now)
    for width, start, end in payloads:
        waste += width * (gone - end) if end <= gone else width * (gone - start)
    return waste


def best_end(cores: int, payloads: Sequence[Truth], now: float, earliest: float, latest: float) -> tuple[float, float]:
    """Return the least waste in core-seconds of ending a pilot between `earliest` and `latest`, and when.

    Waste only falls where a payload ends; of equals the latest, so that what ends just then ends by itself.
    """
    ends = [earliest, *(end for _, _, end in payloads if earliest < end <= latest)]
    return min(((waste_when_ended(cores, payloads, now, end), end) for end in ends), key=lambda one: (one[0], -one[1]))


@dataclass(frozen=True)
class Clairvoyant:
    """A `Chooser` that knows the true ends. truth: by run. latest: last deadline that anyone may give."""

    truth: Mapping[str, Sequence[Truth]]
    latest: int

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Chooser`: the same total as every other, at the least true waste."""
        now, sizes = candidates.figures.now, candidates.sizes
        earliest = now + candidates.settings.notice
        found = []
        for pilot in candidates.pilots:
            latest = self.latest if pilot.lease_end is None else max(earliest, min(self.latest, pilot.lease_end))
            found.append(best_end(pilot.cores, self.truth[pilot.run], now, earliest, latest))
        waste = np.array([round(one) for one, _ in found], dtype=float)
        total = total_to_give(sizes, need.cores, need.most)
        rows = cheapest_of_total(sizes, waste, total)
        return tuple(self._choice(candidates, row, *found[row]) for row in rows.tolist())

    def _choice(self, candidates: Candidates, row: int, waste: float, end: float) -> Chosen:
        pilot, now = candidates.pilots[row], candidates.figures.now
        last = max((end for _, _, end in self.truth[pilot.run]), default=float(now))
        kind = KILL if end <= now + candidates.settings.notice else LEAVE if end >= last else CUT
        deadline = -int(-end // 1)  # not before what ends by itself at that moment
        return Chosen(candidates[row], Option(kind, round(waste), deadline, deadline))

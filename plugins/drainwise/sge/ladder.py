"""Grid Engine's priorities for dates: of the jobs that wait, the sooner one should start, the higher it stands.

A date does not fit in the few hundred steps that `qsub -p` has, so only the order of those that wait is told.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping

_STEP = 8
"""Room left between neighbours, so that later ones find a place without anybody moving."""


class Ladder:
    """The steps from `highest` down to `lowest`, and who stands where. Pure: knows ids and dates (UNIX s)."""

    def __init__(self, highest: int, lowest: int) -> None:
        self._highest, self._lowest = highest, min(highest, lowest)
        self._dates: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def step_for(self, date: float) -> int:
        """Where one with this date is to stand now: between its neighbours, or on a neighbour's step.

        Nobody there yet: in the middle. First or last: at some distance, for those that come later.
        """
        order = sorted(self._steps, key=lambda one: self._dates[one])
        place = bisect.bisect_right([self._dates[one] for one in order], date)
        before, after = order[:place][-1:], order[place : place + 1]
        if not order:
            return (self._highest + self._lowest) // 2
        if not before:
            return min(self._highest, self._steps[after[0]] + _STEP)
        if not after:
            return max(self._lowest, self._steps[before[0]] - _STEP)
        return (self._steps[before[0]] + self._steps[after[0]]) // 2

    def put(self, one: str, date: float, step: int) -> None:
        """One stands there now."""
        self._dates[one], self._steps[one] = date, step

    def date_of(self, one: str) -> float:
        """The date of one who waits."""
        return self._dates[one]

    def keep(self, waiting: Collection[str]) -> None:
        """Only these wait still."""
        for one in set(self._steps) - set(waiting):
            del self._steps[one], self._dates[one]

    def moved(self, dates: Mapping[str, float]) -> dict[str, int]:
        """New dates: who must step down now, and where to; `put` says that they have.

        Nobody steps up: Grid Engine lets users lower the priorities of their jobs and refuses to raise them.
        """
        self._dates.update({one: date for one, date in dates.items() if one in self._steps})
        steps: dict[str, int] = {}
        above = self._highest + 1
        for one in sorted(self._steps, key=lambda each: (self._dates[each], -self._steps[each])):
            above = max(self._lowest, min(self._steps[one], above - 1))
            if above != self._steps[one]:
                steps[one] = above
        return steps

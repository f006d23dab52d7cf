"""Grid Engine's priorities for dates: of the jobs that wait, the sooner one should start, the higher it stands.

A date does not fit in the few hundred steps that `qsub -p` has, so only the order of those that wait is told.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

_STEP = 8
"""Room left between neighbours, so that later ones find a place without anybody moving."""


class Ladder:
    """The steps from `highest` down to `lowest`, and who stands where. Pure: knows ids and dates (UNIX s).

    One whose date nobody has told (it was handed over by a launcher before this one) stands beside the order.
    """

    def __init__(self, highest: int, lowest: int) -> None:
        self._highest, self._lowest = highest, min(highest, lowest)
        self._dates: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def step_for(self, date: float) -> int:
        """Where one with this date is to stand now: between its neighbours, or on a neighbour's step.

        Nobody there yet: at the top. First or last: at some distance, for those that come later.
        """
        order = sorted(self._dates, key=lambda one: self._dates[one])
        place = bisect.bisect_right([self._dates[one] for one in order], date)
        before, after = order[:place][-1:], order[place : place + 1]
        if not order:
            step = self._highest
        elif not before:
            step = self._steps[after[0]] + _STEP
        elif not after:
            step = self._steps[before[0]] - _STEP
        else:
            step = (self._steps[before[0]] + self._steps[after[0]]) // 2
        return max(self._lowest, min(self._highest, step))

    def put(self, one: str, date: float, step: int) -> None:
        """One stands there now."""
        self._dates[one], self._steps[one] = date, step

    def stand(self, steps: Mapping[str, int]) -> None:
        """Those that wait, all of them, and where Grid Engine says that they stand."""
        self._steps = dict(steps)
        self._dates = {one: date for one, date in self._dates.items() if one in steps}

    def moved(self, dates: Mapping[str, float]) -> dict[str, int]:
        """New dates: who must step down now, and where to; `stepped` says that they have.

        Nobody steps up: Grid Engine lets users lower the priorities of their jobs and refuses to raise them.
        """
        self._dates.update({one: date for one, date in dates.items() if one in self._steps})
        steps: dict[str, int] = {}
        above = max(self._steps.values(), default=0) + 1
        for one in sorted(self._dates, key=lambda each: (self._dates[each], -self._steps[each])):
            above = min(self._steps[one], max(self._lowest, above - 1))
            if above != self._steps[one]:
                steps[one] = above
        return steps

    def stepped(self, one: str, step: int) -> None:
        """One that stood elsewhere stands there now."""
        self._steps[one] = step

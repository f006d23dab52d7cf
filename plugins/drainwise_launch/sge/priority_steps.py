"""Grid Engine's priorities for dates: of the jobs that wait, the sooner one should start, the higher it stands.

A date does not fit in the few hundred steps that `qsub -p` has, so only the order of those that wait is passed on.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

_STEP = 8
"""Room left between neighbours, so that later ones find a place without anybody moving."""


class PrioritySteps:
    """The steps from `highest` down to `lowest`, and the jobs on them. Pure: knows ids and dates (UNIX s).

    A job without a known date (an earlier launcher submitted it) is outside the order.
    """

    def __init__(self, highest: int, lowest: int) -> None:
        self._highest, self._lowest = highest, min(highest, lowest)
        self._dates: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def step_for(self, date: float) -> int:
        """Return the step for a date now: between its neighbours, or a neighbour's step.

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
        """Note the date and the step of a job."""
        self._dates[one], self._steps[one] = date, step

    def set_waiting(self, steps: Mapping[str, int]) -> None:
        """Note all jobs that wait, and their steps as Grid Engine has them."""
        self._steps = dict(steps)
        self._dates = {one: date for one, date in self._dates.items() if one in steps}

    def to_lower(self, dates: Mapping[str, float]) -> dict[str, int]:
        """Take new dates and return the jobs to lower now, with their steps; `lowered` notes that they were.

        No job is raised: Grid Engine lets users lower the priorities of their jobs and refuses to raise them.
        """
        self._dates.update({one: date for one, date in dates.items() if one in self._steps})
        steps: dict[str, int] = {}
        above = max(self._steps.values(), default=0) + 1
        for one in sorted(self._dates, key=lambda each: (self._dates[each], -self._steps[each])):
            above = min(self._steps[one], max(self._lowest, above - 1))
            if above != self._steps[one]:
                steps[one] = above
        return steps

    def lowered(self, one: str, step: int) -> None:
        """Note the new step of a job."""
        self._steps[one] = step

"""Expect what comes free in pilots that return cores, chunk by chunk, and what idles until then."""

from __future__ import annotations

import numpy as np

from drainwise.facts.cut_deadline import busy_share
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.cut_wastes import StatedCurve, has_curve
from drainwise.reclaim.totals.arrays import Real, Whole

_LOOKS = 12
"""Times between now and the moment at which is looked for what is free."""


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

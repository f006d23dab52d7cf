"""Youngest first with a rule of LSF's or of Kueue's on top: each decides once, and knows no report of a pilot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drainwise.reclaim.candidates import Candidates, in_words
from drainwise.reclaim.policy import Chosen, Need
from drainwise.reclaim.totals.arrays import Whole
from drainwise.reclaim.totals.subset_sums import first_that_make, total_to_give


class NearEndSpared:
    """LSF's PREEMPT_FOR = LEAST_RUN_TIME with NO_PREEMPT_FINISH_TIME: the shortest run time first, killed.

    A pilot whose lease (LSF's run limit) ends within the horizon is spared; it goes only where the total cannot be made
    without it. LSF has no default for that time; the horizon is the longest for which waiting would do.
    """

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `reclaim.policy.Policy`."""
        now, columns = candidates.figures.now, candidates.figures.columns
        near = (columns.lease_end > now) & (columns.lease_end <= now + candidates.settings.horizon)
        order = np.lexsort((-columns.started, near))
        places = first_that_make(candidates.sizes[order], total_to_give(candidates.sizes, need.cores, need.most))
        return _killed(candidates, order[places].tolist(), "the shortest run time first, near their end spared")


class GiveBack:
    """Kueue's: the latest admitted first until the need is covered; then each that is not needed is given back.

    Whole pilots may come to more than the need, and not to less: Kueue preempts only what lets a workload in. Those
    taken first are the last that are looked at for giving back, as in `minimalPreemptions` of Kueue's scheduler.
    """

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `reclaim.policy.Policy`, but for the total: it is what covers the need."""
        sizes = candidates.sizes
        order = np.argsort(-candidates.figures.columns.started, kind="stable")
        return _killed(
            candidates, order[covering(sizes[order], need.cores)].tolist(), "the latest first, kept if needed"
        )


def covering(sizes: Whole, cores: int) -> list[int]:
    """Return the places of the first that cover `cores`, less those without which the others do; none where all do
    not.
    """
    sums = np.cumsum(sizes)
    if cores <= 0 or not len(sizes) or sums[-1] < cores:
        return []
    last = int(np.searchsorted(sums, cores))
    spare, kept = int(sums[last]) - cores, [last]
    for place in range(last - 1, -1, -1):
        if sizes[place] <= spare:
            spare -= int(sizes[place])
        else:
            kept.append(place)
    return sorted(kept)


def _killed(candidates: Candidates, rows: Sequence[int], rule: str) -> tuple[Chosen, ...]:
    now, chosen = candidates.figures.now, [candidates[row] for row in rows]
    return tuple(Chosen(one, one.killed, f"{in_words(one, one.killed, now)}; {rule}") for one in chosen)

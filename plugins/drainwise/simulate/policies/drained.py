"""Pilots that are drained until the horizon is over, whatever runs on them: what batch systems do without reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from drainwise.facts.waste import uncommitted_run
from drainwise.reclaim.candidates import CUT, Candidate, Candidates, Option
from drainwise.reclaim.policy import Chosen, Need
from drainwise.reclaim.totals.arrays import Real
from drainwise.reclaim.totals.subset_sums import first_that_make, total_to_give


@dataclass(frozen=True)
class Drained:
    """One pilot after the other by a key; all are ordered to drain and ended when the horizon is over, none before."""

    rule: str
    by: str

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Policy`."""
        sizes, key = candidates.sizes, _keys(candidates)[self.by]
        order = np.argsort(key, kind="stable")
        places = first_that_make(sizes[order], total_to_give(sizes, need.cores, need.most))
        return tuple(self._drained(candidates[row], candidates) for row in order[places].tolist())

    def _drained(self, one: Candidate, among: Candidates) -> Chosen:
        now, settings = among.figures.now, among.settings
        limit = now + max(settings.notice, min(settings.horizon, settings.grace, settings.max_grace))
        end = one.pilot.lease_end
        deadline = limit if end is None or end <= now else min(limit, end)
        # What HTCondor takes to be lost: the whole run so far and the whole time it is given.
        waste = int(uncommitted_run(one.pilot.cores, one.pilot.started, deadline))
        return Chosen(one, Option(CUT, waste, deadline, deadline), self.rule)


def _keys(candidates: Candidates) -> Mapping[str, Real]:
    it = candidates.figures
    given = min(candidates.settings.horizon, candidates.settings.grace, candidates.settings.max_grace)
    badput: Real = uncommitted_run(it.columns.cores, it.columns.started, it.now + given).astype(float)
    dice = np.random.default_rng(it.now).permutation(len(it)).astype(float)
    return {"badput": badput, "age": -it.columns.started, "lot": dice}

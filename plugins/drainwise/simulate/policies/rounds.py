"""YARN's ProportionalCapacityPreemptionPolicy with its defaults: the youngest first, some in each round."""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.candidates import candidates_of
from drainwise.simulate.policies.exact_totals import first_that_make, total_to_give
from drainwise.simulate.policies.stepwise import StepDecision, StepOrder, StepView

WAIT_BEFORE_KILL = 15
"""`max_wait_before_kill` in s: so long a container that was asked to go has."""
PER_ROUND = 0.1
"""`total_preemption_per_round`: at most this share of the cluster in a round."""
NATURAL = 0.2
"""`natural_termination_factor`: of what is wanted, this share in a round, as the rest may end by itself."""


class Rounds:
    """Each round asks the youngest for a part of what is still wanted, and kills them after the wait.

    YARN looks every 3 s, and counts those that it has asked: so a round is the wait. Its dead zone (a queue that is
    less than a tenth over its share is left alone) is left out: with it YARN would not give all that is owed.
    """

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`. Where the horizon is over all that is missing is killed."""
        pilots = view.snapshot().pilots
        left, cluster = view.left(pilots), sum(one.cores for one in pilots) + view.back
        among = candidates_of((one for one in pilots if one.deadline is None), view.now, view.settings)
        most = left if view.is_last else min(NATURAL * left, PER_ROUND * cluster)
        order = np.argsort(-among.figures.columns.started, kind="stable")
        total = total_to_give(among.sizes, int(-(-most // 1)), left)
        rows = order[first_that_make(among.sizes[order], total)].tolist()
        end = view.now if view.is_last else min(view.due, view.now + WAIT_BEFORE_KILL)
        orders = tuple(StepOrder(among.pilots[row].run, end, among[row].killed.waste) for row in rows)
        return StepDecision(orders, again=view.now + WAIT_BEFORE_KILL if total or left < view.open else view.due)

"""Wait until the horizon is over, and kill the cheapest for what did not end by itself."""

from __future__ import annotations

from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.plan import Need
from drainwise.simulate.policies.choosers import LEAST_KILL
from drainwise.simulate.policies.stepwise import StepDecision, StepOrder, StepView


class WaitThenKill:
    """Who waits needs no estimates until then; `least-kill` says who is the cheapest to kill for each core."""

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        if not view.is_last:
            return StepDecision(again=view.due)
        among, cores = candidates_of(view.snapshot().pilots, view.now, view.settings), view.open
        chosen = LEAST_KILL.choose(among, Need(cores, cores))
        return StepDecision(
            tuple(StepOrder(one.candidate.pilot.run, one.option.deadline, one.option.waste) for one in chosen)
        )

"""A need that stays open, decided again at each step by the agent's own rule: see `reclaim.open_need`."""

from __future__ import annotations

from drainwise.reclaim.history import PAUSE, History
from drainwise.reclaim.open_need import OpenNeed, need_step
from drainwise.simulate.policies.stepwise import StepDecision, StepOrder, StepView


class OpenNeedPolicy:
    """Takes whom it is cheap to end now, lets others go on, and withdraws what has become the worse choice."""

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        paused = {run for moment, made in view.earlier if view.now - moment < PAUSE for run in made.withdrawn}
        pilots = view.snapshot().pilots
        need = OpenNeed(view.open, view.due, view.usual)
        found = need_step(pilots, need, view.now, view.settings, History(), paused)
        orders = []
        for row in found.rows:
            way = found.candidates[row].best
            orders.append(
                StepOrder(found.candidates.pilots[row].run, max(view.now, min(way.deadline, view.due)), way.waste)
            )
        return StepDecision(tuple(orders), found.withdrawn)

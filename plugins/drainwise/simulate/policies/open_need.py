"""A need that stays open, decided again at each step by the agent's own plan with `policy = open-need`."""

from __future__ import annotations

from dataclasses import replace

from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import PAUSE
from drainwise.reclaim.policies import OPEN_NEED
from drainwise.simulate.policies.stepwise import StepDecision, StepOrder, StepView

WAITING_COST = 0.02
"""`[reclaim] waiting_cost` of a site that sets nothing."""


class OpenNeedPolicy:
    """The agent: each step is a cycle, what it decided before is its history."""

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        snapshot = view.snapshot()
        settings = replace(view.settings, policy=OPEN_NEED, waiting_cost=WAITING_COST)
        history = replace(
            view.history(),
            withdrawn={run: time for time, made in view.earlier if view.now - time < PAUSE for run in made.withdrawn},
            since=dict.fromkeys((one.name for one in snapshot.accounts), view.begun),
        )
        plan = make_plan(snapshot, view.now, settings, history)
        orders = tuple(StepOrder(one.pilot.run, one.deadline, one.waste) for one in plan.orders)
        return StepDecision(orders, tuple(one.pilot.run for one in plan.withdrawals))

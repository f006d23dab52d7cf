"""The agent's own plan, made again at each step while a need stays open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.decide.open_until import last_moment
from drainwise.reclaim.history import PAUSE
from drainwise.reclaim.settings import OPEN_NEED
from drainwise.simulate.policies.stepwise import StepDecision, StepOrder, StepView

WAITING_COST = 0.5
"""`[reclaim] waiting_cost` of a site that sets nothing; it counts with the policy `open-need` alone."""


@dataclass(frozen=True)
class AgentAgain:
    """Each step is a cycle of the agent with this policy; what it decided before is its history.

    is_default: with the bounds of a site that sets nothing.
    """

    policy: str
    is_default: bool = False

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        snapshot = view.snapshot()
        cost = WAITING_COST if self.policy == OPEN_NEED else 0.0
        settings = view.default if self.is_default else view.settings
        settings = replace(settings, policy=self.policy, waiting_cost=cost)
        history = replace(
            view.history(),
            withdrawn={run: time for time, made in view.earlier if view.now - time < PAUSE for run in made.withdrawn},
            since=dict.fromkeys((one.name for one in snapshot.accounts), view.begun),
        )
        plan = make_plan(snapshot, view.now, settings, history)
        orders = tuple(StepOrder(one.pilot.run, one.deadline, one.waste) for one in plan.orders)
        last = last_moment(view.due, settings)
        again = last if self.is_default and view.now < last < view.now + view.usual else None
        returns = {one.pilot.run: one.cores for one in plan.returns}
        return StepDecision(orders, tuple(one.pilot.run for one in plan.withdrawals), again, returns)

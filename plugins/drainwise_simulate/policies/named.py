"""All policies that a comparison takes, by name; those that decide again at each step, but for who foresees all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from drainwise.facts.errors import UsageError
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.decide.open_until import last_moment
from drainwise.reclaim.history import PAUSE
from drainwise.reclaim.plan import Need
from drainwise.reclaim.prices import LEAST_WASTE, is_policy
from drainwise.reclaim.prices import POLICIES as AGENT
from drainwise.reclaim.settings import OPEN_NEED
from drainwise_simulate.policies.choosers import BASELINES, LEAST_KILL
from drainwise_simulate.policies.exact_totals import first_that_make, total_to_give
from drainwise_simulate.policies.foresight import Foresight
from drainwise_simulate.policies.meanings import AGAIN, CLAIRVOYANT, SITE_DEFAULT, SITE_LEAST_WASTE
from drainwise_simulate.policies.stepwise import StepDecision, StepOrder, StepView, StepwisePolicy

WAITING_COST = 0.5
"""`[reclaim] waiting_cost` of a site that sets nothing; it counts with the policy `open-need` alone."""
WAIT_BEFORE_KILL = 15
"""`max_wait_before_kill` in s: so long a container that was asked to go has."""
PER_ROUND = 0.1
"""`total_preemption_per_round`: at most this share of the cluster in a round."""
NATURAL = 0.2
"""`natural_termination_factor`: of what is wanted, this share in a round, as the rest may end by itself."""


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


class Rounds:
    """YARN's ProportionalCapacityPreemptionPolicy with its defaults: the youngest first, some in each round.

    Each round asks the youngest for a part of what is still wanted, and kills them after the wait. YARN looks every
    3 s, and counts those that it has asked: so a round is the wait. Its dead zone (a queue that is less than a tenth
    over its share is left alone) is left out: with it YARN would not give all that is owed.
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


STEPWISE: Mapping[str, StepwisePolicy] = {
    OPEN_NEED: AgentAgain(OPEN_NEED),
    SITE_DEFAULT: AgentAgain(OPEN_NEED, is_default=True),
    AGAIN: AgentAgain(LEAST_WASTE),
    "wait-then-kill": WaitThenKill(),
    "yarn": Rounds(),
    "clairvoyant-waiting": Foresight(),
}
"""Policies that decide again and again until the horizon is over."""
ONE_SHOT: tuple[str, ...] = (*(one for one in AGENT if one not in STEPWISE), SITE_LEAST_WASTE, *BASELINES, CLAIRVOYANT)
"""Policies that decide once; all but `kueue` on the same total of cores."""
POLICIES: tuple[str, ...] = (*ONE_SHOT, *STEPWISE)
"""The names that a comparison takes, besides policies of installed packages."""


def require_known(name: str) -> None:
    """Raise UsageError for a policy that does not exist; it names those that do."""
    if name not in POLICIES and not is_policy(name):
        raise UsageError(f"no policy is called {name!r}; there are {', '.join(POLICIES)}")

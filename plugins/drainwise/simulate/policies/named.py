"""The names of all policies that a comparison takes, and what each does in words."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.facts.errors import UsageError
from drainwise.reclaim.prices import LEAST_WASTE, is_policy
from drainwise.reclaim.prices import POLICIES as AGENT
from drainwise.reclaim.settings import OPEN_NEED
from drainwise.simulate.policies.agent_again import AgentAgain
from drainwise.simulate.policies.choosers import BASELINES
from drainwise.simulate.policies.foresight import Foresight
from drainwise.simulate.policies.meanings import AGAIN, CLAIRVOYANT, SITE_DEFAULT, SITE_LEAST_WASTE
from drainwise.simulate.policies.rounds import Rounds
from drainwise.simulate.policies.stepwise import StepwisePolicy
from drainwise.simulate.policies.wait_then_kill import WaitThenKill

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

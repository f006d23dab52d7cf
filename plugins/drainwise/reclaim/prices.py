"""Price pilots: a policy of the agent is a price list, a number for each pilot, and how those end that go.

How many cores a user gives back is no matter of a price: see `reclaim.choose`. The policies by name are the entries of
POLICIES, and those of installed packages (entry points `drainwise.policies`). To name one needs no numpy: command lines
and the site file do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import UsageError
from drainwise.facts.waste import at_least, at_most
from drainwise.reclaim.columns import where
from drainwise.reclaim.figures import Figures
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings

if TYPE_CHECKING:
    from drainwise.facts.waste import Quantity
    from drainwise.reclaim.candidates import Candidate, Option
    from drainwise.reclaim.choose.problem import Real, Whole

GROUP = "drainwise.policies"
LEAST_WASTE = "least-waste"
BY_WASTE = (LEAST_WASTE, OPEN_NEED)
"""The policies that choose by the expected waste alone."""
DEFAULT = OPEN_NEED
"""The policy of a site that names none."""
INSTALLED = "a policy of an installed package; random, oldest-first and nebraska are the simulator's alone"
"""What else than a built-in policy can be named, in words."""
_MOST = 1e18
"""A higher price counts as this."""
PRIORITY_WEIGHT = 600
"""Seconds on each core by which the pilot that its user values most is dearer, by PRIORITY_FACTOR."""
_TIE = 1e-3
"""The same by a policy that does not choose by waste: there it decides ties."""


@dataclass(frozen=True)
class PriceList:
    """A policy.

    rule: what is cheap, in words, for the reasons of orders. prices: by the figures of the pilots of one user and the
    site's settings, what each costs as a whole: finite numbers ≥ 0, of which only those of one user are compared.
    quickest: a pilot that goes ends in the quickest way that the site allows, else in the cheapest. meaning: the policy
    in words, for help.
    """

    rule: str
    prices: Callable[[Figures, ReclaimSettings], Real]
    quickest: bool = False
    meaning: str = ""

    def way_of(self, one: Candidate, it: Figures, row: int, settings: ReclaimSettings) -> Option:
        """Return how a pilot ends that goes, the one in a row of the figures."""
        del it, row, settings
        return one.killed if self.quickest else one.best


class _AsWritten(PriceList):
    """The paper's: who can go in time drains, also where that leaves less than the margin; others are killed."""

    def way_of(self, one: Candidate, it: Figures, row: int, settings: ReclaimSettings) -> Option:
        """See `PriceList`."""
        from drainwise.reclaim.candidates import LEAVE, Option  # noqa: PLC0415 - a policy can be named without

        if not _can_go(it, settings)[row]:
            return one.killed
        leaves = next((way for way in one.options if way.kind == LEAVE), None)
        gone = int(it.now + it.remaining[row])
        return leaves or Option(LEAVE, int(_idle(it)[row]), int(it.leave_deadline[row]), gone)


def _by_the_paper(it: Figures, settings: ReclaimSettings) -> Quantity:
    """Return the draining waste of those that can go in time; others cost what a kill does beyond all of these.

    "If there are any pilot jobs that can go away within 2 hours, pick the one with the least draining waste, else pick
    the one that is least expensive to kill" (section 4.1).
    """
    return where(_can_go(it, settings), _idle(it), it.columns.cores * _within(settings) + it.kill_waste)


def _within(settings: ReclaimSettings) -> int:
    """Return the paper's 2 hours: the horizon, or the grace where that is shorter, s."""
    return min(settings.horizon, max(settings.notice, min(settings.grace, settings.max_grace)))


def _can_go(it: Figures, settings: ReclaimSettings) -> Quantity:
    return it.columns.believed & (it.remaining <= _within(settings))


def _idle(it: Figures) -> Quantity:
    """Return the draining waste; who drains already loses nothing more by an order."""
    return where(it.columns.draining, 0.0, at_most(it.draining_waste, it.columns.cores * it.remaining))


_BY_WASTE = PriceList("in the least wasteful set", lambda it, _: it.price)
POLICIES: Mapping[str, PriceList] = {
    LEAST_WASTE: replace(
        _BY_WASTE, meaning="the agent's: the set that is expected to waste least, each pilot drained, cut or killed"
    ),
    OPEN_NEED: replace(
        _BY_WASTE,
        meaning="least-waste, decided again each cycle until the horizon is over: waits for cheap pilots, replaces "
        "dear orders",
    ),
    "paper": _AsWritten(
        "by draining waste those that can go in time, then by kill waste",
        _by_the_paper,
        meaning="the paper's rule: least draining waste of those that can go in time, else the least expensive kill",
    ),
    "least-kill": PriceList(
        "least expensive to kill",
        lambda it, _: it.kill_waste,
        quickest=True,
        meaning="those that are least expensive to kill, killed",
    ),
    "youngest-first": PriceList(
        "the shortest run time first",
        lambda it, _: it.columns.cores * at_least(it.now - it.columns.started, 0.0),
        quickest=True,
        meaning="the shortest run time first, killed: Slurm's youngest_first, HTCondor's default order",
    ),
}


def _accept(name: str, found: object) -> PriceList:
    if not isinstance(found, PriceList):
        raise TypeError(f"expected a drainwise.reclaim.prices.PriceList for {name!r}, found {type(found).__name__}")
    return found


_installed = PluginEntries(GROUP, _accept, POLICIES)


def is_policy(name: str) -> bool:
    """Return whether there is a policy of that name, built in or installed; nothing of it is imported."""
    return name in POLICIES or name in _installed.names()


def policy_names() -> tuple[str, ...]:
    """Return the names of all policies, the built-in ones first."""
    return (*POLICIES, *_installed.names())


def policy_called(name: str) -> PriceList:
    """Return the policy of that name. Raises UsageError, which names those there are; a broken one is none."""
    found = POLICIES.get(name) or _installed.get(name)
    if found is None:
        if is_policy(name):
            why = f"policy {name!r} cannot be loaded: it has to be a price list (docs/your-own-policy.md)"
        else:
            why = f"no policy is called {name!r}"
        others = ", ".join(one for one in policy_names() if one != name)
        raise UsageError(f"{why}; there are {others}, or {INSTALLED}")
    return found


def for_comparison(settings: ReclaimSettings) -> ReclaimSettings:
    """Return the settings for a plan that is only looked at: the policies that kill do so whatever `drain_only` says.

    Orders must not be given by such a plan. What the site itself means to do, least-waste, stays as the site bounds it.
    """
    return settings if settings.policy in BY_WASTE else replace(settings, drain_only=False)


def prices_of(it: Figures, settings: ReclaimSettings, whose: Whole | None = None) -> Real:
    """Return the price of each pilot by the site's policy.

    whose: the user of each, ascending, None where all are of one: a package's policy sees those of one user alone.
    What the users value counts beside the prices of the built-in policies, see `valued`. Raises UsageError for a
    package's policy that fails, or returns what is no price for each pilot.
    """
    import numpy as np  # noqa: PLC0415 - a policy can be named without

    policy = policy_called(settings.policy)
    if settings.policy in POLICIES:
        of = it.columns
        price = valued(policy.prices(it, settings), of.cores, of.priority_factor, of.billed, settings, whose)
    else:
        ends = np.flatnonzero(np.diff(np.zeros(len(it)) if whose is None else whose)) + 1
        parts = [it.some(rows.tolist()) for rows in np.split(np.arange(len(it)), ends)]
        price = np.concatenate([_stated(policy, part, settings) for part in parts])
    return price.clip(None, _MOST)


def _stated(policy: PriceList, it: Figures, settings: ReclaimSettings) -> Real:
    """Return the prices by a package's policy."""
    import numpy as np  # noqa: PLC0415 - a policy can be named without

    count = len(it)
    try:
        price = np.array(policy.prices(it, settings), dtype=float)
    except Exception as fault:
        raise UsageError(f"policy {settings.policy!r} failed: {type(fault).__name__}: {fault}") from fault
    if price.shape != (count,):
        raise UsageError(
            f"policy {settings.policy!r} gave prices of shape {price.shape}; one for each of {count} pilots"
        )
    wrong = price[~(np.isfinite(price) & (price >= 0))]
    if len(wrong):
        raise UsageError(f"policy {settings.policy!r} gave the price {wrong[0]}; a price is finite and at least 0")
    return price


def valued(
    waste: Real, cores: Whole, priority: Real, billed: Real, settings: ReclaimSettings, whose: Whole | None = None
) -> Real:
    """Return the prices with what the site bills and what their user values counted (PRIORITY_FACTOR).

    billed: for each core, see `Columns`. whose: as in `prices_of`.

    The factor is "user specific": higher is better, and neither its unit nor its range means anything. What counts is
    where a pilot's factor lies between the lowest and the highest of its user's: the pilot of the highest costs
    `PRIORITY_WEIGHT` more on each of its cores than that of the lowest, those between in proportion.
    """
    import numpy as np  # noqa: PLC0415 - a policy can be named without

    if not len(waste):
        return waste
    whose = np.zeros(len(waste), dtype=np.int64) if whose is None else whose
    low, high = np.full((2, int(whose.max()) + 1), ((math.inf,), (-math.inf,)))
    np.minimum.at(low, whose, priority)
    np.maximum.at(high, whose, priority)
    share = (priority - low[whose]) / np.maximum(high - low, 1)[whose]
    weight = PRIORITY_WEIGHT if settings.policy in BY_WASTE else _TIE
    return np.asarray(waste * billed + weight * cores * share)

"""Choose among the pilots of one user by cores alone, and make the orders of what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.decide.by_user import able_and_closed
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Order, UserPlan
from drainwise.reclaim.policies import policy_called
from drainwise.reclaim.policy import Chosen, Need
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Whole
from drainwise.reclaim.totals.subset_sums import total_to_give


@dataclass(frozen=True)
class UserPart:
    """Cores that one user is to give back: at most `beyond`, what its account holds beyond what it is owed.

    own: cores for those who use less than their own share: for them at most `most`, which leaves the account
    its own share.
    """

    cores: int
    beyond: int
    own: int
    most: int

    def need(self, sizes: Whole) -> Need:
        """Return what pilots of these sizes have to give: more than `beyond` only where the own shares need it."""
        own = min(self.cores, self.own)
        if total_to_give(sizes, self.cores, self.beyond) >= own:
            return Need(self.cores, self.beyond)
        return Need(own, self.most)


def user_plan(
    whose: tuple[str, str],
    pilots: Sequence[Pilot],
    part: UserPart,
    allowed: int,
    now: int,
    settings: ReclaimSettings,
    history: History,
    wait: str,
) -> UserPlan:
    """Choose among one user's pilots, no more cores than are `allowed` now; wait: why none may be given yet, or ""."""
    able, closed = able_and_closed(pilots, now, settings, history)
    need = part.need(able.sizes)
    bounded = Need(min(need.cores, allowed), min(need.most, allowed))
    orders = orders_of(policy_called(settings.policy).choose(able, bounded), able)
    later, limit = 0, ""
    if part.cores > allowed:
        limit = wait or f"a limit allows {allowed} cores now"
        possible = min(part.cores, int(able.sizes.sum()))
        later = max(0, possible - sum(order.pilot.cores for order in orders))
    return UserPlan(*whose, part.cores, later, limit, orders, able, closed, need)


def orders_of(choices: Sequence[Chosen], among: Candidates) -> tuple[Order, ...]:
    """Return the orders, each with what its pilot would waste by its own claims, before its user's claims are moved."""
    claimed: dict[tuple[str, str], int] = {}
    if among.figures.columns.doubt.any():
        chosen = (choice.candidate.pilot for choice in choices)
        believed = candidates_of(chosen, among.figures.now, among.settings)
        claimed = {(one.pilot.run, way.kind): way.waste for one in believed for way in one.options}
    return tuple(
        _order(one, claimed.get((one.candidate.pilot.run, one.option.kind), one.option.waste)) for one in choices
    )


def _order(choice: Chosen, promised: int) -> Order:
    way = choice.option
    return Order(choice.candidate, way.kind, way.deadline, way.cores_back, way.waste, promised, choice.reason)

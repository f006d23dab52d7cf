"""Choose among the pilots of one user by cores alone, and make the orders of what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidates, candidates_of
from drainwise.reclaim.cut_wastes import cut_wastes
from drainwise.reclaim.decide.by_user import Closed, able_and_closed
from drainwise.reclaim.decide.limits import Allowed
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.history import History
from drainwise.reclaim.parts.part_plans import Mix, PartsUntil, mix_with_standing
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
    allowed: Allowed,
    now: int,
    settings: ReclaimSettings,
    history: History,
    until: PartsUntil | None = None,
) -> UserPlan:
    """Choose among one user's pilots, no more cores than are `allowed` now.

    until: how long parts count, None where pilots go as a whole.
    """
    able, closed = able_and_closed(pilots, now, settings, history)
    need = part.need(able.sizes)
    bounded = Need(min(need.cores, allowed.cores), min(need.most, allowed.cores))
    of_part = Need(min(part.cores, allowed.cores), bounded.most)
    mix = None if until is None else mix_with_standing(able, of_part, until, settings)
    if mix is not None:
        return _with_parts(whose, part, mix, able, closed, allowed)
    orders = orders_of(policy_called(settings.policy).choose(able, bounded), able)
    later, limit, key = 0, "", ""
    if part.cores > allowed.cores:
        limit, key = allowed.words, allowed.key
        possible = min(part.cores, int(able.sizes.sum()))
        later = max(0, possible - sum(order.pilot.cores for order in orders))
    return UserPlan(*whose, part.cores, later, limit, orders, able, closed, need, limited_by=key)


def _with_parts(
    whose: tuple[str, str], part: UserPart, mix: Mix, able: Candidates, closed: Closed, allowed: Allowed
) -> UserPlan:
    """Return the part with its mix. What a limit delays is asked for in a later cycle."""
    going = [able.pilots[row] for row in mix.whole]
    some = candidates_of(going, able.figures.now, able.settings, able.history)
    total = int(some.sizes.sum())
    orders = orders_of(policy_called(able.settings.policy).choose(some, Need(total, total)), some)
    need = Need(min(part.cores, allowed.cores), part.beyond)
    limit, key = (allowed.words, allowed.key) if part.cores > allowed.cores else ("", "")
    found = UserPlan(*whose, part.cores, 0, limit, orders, able, closed, need, limited_by=key, returns=mix.parts)
    possible = min(part.cores, int(able.sizes.sum()))
    return replace(found, later=max(0, possible - found.cores_given - found.cores_returned)) if limit else found


def orders_of(choices: Sequence[Chosen], among: Candidates) -> tuple[Order, ...]:
    """Return the orders, each with what its pilot would waste by its own claims: without doubt, each promise kept."""
    place = {pilot.run: row for row, pilot in enumerate(among.pilots)}
    rows = np.array([place[choice.candidate.pilot.run] for choice in choices], dtype=np.int64)
    stated = among.figures.columns.rows(rows)
    nothing = np.zeros(len(rows))
    claimed = figures_of(replace(stated, doubt=nothing, broken=nothing), among.figures.now, among.settings)
    deadlines = np.array([choice.option.deadline for choice in choices], dtype=float)
    # At its deadline, and not when it would be cut by its claims alone.
    cut = cut_wastes(claimed.columns, claimed.now, deadlines, among.settings.margin)
    wastes = {LEAVE: claimed.leave, CUT: cut, KILL: claimed.kill}
    promised = (wastes[choice.option.kind][row] for row, choice in enumerate(choices))
    return tuple(
        _order(choice, choice.option.waste if np.isinf(waste) else int(waste))
        for choice, waste in zip(choices, promised)
    )


def _order(choice: Chosen, promised: int) -> Order:
    way = choice.option
    return Order(choice.candidate, way.kind, way.deadline, way.cores_back, way.waste, promised, choice.reason)

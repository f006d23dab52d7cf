"""The part of a plan's JSON that the filters ask for; without a filter it is the whole plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union, cast

from drainwise.cli.screen.wanted import PilotFilter
from drainwise.reclaim.plan import Order, PartOrder, Plan, Spared, UserPlan
from drainwise.reclaim.plan_json import as_json

Shown = Union[Order, PartOrder, Spared]
Plain = dict[str, object]


def plan_as_json(plan: Plan, wanted: PilotFilter) -> Plain:
    """Return the plan as plain values: users, pilots and withdrawals that are wanted; all sums are of the whole."""
    found = as_json(plan)
    if not wanted.is_some and wanted.limit is None:
        return found
    users = zip(cast("list[Plain]", found["users"]), plan.users)
    found["users"] = [_user(one, user, wanted) for one, user in users if wanted.fits_user(user.account, user.user)]
    gone = zip(cast("list[Plain]", found["withdrawals"]), plan.withdrawals)
    found["withdrawals"] = [one for one, order in gone if wanted.fits(order.pilot, is_draining=False)]
    return found


def _user(plain: Plain, user: UserPlan, wanted: PilotFilter) -> Plain:
    """Return one user's part with no more pilots than the limit, those with an order first."""
    room, found = wanted.limit, dict(plain)
    lists: tuple[tuple[str, Sequence[Shown]], ...] = (
        ("orders", user.orders),
        ("returns", user.returns),
        ("spared", user.spared),
    )
    for name, shown in lists:
        if name not in plain:
            continue
        pairs = zip(cast("list[Plain]", plain[name]), shown)
        fits = [one for one, it in pairs if wanted.fits(it.candidate.pilot, it.candidate.draining)]
        found[name] = fits[:room]
        room = None if room is None else max(0, room - len(fits))
    return found

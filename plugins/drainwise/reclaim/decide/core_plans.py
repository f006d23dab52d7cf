"""Decide by cores alone, user after user: where what waits is not told by kind, for a what-if and for a request."""

from __future__ import annotations

from collections import Counter

from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.by_user import pilots_by_user
from drainwise.reclaim.decide.limits import allowed_cores
from drainwise.reclaim.decide.user_plan import UserPart, user_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.parts.part_plans import PartsUntil
from drainwise.reclaim.plan import UserPlan
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.settings import ReclaimSettings


def core_plans(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    wait: str,
    until: PartsUntil | None = None,
) -> list[UserPlan]:
    """Return each user's part in turn, until the deficit is met; what a limit delays falls on nobody else.

    until: how long parts of pilots count, None where they go as a whole.
    """
    pilots = pilots_by_user(snapshot.pilots)
    users: list[UserPlan] = []
    taken: Counter[str] = Counter()  # by user, who may run under several accounts
    missing, own, cycle = balance.deficit, balance.below_share, settings.max_cores
    for over in balance.over:
        beyond, most = over.cores, over.most
        for user in over.users:
            cores = min(missing, beyond)
            if cores <= 0:
                break
            allowed = allowed_cores(user, cycle, taken[user], wait, history, now, settings)
            part_of, whose = UserPart(cores, beyond, own, most), (over.account, user)
            part = user_plan(whose, pilots.get(whose, ()), part_of, allowed, now, settings, history, until)
            users.append(part)
            given = part.cores_given + part.cores_returned
            cycle -= given
            taken[user] += given
            gone = given + part.later
            missing, own, beyond, most = missing - gone, own - gone, beyond - gone, most - gone
    return users

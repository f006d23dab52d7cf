"""What if so many cores were needed: a plan for a number of cores instead of the pool's own balance."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from drainwise.errors import UsageError
from drainwise.pool import Snapshot
from drainwise.reclaim.quota import Balance, Over, on_its_way, weigh
from drainwise.reclaim.settings import Settings


@dataclass(frozen=True)
class Question:
    """`cores` from those over quota, worst priority first; from `user` alone, over quota or not, when one is named."""

    cores: int
    user: str | None = None


def balance_for(question: Question, snapshot: Snapshot, now: int, settings: Settings) -> Balance:
    """The balance that the question puts in the place of the pool's. Raises UsageError for a user without pilots."""
    pool = weigh(snapshot, now, settings.horizon)
    over = pool.over if question.user is None else _everything_of(question.user, snapshot, now, settings)
    cores = question.cores
    return replace(pool, demand=float(cores), free=0.0, leaving=0, deficit=cores, over=over, below_share=cores)


def without_limits(settings: Settings) -> Settings:
    """A question is not a cycle: no limit of a cycle changes its answer."""
    return replace(
        settings,
        max_cores=sys.maxsize,
        max_cores_per_user=sys.maxsize,
        max_cores_per_user_hour=sys.maxsize,
        min_between_acts=0,
    )


def _everything_of(name: str, snapshot: Snapshot, now: int, settings: Settings) -> tuple[Over, ...]:
    users = {pilot.user for pilot in snapshot.pilots}
    named = {name} & users or {user for user in users if user.partition("@")[0] == name}
    if len(named) != 1:
        known = ", ".join(sorted(named or users)) or "nobody"
        raise UsageError(f"no user with pilots is called {name!r}; there is {known}")
    [user] = named
    cores: dict[str, int] = {}
    for pilot in snapshot.pilots:
        if pilot.user == user and not on_its_way(pilot, now, settings.horizon):
            cores[pilot.principal] = cores.get(pilot.principal, 0) + pilot.cores
    return tuple(Over(principal, cores[principal], (user,), cores[principal]) for principal in sorted(cores))

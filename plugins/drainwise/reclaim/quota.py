"""Weigh surplus against demand by the batch system's figures alone: who waits, who gives back first and how much.

Nothing a pilot says enters here, so no claim can change how many cores anyone has to give back.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise.pool.clocks import CLOCKS_DIFFER
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.free_cores import ROUNDING, whole_cores
from drainwise.reclaim.settings import ReclaimSettings

if TYPE_CHECKING:
    from drainwise.reclaim.history import History

_MOST = 1e12  # cores of an account
_LARGEST_PILOT = 1 << 17  # cores; the choice keeps tables as long as sums of cores


@dataclass(frozen=True)
class Over:
    """An account over its quota: `cores` it can still give back, and its users, who gives back first at the front.

    most: cores that it can give back without using less than its own share; at least `cores`.
    """

    account: str
    cores: int
    users: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Balance:
    """The cores (not core-seconds) of one snapshot.

    demand: owed to those under quota who wait. free: unclaimed cores they can use. leaving: on their way out already.
    surplus: held beyond the quotas. deficit: what must be given back now. over: by whom, in this order. below_share:
    cores that are needed for those who use less than their own share: for these a pilot may go that has more cores than
    its account holds beyond what it is owed, as long as that keeps its own share.
    """

    demand: float
    free: float
    leaving: int
    surplus: float
    deficit: int
    over: tuple[Over, ...]
    below_share: int


def owed(account: Account) -> float:
    """Return the cores that an account waits for below its quota: min(wanted, owed − in use), in whole jobs.

    A part of a job's cores would be of no use to it: taking them back would be waste without a gain.
    """
    return _in_whole_jobs(account, account.cores_owed)


def own_share(account: Account) -> float:
    """Return the cores of an account's own share, of which nothing is lent to it: others never make it go below."""
    share = account.cores_share
    return account.cores_owed if share is None else min(share, account.cores_owed)


def _in_whole_jobs(account: Account, share: float) -> float:
    room = min(account.cores_wanted, share - account.cores_in_use)
    job = max(account.cores_per_job, 1.0)
    return whole_cores(room / job) * job


def on_its_way(pilot: Pilot, now: int, horizon: int) -> bool:
    """Return whether a pilot's cores come back without a new order.

    A pilot with an order counts, and so does one whose order was not answered, as long as that may still be carried
    out, when its deadline is within `horizon` seconds: nobody knows who made a lease end later than that. So does one
    that the batch system ends for another reason (a node that drains for a day).
    """
    if pilot.unanswered is not None or (pilot.deadline is not None and pilot.deadline <= now + horizon):
        return True
    return pilot.leaving and (pilot.lease_end is None or pilot.lease_end <= now + horizon)


def on_their_way(pilots: Iterable[Pilot], now: int, horizon: int) -> list[Pilot]:
    """Return the pilots whose cores come back without a new order, as in `on_its_way`; without those for a request."""
    there = (one for one in pilots if one.deadline is not None or one.leaving or one.unanswered is not None)
    return [one for one in there if not one.reserved and on_its_way(one, now, horizon)]


def with_far_ends(snapshot: Snapshot, now: int, horizon: int) -> Snapshot:
    """Return the snapshot in which a lease that was shortened to end after `horizon` seconds is no order.

    Whoever shortened it, its cores come too late for those who wait now: such a pilot may get a nearer end.
    """
    given = (one for one in snapshot.pilots if one.deadline is not None and not one.reserved)
    return with_changed(snapshot, {one.run for one in given if (one.deadline or 0) > now + horizon}, deadline=None)


def with_changed(snapshot: Snapshot, runs: Collection[str], **changed: Any) -> Snapshot:
    """Return the snapshot in which fields of these runs are changed; itself where there are none."""
    if not runs:
        return snapshot
    pilots = (replace(one, **changed) if one.run in runs else one for one in snapshot.pilots)
    return replace(snapshot, pilots=tuple(pilots))


def require_whole(snapshot: Snapshot) -> None:
    """Raise PoolUnreachable for a snapshot that cannot be a whole and true answer: nothing may be decided on it."""
    names, runs, latest = set[str](), set[str](), snapshot.taken + CLOCKS_DIFFER
    for account in snapshot.accounts:
        cores = (account.cores_in_use, account.cores_owed, account.cores_wanted, account.cores_per_job)
        if account.name in names:
            count = sum(one.name == account.name for one in snapshot.accounts)
            raise _incomplete(f"account {account.name!r} is there {count} times")
        if not (all(0 <= one <= _MOST for one in (*cores, own_share(account))) and 0 <= account.priority < math.inf):
            raise _incomplete(f"figures of account {account.name!r}")
        names.add(account.name)
    if not 0 <= snapshot.free_cores <= _MOST:
        raise _incomplete("its free cores")
    for pilot in snapshot.pilots:
        if pilot.account not in names:
            raise _incomplete(f"nothing is known of account {pilot.account!r} that pilot {pilot.name} runs under")
        if pilot.run in runs or pilot.cores < 1 or pilot.started > latest:
            raise _incomplete(f"pilot {pilot.name} is there twice or unsound")
        if pilot.cores > _LARGEST_PILOT and not pilot.cannot:
            raise _incomplete(f"pilot {pilot.name} has more than {_LARGEST_PILOT} cores")
        runs.add(pilot.run)


def _incomplete(what: str) -> PoolUnreachable:
    return PoolUnreachable(f"incomplete answer from the batch system: {what}")


def weigh(snapshot: Snapshot, now: int, horizon: int) -> Balance:
    """Return the balance of a whole snapshot at `now` (UNIX s); `horizon` (s) as in `on_its_way`.

    deficit = min(demand − free − leaving, Σ (surplus − leaving) of those over quota); `with_turns` says who is first.
    What is lent out is given back to a part of a core, save where those wait who use less than their own share: for
    them it is rounded up, so that parts of a core of several accounts make a whole one. What goes for a request is less
    that its account holds beyond its quota, and nothing for those who wait.
    """
    leaving, on_the_way, users = Counter[str](), 0, defaultdict[str, "dict[str, None]"](dict)
    for pilot in snapshot.pilots:
        users[pilot.account][pilot.user] = None
        is_on_its_way = on_its_way(pilot, now, horizon)
        ends = pilot.lease_end if pilot.deadline is None else pilot.deadline
        if is_on_its_way or (pilot.reserved and (ends is None or ends <= now + horizon)):
            leaving[pilot.account] += pilot.cores
            on_the_way += 0 if pilot.reserved else pilot.cores
    demand = sum(owed(account) for account in snapshot.accounts)
    own = sum(_in_whole_jobs(account, own_share(account)) for account in snapshot.accounts)
    below_share = whole_cores(own - snapshot.free_cores - on_the_way)
    surplus, over = 0.0, []
    for account in snapshot.accounts:
        beyond = account.cores_in_use - account.cores_owed
        if beyond > ROUNDING:
            surplus += beyond
            left = beyond - leaving[account.name]
            most = whole_cores(left + account.cores_owed - own_share(account))
            cores = min(most, math.ceil(left - ROUNDING)) if below_share else whole_cores(left)
            over.append(Over(account.name, max(0, cores), tuple(users[account.name]), most))
    needed = whole_cores(demand - snapshot.free_cores - on_the_way)
    deficit = min(needed, sum(one.cores for one in over))
    return Balance(demand, snapshot.free_cores, on_the_way, surplus, deficit, tuple(over), below_share)


def with_turns(balance: Balance, snapshot: Snapshot, history: History, now: int) -> Balance:
    """Return the balance with those over quota, and the users of each, in the order in which they give back.

    The worst priority (the largest number) is first. Of equal ones it is who gave back the fewest cores within the day
    before `now` (UNIX s); an account gave back what its users did. Of those that gave back equally many, the day
    decides: a checksum of the day and the name, so that no name is first for ever, and a cycle that is repeated decides
    the same. Nothing a pilot says enters here.
    """
    taken, day = Counter[str](), 86_400
    for order in history.orders:
        taken[order.user] += order.cores if order.time > now - day else 0
    worst = {one.name: one.priority for one in snapshot.accounts}

    def turn(name: str, priority: float, gave: int) -> tuple[float, int, bytes, str]:
        lot = hashlib.sha256(f"{now // day}/{name}".encode("utf-8", "surrogatepass")).digest()
        return -priority, gave, lot, name

    over = []
    for one in balance.over:
        users = sorted(one.users, key=lambda user: turn(user, snapshot.user_priorities.get(user, 0.0), taken[user]))
        over.append(replace(one, users=tuple(users)))
    over.sort(key=lambda one: turn(one.account, worst.get(one.account, 0.0), sum(taken[user] for user in one.users)))
    return replace(balance, over=tuple(over))


@dataclass(frozen=True)
class WhatIf:
    """`cores` from those over quota, worst priority first; from `user` or `account` alone when one is named, over quota
    or not.
    """

    cores: int
    user: str | None = None
    account: str | None = None


def balance_for(what_if: WhatIf, snapshot: Snapshot, now: int, settings: ReclaimSettings) -> Balance:
    """Return the balance that a what-if puts in the place of the pool's.

    Raises UsageError for a user or an account without pilots, and PoolUnreachable as `require_whole` does.
    """
    require_whole(snapshot)
    pool = weigh(snapshot, now, settings.horizon)
    cores, over = what_if.cores, pool.over
    if what_if.user is not None or what_if.account is not None:
        over = _everything_of(what_if, snapshot, now, settings)
    return replace(pool, demand=float(cores), free=0.0, leaving=0, deficit=cores, over=over, below_share=cores)


def without_limits(settings: ReclaimSettings) -> ReclaimSettings:
    """Return the settings without the limits of a cycle: a what-if is none."""
    most = sys.maxsize
    settings = replace(settings, max_cores=most, max_cores_hour=most)
    return replace(settings, max_cores_per_user=most, max_cores_per_user_hour=most)


def _everything_of(what_if: WhatIf, snapshot: Snapshot, now: int, settings: ReclaimSettings) -> tuple[Over, ...]:
    user = None if what_if.user is None else _named("user", what_if.user, {one.user for one in snapshot.pilots})
    account = what_if.account
    account = None if account is None else _named("account", account, {one.account for one in snapshot.pilots})
    theirs = [one for one in snapshot.pilots if user in {None, one.user} and account in {None, one.account}]
    theirs = [one for one in theirs if not one.reserved and not on_its_way(one, now, settings.horizon)]
    cores, users = Counter[str](), defaultdict[str, "dict[str, None]"](dict)
    for one in theirs:
        cores[one.account] += one.cores
        users[one.account][one.user] = None
    return tuple(Over(name, total, tuple(users[name]), total) for name, total in cores.items())


def _named(what: str, name: str, known: set[str]) -> str:
    """Return the one that is called so, with or without its domain. Raises UsageError when there is none."""
    named = {name} & known or {one for one in known if one.partition("@")[0] == name}
    if len(named) != 1:
        shown = ", ".join(sorted(named or known)) or "nobody"
        raise UsageError(f"no {what} with pilots is called {name!r}; there is {shown}")
    return named.pop()

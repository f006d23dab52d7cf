"""Who is over quota and by how many cores, who waits and for how many: figures of the batch system alone.

Nothing a pilot says enters here, so no claim can change how many cores anyone has to give back.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from drainwise.clocks import CLOCKS_DIFFER
from drainwise.errors import PoolUnreachable
from drainwise.pool import Pilot, Principal, Snapshot

_MOST = 1e12  # cores of an account
_LARGEST_PILOT = 1 << 17  # cores; the choice keeps tables as long as sums of cores
_ROUNDING = 1e-6  # cores; quotas and weights are sums of floats


@dataclass(frozen=True)
class Over:
    """A principal over its quota: `cores` it can still give back, and its users, who gives back first at the front.

    most: cores that it can give back without using less than its own share; at least `cores`.
    """

    principal: str
    cores: int
    users: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Balance:
    """The cores (not core-seconds) of one snapshot.

    demand: owed to those under quota who wait. free: unclaimed cores they can use. leaving: on their way out already.
    surplus: held beyond the quotas. deficit: what must be given back now. over: by whom, in this order. below_share:
    cores that are needed for those who use less than their own share: for these a pilot may go that has more cores than
    its principal holds beyond what it is owed, as long as that keeps its own share.
    """

    demand: float
    free: float
    leaving: int
    surplus: float
    deficit: int
    over: tuple[Over, ...]
    below_share: int = 0


def whole_cores(cores: float) -> int:
    """Cores rounded down, as no part of a core can be given back."""
    return max(0, math.floor(cores + _ROUNDING))


def owed(principal: Principal) -> float:
    """Cores that a principal under its quota waits for and has a right to: min(wanted, owed − in use), in whole jobs.

    A part of a job's cores would be of no use to it: taking them back would be waste without a gain.
    """
    return _in_whole_jobs(principal, principal.cores_owed)


def own_share(principal: Principal) -> float:
    """Cores of a principal's own share, of which nothing is lent to it: what others may never make it go below."""
    share = principal.cores_share
    return principal.cores_owed if share is None else min(share, principal.cores_owed)


def _in_whole_jobs(principal: Principal, share: float) -> float:
    room = min(principal.cores_wanted, share - principal.cores_in_use)
    job = max(principal.cores_per_job, 1.0)
    return whole_cores(room / job) * job


def on_its_way(pilot: Pilot, now: int, horizon: int) -> bool:
    """Whether a pilot's cores come back without a new order.

    A pilot that was asked counts whatever its deadline, so that nobody is asked twice for one reason; so does one whose
    order was not answered, as long as that may still be carried out. One that the batch system ends for another reason
    (a node that drains for a day) counts when that is within `horizon` seconds.
    """
    if pilot.deadline is not None or pilot.unanswered is not None:
        return True
    return pilot.leaving and (pilot.lease_end is None or pilot.lease_end <= now + horizon)


def require_whole(snapshot: Snapshot) -> None:
    """Raise PoolUnreachable for a snapshot that cannot be a whole and true answer: nothing may be decided on it."""
    names = Counter(principal.name for principal in snapshot.principals)
    for name, count in names.items():
        if count > 1:
            raise PoolUnreachable(f"half an answer from the batch system: account {name!r} is there {count} times")
    for principal in snapshot.principals:
        cores = (principal.cores_in_use, principal.cores_owed, principal.cores_wanted, principal.cores_per_job)
        if not (
            all(0 <= one <= _MOST for one in (*cores, own_share(principal))) and 0 <= principal.priority < math.inf
        ):
            raise PoolUnreachable(f"half an answer from the batch system: figures of account {principal.name!r}")
    if not 0 <= snapshot.free_cores <= _MOST:
        raise PoolUnreachable("half an answer from the batch system: its free cores")
    runs = Counter(pilot.run for pilot in snapshot.pilots)
    for pilot in snapshot.pilots:
        if pilot.principal not in names:
            raise PoolUnreachable(
                f"half an answer from the batch system: nothing is known of account {pilot.principal!r}"
                f" that pilot {pilot.name} runs under"
            )
        if runs[pilot.run] > 1 or pilot.cores < 1 or pilot.started > snapshot.taken + CLOCKS_DIFFER:
            raise PoolUnreachable(f"half an answer from the batch system: pilot {pilot.name} is there twice or unsound")
        if pilot.cores > _LARGEST_PILOT and not pilot.cannot:
            raise PoolUnreachable(
                f"half an answer from the batch system: pilot {pilot.name} has more than {_LARGEST_PILOT} cores"
            )


def weigh(snapshot: Snapshot, now: int, horizon: int) -> Balance:
    """The balance of a snapshot at `now` (UNIX s); `horizon` (s) as in `on_its_way`.

    deficit = min(demand − free − leaving, Σ (surplus − leaving) of those over quota): the worst priority (the largest
    number) gives back first, within a principal the user with the worst priority. What is lent out is given back to a
    part of a core, save where those wait who use less than their own share: for them it is rounded up, so that parts of
    a core of several principals make a whole one. Raises PoolUnreachable as `require_whole` does.
    """
    require_whole(snapshot)
    leaving: Counter[str] = Counter()
    for pilot in snapshot.pilots:
        if on_its_way(pilot, now, horizon):
            leaving[pilot.principal] += pilot.cores
    on_the_way = sum(leaving.values())  # Counter.total() is not in Python 3.9
    demand = sum(owed(principal) for principal in snapshot.principals)
    own = sum(_in_whole_jobs(principal, own_share(principal)) for principal in snapshot.principals)
    below_share = whole_cores(own - snapshot.free_cores - on_the_way)
    surplus, over = 0.0, []
    for principal in sorted(snapshot.principals, key=lambda one: (-one.priority, one.name)):
        beyond = principal.cores_in_use - principal.cores_owed
        if beyond > _ROUNDING:
            surplus += beyond
            left = beyond - leaving[principal.name]
            most = whole_cores(left + principal.cores_owed - own_share(principal))
            cores = min(most, math.ceil(left - _ROUNDING)) if below_share else whole_cores(left)
            over.append(Over(principal.name, max(0, cores), _worst_first(snapshot, principal.name), most))
    needed = whole_cores(demand - snapshot.free_cores - on_the_way)
    deficit = min(needed, sum(one.cores for one in over))
    return Balance(demand, snapshot.free_cores, on_the_way, surplus, deficit, tuple(over), below_share)


def _worst_first(snapshot: Snapshot, principal: str) -> tuple[str, ...]:
    users = {pilot.user for pilot in snapshot.pilots if pilot.principal == principal}
    return tuple(sorted(users, key=lambda user: (-snapshot.user_priorities.get(user, 0.0), user)))

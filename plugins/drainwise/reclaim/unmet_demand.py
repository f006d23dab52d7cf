"""Demand that cores which came back did not serve: noticed by what the account uses, and paused for a while.

A job that waits for memory, a GPU, a feature or a certain node may start on no core that a pilot gives back. All that
the batch systems tell in common is how many cores an account uses and waits for. So a *round* is watched: cores come
back that an account had waited for, and within a few scheduling cycles its use grows by at least half as many. A round
has failed when they lie idle or went to accounts over their quota instead; cores that another account under its quota
took speak neither for nor against. What is weighed is cores, not starts: one small job that starts does not excuse
eight cores in vain. An account that waits no more when its round ends is given that once.

After FAILED_ROUNDS failed rounds in a row the demand of that moment does not count until a pause has passed. Each
further failed round doubles the pause, up to LONGEST_PAUSE; a round that helps after it ends all this. Jobs that
come during the pause do count, as they may be of another kind: but once in a pause, since after a round for them that
failed nothing of the account's counts until the pause has passed. So a job that can start is never shut out for good,
and one that cannot costs a number of pilots that grows with the logarithm of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import Settings

FAILED_ROUNDS = 2
LONGEST_PAUSE = 86_400
"""Seconds; so long after a pause a failed round is remembered, too."""

_LONGEST_ROUND = 4  # times the time to start, while more comes back: then what came back is looked at
_ROUNDING = 1e-3  # cores


@dataclass(frozen=True)
class Part:
    """Of one pilot that was asked, with `whole` cores on `node`, the cores that are for one account."""

    node: str
    whole: int
    cores: float


@dataclass(frozen=True)
class Unmet:
    """What is remembered of one account that orders were given for. In cores, times in UNIX s.

    runs: the orders that stand for it; ordered: when the last was given. use: what the account used when it was looked
    at last, at `looked`.
    back: cores that came back for it on `nodes`, in pilots of `whole` cores, after `left` and as was seen from `first`
    to `last`; base: its use before, peak: the most that it has used since; others: the most that other accounts under
    their quota have started there. settled: cores that came back earlier in the same round; served: by how much its use
    grew for them; wasted: what nobody under quota used of them.
    failed: rounds in a row that did not help; vain: cores that nobody under quota used in them. since, until: when the
    last of them failed, and the end of the pause after it. held: demand that does not count during it, in `held_jobs`
    jobs. closed: nothing of the demand counts.
    """

    principal: str
    runs: Mapping[str, Part] = field(default_factory=dict)
    ordered: int = 0
    use: float = 0.0
    looked: int = 0
    back: float = 0.0
    whole: float = 0.0
    nodes: tuple[str, ...] = ()
    left: int = 0
    base: float = 0.0
    peak: float = 0.0
    others: float = 0.0
    first: int = 0
    last: int = 0
    settled: float = 0.0
    served: float = 0.0
    wasted: float = 0.0
    failed: int = 0
    vain: float = 0.0
    since: int = 0
    until: int = 0
    held: float = 0.0
    held_jobs: float = 0.0
    closed: bool = False

    @property
    def idle(self) -> float:
        """Cores of `back` that no account under its quota uses: they lie idle or went to others."""
        return max(0.0, min(self.back - self.gained, self.whole - self.others - self.gained))

    @property
    def gained(self) -> float:
        """Cores by which the account's use has grown since `back` came back."""
        return max(0.0, self.peak - self.base)

    def without(self, run: str) -> Unmet:
        """The same without an order that was not given."""
        return replace(self, runs={one: part for one, part in self.runs.items() if one != run})

    def without_round(self) -> Unmet:
        """The same when nothing has come back."""
        idle = replace(self, back=0.0, whole=0.0, nodes=(), left=0, base=0.0, peak=0.0, others=0.0, first=0, last=0)
        return replace(idle, settled=0.0, served=0.0, wasted=0.0)


def use_of(account: Principal) -> float:
    """Cores that the account's jobs hold."""
    return account.cores_in_use if account.cores_running is None else account.cores_running


def jobs_of(account: Principal) -> float:
    """Jobs that the account waits with."""
    return account.cores_wanted / max(account.cores_per_job, 1.0)


def for_whom(
    snapshot: Snapshot, pilots: Sequence[Pilot], deficit: int, known: Mapping[str, Unmet]
) -> dict[str, dict[str, Part]]:
    """For each account that is owed cores, its parts of the pilots that are to be asked, by run.

    In proportion to what no order stands for. All parts together are at most `deficit`: what a pilot has beyond that
    was not asked for.
    """
    wants = {one.name: cores for one in snapshot.principals if (cores := owed(one)) > 0}
    stands = {name: sum(one.cores for one in known[name].runs.values()) for name in wants if name in known}
    open_wants = {name: cores - stands.get(name, 0.0) for name, cores in wants.items() if cores > stands.get(name, 0.0)}
    waiting = open_wants or wants
    total, asked = sum(waiting.values()), sum(one.cores for one in pilots)
    if not (total and asked):
        return {}
    part = min(1.0, deficit / asked)
    return {
        name: {one.run: Part(one.node, one.cores, one.cores * part * cores / total) for one in pilots}
        for name, cores in waiting.items()
    }


def ordered(
    known: Mapping[str, Unmet], snapshot: Snapshot, parts: Mapping[str, Mapping[str, Part]], now: int
) -> list[Unmet]:
    """What is to be remembered of the accounts that get `parts` of runs that are asked at `now` (UNIX s).

    parts: as `for_whom` gives them.
    """
    uses = {one.name: use_of(one) for one in snapshot.principals}
    before = {name: known.get(name, Unmet(name)) for name in parts}
    return [
        replace(one, runs={**one.runs, **parts[name]}, ordered=now, use=uses[name], looked=now)
        for name, one in before.items()
    ]


def watched(known: Mapping[str, Unmet], snapshot: Snapshot, now: int, settings: Settings) -> dict[str, Unmet]:
    """What is remembered after a look at `now` (UNIX s); an account of which nothing need be remembered is left out."""
    accounts = {one.name: one for one in snapshot.principals}
    gone = Principal("", 0.0, 0.0, 0.0, 0.0)
    after = {name: _watch(one, accounts.get(name, gone), snapshot, now, settings) for name, one in known.items()}
    return {name: one for name, one in after.items() if _is_in_round(one) or now < one.until + LONGEST_PAUSE}


def _is_in_round(one: Unmet) -> bool:
    return bool(one.runs or one.back or one.settled)


def _watch(one: Unmet, account: Principal, snapshot: Snapshot, now: int, settings: Settings) -> Unmet:
    """One account: what has come back, whether it helped, and what of its demand is left of what does not count."""
    # Of times that lie ahead since the clock was set back only as much is believed as can be.
    one = replace(one, ordered=min(one.ordered, now), first=min(one.first, now), last=min(one.last, now))
    one = replace(one, since=min(one.since, now), until=min(one.until, now + LONGEST_PAUSE))
    one = _come_back(one, use_of(account), snapshot, now, settings)
    if one.back or one.settled:
        one = _judged(one, account, now, settings)
    jobs = jobs_of(account)
    return replace(one, held=min(one.held, account.cores_wanted), held_jobs=min(one.held_jobs, jobs))


def _come_back(one: Unmet, use: float, snapshot: Snapshot, now: int, settings: Settings) -> Unmet:
    """What has come back by now, what the account uses, and what others took of it."""
    running = {pilot.run: pilot for pilot in snapshot.pilots if pilot.run in one.runs}
    gone = [part for run, part in one.runs.items() if run not in running]
    # One that does not show its order yet may have it; later it was refused or taken back.
    new = now < one.ordered + settings.time_to_start
    stands = {run: one.runs[run] for run, it in running.items() if it.deadline is not None or it.leaving or new}
    if gone and not one.back:
        one = replace(one, base=one.use, left=min(one.looked, now), first=now)
    if gone:
        nodes = tuple(sorted({*one.nodes, *(part.node for part in gone)}))
        one = replace(one, whole=one.whole + sum(part.whole for part in gone), nodes=nodes, last=now)
        one = replace(one, back=one.back + sum(part.cores for part in gone))
    if one.back:
        one = replace(one, peak=max(one.peak, use), others=max(one.others, _others(one, snapshot)))
    return replace(one, runs=stands, use=use, looked=now)


def _others(one: Unmet, snapshot: Snapshot) -> float:
    """Cores on the nodes where cores came back that other accounts which are not over their quota have since."""
    over = {account.name for account in snapshot.principals if account.cores_in_use > account.cores_owed + _ROUNDING}
    return sum(
        pilot.cores
        for pilot in snapshot.pilots
        if pilot.started >= one.left
        and pilot.node in one.nodes
        and pilot.principal != one.principal
        and pilot.principal not in over
    )


def _judged(one: Unmet, account: Principal, now: int, settings: Settings) -> Unmet:
    """The round's verdict when it is due: what could not serve even one job of the account's proves nothing yet."""
    back, gained, wait = one.settled + one.back, one.served + one.gained, settings.time_to_start
    over, wasted = one.without_round(), one.wasted + one.idle
    if gained >= back - _ROUNDING:
        return _helped(over, now)
    if one.back and now < min(one.last + wait, one.first + _LONGEST_ROUND * wait):
        return one
    vanished = owed(account) <= 0  # nobody waits any more: whether that was right cannot be told
    if vanished and (2 * gained >= back or 2 * wasted <= back):
        return over
    if vanished and not one.vain:  # once; whose jobs go whenever a round ends takes cores for nothing, too
        return replace(over, vain=wasted, since=now, until=now)
    if not vanished and back + _ROUNDING < account.cores_per_job:
        return replace(over, settled=back, served=gained, wasted=wasted)
    if 2 * gained >= back:
        return _helped(over, now)
    if 2 * wasted <= back:
        return over
    failed = one.failed + 1
    over = replace(over, failed=failed, vain=one.vain + wasted, since=now, until=now)
    if failed < FAILED_ROUNDS:
        return over
    pause = min(LONGEST_PAUSE, settings.demand_pause << min(failed - FAILED_ROUNDS, 20))
    jobs = jobs_of(account)
    closed = now < one.until  # it was for jobs that came during a pause
    # Orders that stand are taken back, or prove nothing about what comes during the pause.
    return replace(over, runs={}, until=now + pause, held=account.cores_wanted, held_jobs=jobs, closed=closed)


def _helped(over: Unmet, now: int) -> Unmet:
    """After a round that helped: one within a pause was for other jobs than those that do not count."""
    return over if now < over.until else replace(over, failed=0, vain=0.0, since=0, until=0, held=0.0, held_jobs=0.0)

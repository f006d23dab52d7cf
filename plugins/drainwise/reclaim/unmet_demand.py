"""Demand that cores which came back did not serve: noticed by what the account uses, and paused for a while.

A job that waits for memory, a GPU, a feature or a certain node may start on no core that a pilot gives back. All that
the batch systems tell in common is how many cores an account uses and waits for. So a *round* is watched: cores come
back that an account had waited for, and within a few scheduling cycles its use grows by at least half as many, or the
round has failed. What is weighed is cores, not starts: one small job that starts does not excuse eight cores in vain.

After FAILED_ROUNDS failed rounds in a row the demand of that moment does not count until a pause has passed. Each
further failed round doubles the pause, up to LONGEST_PAUSE; a round that helps after it ends all this. Jobs that
come during the pause do count, as they may be of another kind: but once in a pause, since after a round for them that
failed nothing of the account's counts until the pause has passed. So a job that can start is never shut out for good,
and one that cannot costs a number of pilots that grows with the logarithm of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import Settings

FAILED_ROUNDS = 2
LONGEST_PAUSE = 86_400
"""Seconds; so long after a pause a failed round is remembered, too."""

_LONGEST_ROUND = 4  # times the time to start; so long a round takes in what comes back
_ROUNDING = 1e-3  # cores


@dataclass(frozen=True)
class Unmet:
    """What is remembered of one account that orders were given for. In cores, times in UNIX s.

    runs: the orders that stand for it, and of each the cores that are for this account; ordered: when the last was
    given. use: what the account used when it was looked at last. back: cores of the present round, which came back from
    `first` to `last`; base: its use before, peak: the most that it has used since. failed: rounds in a row that did not
    help; vain: cores that came back in them and were not used. since, until: when the last of them failed, and the end
    of the pause after it. held: demand that does not count during it, in `held_jobs` jobs. closed: nothing of the
    demand counts.
    """

    principal: str
    runs: Mapping[str, float] = field(default_factory=dict)
    ordered: int = 0
    use: float = 0.0
    back: float = 0.0
    base: float = 0.0
    peak: float = 0.0
    first: int = 0
    last: int = 0
    failed: int = 0
    vain: float = 0.0
    since: int = 0
    until: int = 0
    held: float = 0.0
    held_jobs: float = 0.0
    closed: bool = False

    @property
    def gained(self) -> float:
        """Cores by which the account's use has grown in the present round."""
        return max(0.0, self.peak - self.base)

    def without(self, run: str) -> Unmet:
        """The same without an order that was not given."""
        return replace(self, runs={one: cores for one, cores in self.runs.items() if one != run})


def use_of(account: Principal) -> float:
    """Cores that the account's jobs hold."""
    return account.cores_in_use if account.cores_running is None else account.cores_running


def jobs_of(account: Principal) -> float:
    """Jobs that the account waits with."""
    return account.cores_wanted / max(account.cores_per_job, 1.0)


def for_whom(snapshot: Snapshot, runs: Mapping[str, int], deficit: int) -> dict[str, dict[str, float]]:
    """For each account that is owed cores, its part of the cores of these runs (cores by run) that are to be asked.

    All parts together are at most `deficit`: what a pilot has beyond that was not asked for.
    """
    waiting = {one.name: cores for one in snapshot.principals if (cores := owed(one)) > 0}
    total, asked = sum(waiting.values()), sum(runs.values())
    if not (total and asked):
        return {}
    part = min(1.0, deficit / asked)
    return {name: {run: size * part * cores / total for run, size in runs.items()} for name, cores in waiting.items()}


def ordered(
    known: Mapping[str, Unmet], snapshot: Snapshot, parts: Mapping[str, Mapping[str, float]], now: int
) -> list[Unmet]:
    """What is to be remembered of the accounts that get `parts` of runs that are asked at `now` (UNIX s).

    parts: as `for_whom` gives them.
    """
    uses = {one.name: use_of(one) for one in snapshot.principals}
    before = {name: known.get(name, Unmet(name)) for name in parts}
    return [replace(one, runs={**one.runs, **parts[name]}, ordered=now, use=uses[name]) for name, one in before.items()]


def watched(known: Mapping[str, Unmet], snapshot: Snapshot, now: int, settings: Settings) -> dict[str, Unmet]:
    """What is remembered after a look at `now` (UNIX s); an account of which nothing need be remembered is left out."""
    accounts = {one.name: one for one in snapshot.principals}
    running = {one.run: one for one in snapshot.pilots}
    gone = Principal("", 0.0, 0.0, 0.0, 0.0)
    after = {name: _watch(one, accounts.get(name, gone), running, now, settings) for name, one in known.items()}
    return {name: one for name, one in after.items() if one.runs or one.back or now < one.until + LONGEST_PAUSE}


def _watch(one: Unmet, account: Principal, running: Mapping[str, Pilot], now: int, settings: Settings) -> Unmet:
    """One account: what has come back, whether it helped, and what of its demand is left of what does not count."""
    # Of times that lie ahead since the clock was set back only as much is believed as can be.
    one = replace(one, ordered=min(one.ordered, now), first=min(one.first, now), last=min(one.last, now))
    one = replace(one, since=min(one.since, now), until=min(one.until, now + LONGEST_PAUSE))
    one = _come_back(one, use_of(account), running, now, settings)
    if one.back:
        one = _judged(one, account, now, settings)
    jobs = jobs_of(account)
    return replace(one, held=min(one.held, account.cores_wanted), held_jobs=min(one.held_jobs, jobs))


def _come_back(one: Unmet, use: float, running: Mapping[str, Pilot], now: int, settings: Settings) -> Unmet:
    back = sum(cores for run, cores in one.runs.items() if run not in running)
    stands = {
        run: cores
        for run, cores in one.runs.items()
        if run in running
        # One that does not show its order yet may have it; later it was refused or taken back.
        and (running[run].deadline is not None or running[run].leaving or now < one.ordered + settings.time_to_start)
    }
    if back and not one.back:
        one = replace(one, base=one.use, peak=use, first=now)
    if back:
        one = replace(one, back=one.back + back, last=now)
    return replace(one, runs=stands, use=use, peak=max(one.peak, use) if one.back else 0.0)


def _judged(one: Unmet, account: Principal, now: int, settings: Settings) -> Unmet:
    """The round's verdict when it is due: what could not serve even one job of the account's proves nothing yet."""
    over = replace(one, back=0.0, base=0.0, peak=0.0, first=0, last=0)
    if one.gained >= one.back - _ROUNDING:
        return _helped(over, now)
    if owed(account) <= 0:  # nobody waits any more: whether it was helped cannot be told
        return over
    wait = settings.time_to_start
    if one.back + _ROUNDING < account.cores_per_job or now < min(one.last + wait, one.first + _LONGEST_ROUND * wait):
        return one
    if 2 * one.gained >= one.back:
        return _helped(over, now)
    failed = one.failed + 1
    over = replace(over, failed=failed, vain=one.vain + one.back - one.gained, since=now, until=now)
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

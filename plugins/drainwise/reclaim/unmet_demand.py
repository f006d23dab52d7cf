"""Demand that cores which came back did not serve: noticed by what the account uses, and paused for a while.

A job that waits for memory, a GPU, a feature or a certain node may start on no core that a pilot gives back. All that
the batch systems tell in common is how many cores an account uses and waits for. So a *round* is watched: cores come
back that an account had waited for, and within a few scheduling cycles its use grows by at least half as many. A round
has failed when they lie idle or went to accounts over their quota instead; cores that another account under its quota
took speak neither for nor against. What is weighed is cores, not starts: one small job that starts does not excuse
eight cores in vain. An account that waits no more when its round ends is given that once.

Where the batch system tells what waits by kind, each kind of jobs has rounds of its own: what its account's jobs start
on those places counts for it, and a pause holds all of the kind, until it has passed or the kind finds more places.

After FAILED_ROUNDS failed rounds in a row the demand of that moment does not count until a pause has passed. Each
further failed round doubles the pause, up to LONGEST_PAUSE; a round that helps after it ends all this. Jobs that
come during the pause do count, as they may be of another kind: but once in a pause, since after a round for them that
failed nothing of the account's counts until the pause has passed. So a job that can start is never shut out for good,
and one that cannot costs a number of pilots that grows with the logarithm of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import ReclaimSettings

FAILED_ROUNDS = 2
LONGEST_PAUSE = 86_400
"""Seconds; so long after a pause a failed round is remembered, too."""

_LONGEST_ROUND = 4  # times the time to start, while more comes back: then what came back is looked at
_ROUNDING = 1e-3  # cores


@dataclass(frozen=True)
class AccountPart:
    """Of one pilot that got an order, with `whole` cores on `node`, the cores that are for one account.

    node: several, one after the other with a blank between them, where the pilot has several.
    """

    node: str
    whole: int
    cores: float


@dataclass(frozen=True)
class UnmetDemand:
    """What is remembered of one account that orders were given for. In cores, times in UNIX s.

    runs: the orders that stand for it; ordered: when the last was given. use: what the account used when it was looked
    at last, at `looked`.
    back: cores that came back for it on `nodes`, in pilots of `whole` cores, after `left` and as was seen from `first`
    to `last`; base: its use before, peak: the most that it has used since; others: the most that other accounts under
    their quota have started there. settled: cores that came back earlier in the same round; served: by how much its use
    grew for them; wasted: what nobody under quota used of them.
    failed: rounds in a row that did not help; vain: cores that nobody under quota used in them. since, until: when the
    last of them failed, and the end of the pause after it. held: demand that does not count during it, in `held_jobs`
    jobs. closed: nothing of the demand counts. kind: the kind of jobs, by its name, "" where it is all that the account
    waits for; spots: places where it can run, when it failed. unused: cores of the round that ended just now which
    nobody under quota used.
    """

    account: str
    runs: Mapping[str, AccountPart] = field(default_factory=dict)
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
    kind: str = ""
    spots: int = 0
    unused: float = 0.0

    @property
    def key(self) -> str:
        """Return by what it is remembered: the kind, or the account."""
        return self.kind or self.account

    @property
    def idle(self) -> float:
        """Cores of `back` that no account under its quota uses: they lie idle or went to others."""
        return max(0.0, min(self.back - self.gained, self.whole - self.others - self.gained))

    @property
    def gained(self) -> float:
        """Cores by which the account's use has grown since `back` came back."""
        return max(0.0, self.peak - self.base)

    def without(self, run: str) -> UnmetDemand:
        """Return the unmet demand without an order that was not given."""
        return replace(self, runs={one: part for one, part in self.runs.items() if one != run})

    def resumed(self) -> UnmetDemand:
        """Return the unmet demand as if no round had failed: all of the demand counts again."""
        return replace(self, failed=0, vain=0.0, since=0, until=0, held=0.0, held_jobs=0.0, closed=False, spots=0)

    def unseen(self, snapshot: Snapshot) -> UnmetDemand:
        """Return the unmet demand after a time in which nobody could look: what came back then proves nothing."""
        running = {pilot.run for pilot in snapshot.pilots}
        return replace(self.without_round(), runs={run: part for run, part in self.runs.items() if run in running})

    def without_round(self) -> UnmetDemand:
        """Return the unmet demand as if nothing had come back."""
        idle = replace(self, back=0.0, whole=0.0, nodes=(), left=0, base=0.0, peak=0.0, others=0.0, first=0, last=0)
        return replace(idle, settled=0.0, served=0.0, wasted=0.0)


CoresOfEnded = Callable[[UnmetDemand], Optional[float]]
"""Tells the cores of jobs of a round that came and went between two looks; None where that is not known now."""


def none_ended(_: UnmetDemand) -> float:
    """Return that no job came and went: where nobody tells."""
    return 0.0


def use_of(account: Account) -> float:
    """Return the cores that the account's jobs hold."""
    return account.cores_in_use if account.cores_running is None else account.cores_running


def jobs_of(account: Account) -> float:
    """Return the number of jobs that the account waits with."""
    return account.cores_wanted / max(account.cores_per_job, 1.0)


def kind_as_account(kind: JobKind) -> Account:
    """Return a kind of jobs as if it were an account that is owed all that it waits for."""
    wanted = float(kind.jobs * kind.cores)
    return Account(kind.name, 0.0, wanted, wanted if kind.classes else 0.0, 0.0, float(kind.cores))


def for_whom(
    snapshot: Snapshot, pilots: Sequence[Pilot], deficit: int, known: Mapping[str, UnmetDemand]
) -> dict[str, dict[str, AccountPart]]:
    """Return for each account that is owed cores its parts of the pilots that get an order, by run.

    In proportion to what no order stands for. All parts together are at most `deficit`: what a pilot has beyond that
    was not needed.
    """
    wants = {one.name: cores for one in snapshot.accounts if (cores := owed(one)) > 0}
    stands = {name: sum(one.cores for one in known[name].runs.values()) for name in wants if name in known}
    open_wants = {name: cores - stands.get(name, 0.0) for name, cores in wants.items() if cores > stands.get(name, 0.0)}
    waiting = open_wants or wants
    total, given = sum(waiting.values()), sum(one.cores for one in pilots)
    if not (total and given):
        return {}
    part = min(1.0, deficit / given)
    return {
        name: {one.run: AccountPart(" ".join(one.nodes), one.cores, one.cores * part * cores / total) for one in pilots}
        for name, cores in waiting.items()
    }


def with_orders(
    known: Mapping[str, UnmetDemand], snapshot: Snapshot, parts: Mapping[str, Mapping[str, AccountPart]], now: int
) -> list[UnmetDemand]:
    """Return what is to be remembered of accounts that get `parts` of runs that get an order at `now` (UNIX s).

    parts: as `for_whom` gives them.
    """
    uses = {one.name: use_of(one) for one in snapshot.accounts}
    whose = {one.name: one.account for one in snapshot.kinds or ()}
    new = {name: UnmetDemand(whose[name], kind=name) if name in whose else UnmetDemand(name) for name in parts}
    before = {name: known.get(name, one) for name, one in new.items()}
    return [
        replace(one, runs={**one.runs, **parts[name]}, ordered=now, use=uses.get(name, 0.0), looked=now, unused=0.0)
        for name, one in before.items()
    ]


def watched(
    known: Mapping[str, UnmetDemand],
    snapshot: Snapshot,
    now: int,
    settings: ReclaimSettings,
    blind: int | None = None,
    ended: CoresOfEnded = none_ended,
) -> dict[str, UnmetDemand]:
    """Return the unmet demand after a look at `now` (UNIX s), without accounts of which nothing need be remembered.

    blind: since when (UNIX s) no look succeeded, None where the last one did. Of a longer time than jobs are given to
    start, rounds in it count for nothing. ended: asked where a round would have failed by what was seen.
    """
    if blind is not None and now - blind >= settings.time_to_start:
        known = {name: one.unseen(snapshot) for name, one in known.items()}
    accounts = {one.name: one for one in (*snapshot.accounts, *map(kind_as_account, snapshot.kinds or ()))}
    gone = Account("", 0.0, 0.0, 0.0, 0.0)
    after = {name: _watch(one, accounts.get(name, gone), snapshot, now, settings, ended) for name, one in known.items()}
    return {name: one for name, one in after.items() if _is_remembered(one, now)}


def _is_remembered(one: UnmetDemand, now: int) -> bool:
    return _is_in_round(one) or bool(one.unused) or now < one.until + LONGEST_PAUSE


def spots_of(kind: str, snapshot: Snapshot) -> int:
    """Return the number of places where jobs of a kind could run, were they empty; 0 for one that does not wait."""
    classes = next((one.classes for one in snapshot.kinds or () if one.name == kind), frozenset[str]())
    return sum(place.node_class in classes for place in snapshot.places) if classes else 0


def _is_in_round(one: UnmetDemand) -> bool:
    return bool(one.runs or one.back or one.settled)


def _watch(
    one: UnmetDemand,
    account: Account,
    snapshot: Snapshot,
    now: int,
    settings: ReclaimSettings,
    ended: CoresOfEnded,
) -> UnmetDemand:
    """Return one account's unmet demand: what has come back, whether it helped, and what remains paused."""
    # Of times that lie ahead since the clock was set back only as much is believed as can be.
    one = replace(one, ordered=min(one.ordered, now), first=min(one.first, now), last=min(one.last, now))
    one = replace(one, since=min(one.since, now), until=min(one.until, now + LONGEST_PAUSE), unused=0.0)
    spots = spots_of(one.kind, snapshot) if one.kind and one.failed else 0
    if spots > one.spots:  # it can run where it could not
        one = one.resumed()
    one = _come_back(one, use_of(account), snapshot, now, settings)
    if one.back or one.settled:
        failed = one.failed
        one = _judged(one, account, now, settings, ended)
        if one.kind and one.failed > failed:
            one = replace(one, spots=spots_of(one.kind, snapshot), closed=True)
    if one.kind:
        return replace(one, held=account.cores_wanted, held_jobs=jobs_of(account)) if one.closed else one
    jobs = jobs_of(account)
    return replace(one, held=min(one.held, account.cores_wanted), held_jobs=min(one.held_jobs, jobs))


def _come_back(one: UnmetDemand, use: float, snapshot: Snapshot, now: int, settings: ReclaimSettings) -> UnmetDemand:
    """Add what has come back by now, what the account uses, and what others took of it."""
    running = {pilot.run: pilot for pilot in snapshot.pilots if pilot.run in one.runs}
    gone = [part for run, part in one.runs.items() if run not in running]
    # One that does not show its order yet may have it; later it was refused or withdrawn.
    new = now < one.ordered + settings.time_to_start
    stands = {run: one.runs[run] for run, it in running.items() if it.deadline is not None or it.leaving or new}
    if gone and not one.back:
        one = replace(one, base=one.use, left=min(one.looked, now), first=now)
    if gone:
        nodes = tuple(sorted({*one.nodes, *(node for part in gone for node in part.node.split())}))
        one = replace(one, whole=one.whole + sum(part.whole for part in gone), nodes=nodes, last=now)
        one = replace(one, back=one.back + sum(part.cores for part in gone))
    if one.back:
        use = _started(one, snapshot) if one.kind else use
        one = replace(one, peak=max(one.peak, use), others=max(one.others, _others(one, snapshot)))
    return replace(one, runs=stands, use=0.0 if one.kind else use, looked=now)


def _started(one: UnmetDemand, snapshot: Snapshot) -> float:
    """Return the cores of the account's jobs that have started on the nodes where cores came back."""
    return sum(
        pilot.cores_on(one.nodes)
        for pilot in snapshot.pilots
        if pilot.account == one.account and pilot.started >= one.left
    )


def _others(one: UnmetDemand, snapshot: Snapshot) -> float:
    """Return the cores that other accounts not over quota have taken since on the nodes where cores came back."""
    over = {account.name for account in snapshot.accounts if account.cores_in_use > account.cores_owed + _ROUNDING}
    return sum(
        pilot.cores_on(one.nodes)
        for pilot in snapshot.pilots
        if pilot.started >= one.left and pilot.account != one.account and pilot.account not in over
    )


def _judged(
    one: UnmetDemand, account: Account, now: int, settings: ReclaimSettings, ended: CoresOfEnded
) -> UnmetDemand:
    """Decide on the round when it is due: what could not serve even one job of the account's proves nothing yet."""
    back, gained, wait = one.settled + one.back, one.served + one.gained, settings.time_to_start
    wasted = one.wasted + one.idle
    # A piece that idled until its room was whole was used in the end.
    over = replace(one.without_round(), unused=max(0.0, min(wasted, back - gained)))
    if gained >= back - _ROUNDING:
        return _helped(over, now)
    if one.back and now < min(one.last + wait, one.first + _LONGEST_ROUND * wait):
        return one
    if 2 * gained < back and 2 * wasted > back:
        unseen = ended(one)
        if unseen is None:
            return over
        gained, wasted = gained + unseen, wasted - unseen
    vanished = owed(account) <= 0  # nobody waits any more: whether that was right is not known
    if vanished and (2 * gained >= back or 2 * wasted <= back):
        return over
    if vanished and not one.vain:  # once; whose jobs go whenever a round ends takes cores for nothing, too
        return replace(over, vain=wasted, since=now, until=now)
    if not vanished and back + _ROUNDING < account.cores_per_job:
        return replace(over, settled=back, served=gained, wasted=wasted, unused=0.0)
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
    # Orders that stand are withdrawn, or prove nothing about what comes during the pause.
    return replace(over, runs={}, until=now + pause, held=account.cores_wanted, held_jobs=jobs, closed=closed)


def _helped(over: UnmetDemand, now: int) -> UnmetDemand:
    """End a round that helped: one within a pause was for other jobs than those that do not count."""
    if now < over.until and not over.kind:
        return over
    return replace(over.resumed(), spots=over.spots)

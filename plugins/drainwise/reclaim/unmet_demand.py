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

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import ReclaimSettings

FAILED_ROUNDS = 2
FIRST_PAUSE = 900
"""Seconds for which demand that cores did not serve does not count, at first."""
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
class Round:
    """Cores that came back for one account or kind of jobs, and what became of them. In cores, times in UNIX s.

    back: cores that came back on `nodes`, in pilots of `whole` cores, after `left` and as was seen from `first` to
    `last`; base: the account's use before, peak: the most that it has used since; others: the most that other accounts
    under their quota have started there. settled: cores that came back earlier in the same round; served: by how much
    the use grew for them; wasted: what nobody under quota used of them.
    """

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

    @property
    def gained(self) -> float:
        """Cores by which the use has grown since `back` came back."""
        return max(0.0, self.peak - self.base)

    @property
    def idle(self) -> float:
        """Cores of `back` that no account under its quota uses: they lie idle or went to others."""
        return max(0.0, min(self.back - self.gained, self.whole - self.others - self.gained))

    @property
    def back_in_all(self) -> float:
        """Cores that came back in the whole round."""
        return self.settled + self.back

    @property
    def gained_in_all(self) -> float:
        """Cores by which the use has grown in the whole round."""
        return self.served + self.gained

    def coming(self, free: float) -> float:
        """Return the cores of the whole round that are neither in use nor among `free` ones."""
        return max(0.0, self.back_in_all - self.gained_in_all - free)


@dataclass(frozen=True)
class UnmetDemand:
    """What is remembered of one account that orders were given for. In cores, times in UNIX s.

    runs: the orders that stand for it; ordered: when the last was given. use: what the account used when it was looked
    at last, at `looked`. round: what has come back since the last round was judged.
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
    round: Round = Round()
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

    def without(self, run: str) -> UnmetDemand:
        """Return the unmet demand without an order that was not given."""
        if run not in self.runs:
            return self
        return replace(self, runs={name: part for name, part in self.runs.items() if name != run})

    def resumed(self) -> UnmetDemand:
        """Return the unmet demand as if no round had failed: all of the demand counts again."""
        return replace(self, failed=0, vain=0.0, since=0, until=0, held=0.0, held_jobs=0.0, closed=False, spots=0)


CoresOfEnded = Callable[[UnmetDemand], Optional[float]]
"""Tells the cores of jobs of a round that came and went between two looks; None where that is not known now."""


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
    left = {name: cores - stands.get(name, 0.0) for name, cores in wants.items()}
    waiting = {name: cores for name, cores in left.items() if cores > 0} or wants
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
    uses = {one.name: _use_of(one) for one in snapshot.accounts}
    new = {one.name: UnmetDemand(one.account, kind=one.name) for one in snapshot.kinds or ()}
    before = {name: known.get(name) or new.get(name) or UnmetDemand(name) for name in parts}
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
    ended: CoresOfEnded | None = None,
) -> dict[str, UnmetDemand]:
    """Return the unmet demand after a look at `now` (UNIX s), without accounts of which nothing need be remembered.

    blind: since when (UNIX s) no look succeeded, None where the last one did. Once that is as long as jobs are given to
    start, rounds in it count for nothing. ended: asked where a round would have failed by what was seen; None: nobody
    tells.
    """
    if not known:
        return {}
    look = _Look(known, snapshot, now, settings)
    if blind is not None and now - blind >= settings.time_to_start:
        known = {name: replace(one, round=Round(), runs=look.running(one)) for name, one in known.items()}
    after = {name: look.watched(one, ended) for name, one in known.items()}
    return {
        name: one
        for name, one in after.items()
        if one.runs or one.round.back_in_all or one.unused or now < one.until + LONGEST_PAUSE
    }


class _Look:
    """What one snapshot shows of those that orders were given for: what has come back, and whether it helped."""

    def __init__(
        self, known: Mapping[str, UnmetDemand], snapshot: Snapshot, now: int, settings: ReclaimSettings
    ) -> None:
        self._now, self._settings = now, settings
        kinds = snapshot.kinds or ()
        self._accounts = {one.name: one for one in (*snapshot.accounts, *map(kind_as_account, kinds))}
        self._over = {one.name for one in snapshot.accounts if one.cores_in_use > one.cores_owed + _ROUNDING}
        places = Counter(place.node_class for place in snapshot.places)
        self._spots = {kind.name: sum(places[name] for name in kind.classes) for kind in kinds}
        self._running = {pilot.run: pilot for pilot in snapshot.pilots}
        nodes = {node for one in known.values() for node in (*one.round.nodes, *_nodes_of(one.runs.values()))}
        self._on_nodes = defaultdict[str, "list[tuple[Pilot, int]]"](list)
        for pilot in snapshot.pilots:
            for node in nodes.intersection(pilot.nodes):
                self._on_nodes[node].append((pilot, pilot.cores_on((node,))))

    def running(self, one: UnmetDemand) -> dict[str, AccountPart]:
        """Return the orders whose pilots are there."""
        return {run: part for run, part in one.runs.items() if run in self._running}

    def watched(self, one: UnmetDemand, ended: CoresOfEnded | None) -> UnmetDemand:
        """Return one account's unmet demand: what has come back, whether it helped, and what remains paused."""
        now, account = self._now, self._accounts.get(one.key) or Account(one.key, 0.0, 0.0, 0.0, 0.0)
        # Of times that lie ahead since the clock was set back only as much is believed as can be.
        came = replace(one.round, first=min(one.round.first, now), last=min(one.round.last, now))
        since, until = min(one.since, now), min(one.until, now + LONGEST_PAUSE)
        one = replace(one, ordered=min(one.ordered, now), round=came, since=since, until=until, unused=0.0)
        if one.failed and self._spots.get(one.kind, 0) > one.spots:  # it can run where it could not
            one = one.resumed()
        one = self._with_back(one, account)
        if one.round.back_in_all:
            one = self._judged(one, account, ended)
        held, jobs = account.cores_wanted, jobs_of(account)
        if one.kind and one.closed:
            return replace(one, held=held, held_jobs=jobs)
        return replace(one, held=min(one.held, held), held_jobs=min(one.held_jobs, jobs))

    def _with_back(self, one: UnmetDemand, account: Account) -> UnmetDemand:
        """Add what has come back by now, what the account uses, and what others took of it."""
        now, came, use = self._now, one.round, 0.0 if one.kind else _use_of(account)
        # One that does not show its order yet may have it; later it was refused or withdrawn.
        new, pilots = now < one.ordered + self._settings.time_to_start, self._running
        running = self.running(one).items()
        stands = {run: part for run, part in running if new or pilots[run].deadline is not None or pilots[run].leaving}
        if gone := [part for run, part in one.runs.items() if run not in pilots]:
            if not came.back:
                came = replace(came, base=one.use, left=min(one.looked, now), first=now)
            whole, back = sum(part.whole for part in gone), sum(part.cores for part in gone)
            nodes = tuple(sorted({*came.nodes, *_nodes_of(gone)}))
            came = replace(came, whole=came.whole + whole, back=came.back + back, nodes=nodes, last=now)
        if came.back:
            own = others = 0
            for pilot, cores in (held for node in came.nodes for held in self._on_nodes[node]):
                if pilot.started >= came.left and pilot.account == one.account:
                    own += cores
                elif pilot.started >= came.left and pilot.account not in self._over:
                    others += cores
            peak = max(came.peak, own if one.kind else use)
            came = replace(came, peak=peak, others=max(came.others, others))
        return replace(one, runs=stands, round=came, use=use, looked=now)

    def _judged(self, one: UnmetDemand, account: Account, ended: CoresOfEnded | None) -> UnmetDemand:
        """Decide on the round when it is due: what could not serve even one job of the account's proves nothing yet."""
        now, came, wait = self._now, one.round, self._settings.time_to_start
        back, gained, wasted = came.back_in_all, came.gained_in_all, came.wasted + came.idle
        # A piece that idled until its room was whole was used in the end.
        over = replace(one, round=Round(), unused=max(0.0, min(wasted, back - gained)))
        if gained >= back - _ROUNDING:
            return _helped(over, now)
        if came.back and now < min(came.last + wait, came.first + _LONGEST_ROUND * wait):
            return one
        if 2 * gained < back and 2 * wasted > back:
            unseen = 0.0 if ended is None else ended(one)
            if unseen is None:
                return over
            gained, wasted = gained + unseen, max(0.0, wasted - unseen)
        helps, is_lost = 2 * gained >= back, 2 * wasted > back
        if owed(account) <= 0:  # nobody waits any more: whether that was right is not known
            if helps or not is_lost:
                return over
            if not one.vain:  # once; whose jobs go whenever a round ends takes cores for nothing, too
                return replace(over, vain=wasted, since=now, until=now)
        elif back + _ROUNDING < account.cores_per_job:
            return replace(over, round=Round(settled=back, served=gained, wasted=wasted), unused=0.0)
        if helps or not is_lost:
            return _helped(over, now) if helps else over
        failed, closed, spots = one.failed + 1, one.closed or bool(one.kind), self._spots.get(one.kind, 0)
        over = replace(over, failed=failed, vain=one.vain + wasted, since=now, until=now, closed=closed, spots=spots)
        if failed < FAILED_ROUNDS:
            return over
        pause = min(LONGEST_PAUSE, FIRST_PAUSE << min(failed - FAILED_ROUNDS, 20))
        closed = bool(one.kind) or now < one.until  # it was for jobs that came during a pause
        # Orders that stand are withdrawn, or prove nothing about what comes during the pause.
        held, jobs = account.cores_wanted, jobs_of(account)
        return replace(over, runs={}, until=now + pause, held=held, held_jobs=jobs, closed=closed)


def _helped(over: UnmetDemand, now: int) -> UnmetDemand:
    """End a round that helped: one within a pause was for other jobs than those that do not count."""
    if now < over.until and not over.kind:
        return over
    return replace(over.resumed(), spots=over.spots)


def _nodes_of(parts: Iterable[AccountPart]) -> Iterator[str]:
    return (node for part in parts for node in part.node.split())


def _use_of(account: Account) -> float:
    """Return the cores that the account's jobs hold."""
    return account.cores_in_use if account.cores_running is None else account.cores_running

"""Define a batch system's facts and what the reclaim agent can have it do: the `Pool` protocol.

Every batch system's pool side gives these facts; `reclaim` decides on them and knows no batch system.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drainwise.facts.clients import PAPER
from drainwise.pilotad.observation import Observation
from drainwise.pilotad.report import PilotReport
from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.identity import PilotIdentity
from drainwise.pool.job_kinds import JobKind, Place


@dataclass(frozen=True)
class Piece:
    """What a pilot of several nodes `holds` on one of them, its `node`; place: that gets it back, "" for none."""

    node: str
    place: str
    holds: Amounts


@dataclass(frozen=True)
class Pilot:
    """One running pilot job: a lease of cores on one node, or on several at once, which all go together.

    `run` names this run of the job and no other (job id and start), so that an order can never reach the next run or
    the next job in the same place. `name` is what an admin types to find it. `account` is the account whose quota it
    uses, `user` its owner. Times are UNIX seconds; `deadline` is set when it was already ordered to end by then,
    `leaving` when the batch system already ends it. `report` is None when the pilot is silent; the report is a user's
    claim and not yet bounded. `contradictory` when the node found that it contradicts itself and kept its values back.
    `cannot` says why no order can reach it or it would not know of one, "" when it can. `vacate` is how
    long before a deadline (s) the batch system begins to end just this one, None where that is as for all. `heard` is
    when the batch system last heard from its node, None where that was at the snapshot. `unanswered` is the agent's
    own: the deadline of an order to it that nobody answered and that may still be carried out. `place` names the place
    that gets back what it `holds` when it goes; "" and None where that is not known, and then only its cores count.
    `seen` is what its node saw of its payloads, None where it does not tell.
    `reserved` is the agent's own: it goes for a request or its node closes, so what it holds is for nobody who waits.
    `identity` says who sent it, None where nobody tells; it is shown, and nothing is decided by it.
    `client` is its profile in `facts.clients`, by the site's rows.
    `pieces` is what one of several nodes holds on each, where that is known; `place` and `holds` are "" and None then.
    `returned` are cores of its lease that it goes without, and that are none of its `cores`: it has returned them, or
    wants them again and others hold them still. `can_return` is how many of its `cores` it can return, too, and go on:
    0 where it cannot, or where its batch system could not lend them.
    `traits` are texts of its job, by the keys of a site's conditions (`facts.scope_rules`): compared, never shown.
    `min_age` is the agent's own: it may be ordered so many seconds after its start, None where that is as for all.
    `saved` is when what it had done last was saved by a checkpoint, `next_save` when the next should be, as far as its
    batch system tells: None where it does not. The job's owner may be able to set both, so they count as its claims do.
    `asked` is how many of its lease it is asked to have returned in all, 0 where no such wish stands.
    `billed` is what its batch system bills for all that it holds, per unit of time, None where it does not
    tell or that is its cores.
    `lead` is set where it is requeued `vacate` before the deadline of an order: so many seconds earlier it is warned.
    """

    run: str
    name: str
    node: str
    account: str
    user: str
    cores: int
    started: int
    lease_end: int | None = None
    report: PilotReport | None = None
    contradictory: bool = False
    deadline: int | None = None
    leaving: bool = False
    cannot: str = ""
    vacate: int | None = None
    heard: int | None = None
    unanswered: int | None = None
    place: str = ""
    holds: Amounts | None = None
    reserved: bool = False
    identity: PilotIdentity | None = None
    pieces: tuple[Piece, ...] = ()
    client: str = PAPER.name
    seen: Observation | None = None
    returned: int = 0
    can_return: int = 0
    asked: int = 0
    traits: tuple[tuple[str, tuple[str, ...]], ...] = ()
    min_age: int | None = None
    saved: int | None = None
    next_save: int | None = None
    lead: int | None = None
    billed: float | None = None

    def due(self, deadline: int) -> tuple[int, ...]:
        """Return when it is warned and requeued by an order with this deadline (UNIX s); () where it just ends."""
        requeued = deadline - (self.vacate or 0)
        return () if self.lead is None else (requeued - self.lead, requeued)

    @property
    def returning(self) -> int:
        """Cores that it was asked for and holds still."""
        return max(0, self.asked - self.returned)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes on which it runs, as far as they are known."""
        return tuple(one.node for one in self.pieces) or (self.node,)

    @property
    def held(self) -> Amounts:
        """What it holds on all its nodes, as far as that is known."""
        return sum_of(one for one in (self.holds, *(piece.holds for piece in self.pieces)) if one is not None)

    @property
    def gpus(self) -> int:
        """GPUs that it holds, as far as they are known."""
        return self.held.gpus

    def cores_on(self, nodes: Collection[str]) -> int:
        """Return the cores that it has on these nodes."""
        if self.pieces:
            return sum(one.holds.cores for one in self.pieces if one.node in nodes)
        return self.cores if self.node in nodes else 0

    def returns(self) -> Iterator[tuple[str, Amounts]]:
        """Yield the places that get something back when it goes, and what; none where that is not known."""
        if self.place and self.holds is not None:
            yield self.place, self.holds
        for one in self.pieces:
            if one.place:
                yield one.place, one.holds


@dataclass(frozen=True)
class Account:
    """One account (accounting group or user) among which the site shares its cores.

    `cores_in_use` and `cores_owed` are in cores; `cores_owed` is the quota, or the fair share where there are none.
    `cores_wanted` is its idle demand that would run now if cores were free, in jobs of `cores_per_job` on average.
    `priority` is the batch system's effective priority: a larger number is a worse priority, as in HTCondor.
    `cores_share` is what it would be owed if all accounts that use or want cores wanted without end: its own share, to
    which nothing is lent that others leave unused; None where that is `cores_owed`. `cores_running` is what its jobs
    hold on the nodes, where the accounting may say more; None where that is `cores_in_use`.
    """

    name: str
    cores_in_use: float
    cores_owed: float
    cores_wanted: float
    priority: float
    cores_per_job: float = 1.0
    cores_share: float | None = None
    cores_running: float | None = None


@dataclass(frozen=True)
class Closure:
    """Nodes on which nothing may run from `start` to `end` (UNIX s; None: for good), as the batch system plans it.

    name: by which the batch system knows it; places: the nodes; reason: what it is, for an administrator.
    """

    name: str
    places: frozenset[str]
    start: int
    end: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Snapshot:
    """One consistent answer of the batch system, taken at `taken` (UNIX seconds).

    `free_cores` are unclaimed cores that the waiting demand could use as they lie (a node's free cores count in whole
    requests). `user_priorities` gives each pilot owner's effective priority (larger is worse): within one account the
    user with the worst gives back first, since claims may only order pilots of the same user. `notices` are sentences
    for the administrator: what was left out of the answer and why. `kinds` are the waiting jobs by what they ask, in
    the order in which they should start, and `places` where they could: those that take new jobs; None where the batch
    system does not tell, and then cores are counted. `closures` are nodes that the batch system itself means to close.
    `versions` are those of drainwise on the nodes, each with the number of its nodes, as far as nodes say it ("": they
    do not); they are shown, and neither saved nor compared, as nothing is decided by them.
    """

    taken: int
    pilots: tuple[Pilot, ...]
    accounts: tuple[Account, ...]
    free_cores: float = 0.0
    user_priorities: Mapping[str, float] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    kinds: tuple[JobKind, ...] | None = None
    places: tuple[Place, ...] = ()
    closures: tuple[Closure, ...] = ()
    versions: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Ending:
    """What the batch system's records say of one run that has ended.

    ended: UNIX seconds. vacated: the batch system ended it, at the end of its lease or because somebody had it ended; a
    pilot that left by itself in time was not. cpu_seconds: CPU time of the whole run, user and system, over all its
    processes; None where the batch system does not tell. by_others: somebody else than its owner had it ended, or its
    node failed, as far as the records tell.
    """

    run: str
    ended: int
    vacated: bool
    cpu_seconds: float | None = None
    by_others: bool = False


class Pool(Protocol):
    """The whole of what the agent may do to a batch system; what some can do beyond it stands in `abilities`."""

    def snapshot(self, now: int) -> Snapshot:
        """Return who runs what, who is owed what, who waits.

        Raises PoolUnreachable on no answer, incomplete answer or a stale one.
        """

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        """Shorten the lease of exactly this run to `deadline` (UNIX seconds); the batch system enforces it.

        A deadline of now is a vacate. Raises RunEnded when the run is no longer where it was, ActionRefused when the
        batch system refuses (RightsRefused: whoever gives orders, whatever the run), PoolUnreachable when it does not
        answer and nothing was sent, OrderUnanswered when it may still be carried out.
        """

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        """Withdraw the order to exactly this run: its lease is as long as before, and the pilot learns of it.

        Nothing is done for a run without an order. Raises as `give_order`; ActionRefused also when the batch system
        cannot.
        """

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        """Return how these runs ended; one whose end is not (yet) known is absent, whether it runs or was forgotten.

        Raises PoolUnreachable when the records cannot be had.
        """

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        """Finish what the batch system does not finish by itself, once in each acting cycle; return what was done.

        It gives no new order: it ends what is overdue and removes what earlier orders left behind. Raises PoolError
        when that cannot be found out.
        """

"""What a batch system tells the reclaim agent and what it can be asked: the facts and the `Pool` protocol.

Every batch system's pool side gives these facts; `reclaim` decides on them and knows no batch system.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drainwise.pilotad.report import PilotReport


@dataclass(frozen=True)
class Pilot:
    """One running pilot job: a lease of cores on one node.

    `run` names this run of the job and no other (job id and start), so that an order can never reach the next run or
    the next job in the same place. `name` is what an admin types to find it. `principal` is the account whose quota it
    uses, `user` its owner. Times are UNIX seconds; `deadline` is set when it was already asked to be gone by then,
    `leaving` when the batch system already ends it. `report` is None when the pilot is silent; the report is a user's
    word and not yet bounded. `contradictory` when the node found that it contradicts itself and kept its values back.
    `cannot` says why no order can reach it or it could not be told of one, "" when it can be asked. `vacate` is how
    long before a deadline (s) the batch system begins to end just this one, None where that is as for all.
    """

    run: str
    name: str
    node: str
    principal: str
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


@dataclass(frozen=True)
class Principal:
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
class Snapshot:
    """One consistent answer of the batch system, taken at `taken` (UNIX seconds).

    `free_cores` are unclaimed cores that the waiting demand could use as they lie (a node's free cores count in whole
    requests). `user_priorities` gives each pilot owner's effective priority (larger is worse): within one principal the
    user with the worst gives back first, since claims may only order pilots of the same user. `notices` are sentences
    for the administrator: what was left out of the answer and why.
    """

    taken: int
    pilots: tuple[Pilot, ...]
    principals: tuple[Principal, ...]
    free_cores: float = 0.0
    user_priorities: Mapping[str, float] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """What the batch system's records say of one run that has ended.

    ended: UNIX seconds. vacated: the batch system ended it, at the end of its lease or because somebody asked it to; a
    pilot that left by itself in time was not. cpu_seconds: CPU time of the whole run, user and system, over all its
    processes; None where the batch system does not tell.
    """

    run: str
    ended: int
    vacated: bool
    cpu_seconds: float | None = None


class Pool(Protocol):
    """The whole of what the agent may do to a batch system."""

    def snapshot(self, now: int) -> Snapshot:
        """Who runs what, who is owed what, who waits.

        Raises PoolUnreachable on no answer, half an answer or a stale one.
        """

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:
        """Shorten the lease of exactly this run to `deadline` (UNIX seconds); the batch system enforces it.

        A deadline of now is a vacate. Raises ActionRefused when the batch system refuses, PoolUnreachable when it does
        not answer or the run is no longer where it was.
        """

    def take_back(self, pilot: Pilot, reason: str) -> None:
        """Withdraw the order to exactly this run: its lease is as long as before, and the pilot is told.

        Nothing is done for a run that was not asked. Raises ActionRefused when the batch system refuses or cannot,
        PoolUnreachable when it does not answer or the run is no longer where it was.
        """

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        """How these runs ended; one whose end is not (yet) known is absent, whether it runs or was forgotten.

        Raises PoolUnreachable when the records cannot be had.
        """

    def tend(self, snapshot: Snapshot) -> list[str]:
        """Finish what the batch system does not finish by itself, once in each acting cycle; what was done, in words.

        It gives no new order: it ends what is overdue and takes back what earlier orders left behind. Raises PoolError
        when that cannot be found out.
        """

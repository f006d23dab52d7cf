"""The local batch system as a `Pool`: orders stand in the state, the daemon carries them out."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise.local.daemon_lock import STALE_AFTER, require_daemon
from drainwise.local.job import RUNNING, LocalJob, client_of
from drainwise.local.returned import cores_gone_without, owed_by_node
from drainwise.local.schedule import WaitingJob, holdings, load, usable_cores
from drainwise.local.store import LocalState, LocalStore
from drainwise.local.wake import wake_daemon
from drainwise.pilotad.partial_return import PartialReturn, asked
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot


class LocalPool:
    """The local batch system in `directory`; stale_after: seconds without a round after which its daemon is stuck.

    clients: which pilots are of which kind of client. is_for_parts: whether pilots may be asked for parts by who reads
    its snapshots; else these show no wish and nobody who can return any.
    """

    def __init__(
        self,
        directory: str,
        stale_after: float = STALE_AFTER,
        clients: ClientRules | None = None,
        is_for_parts: bool = False,
    ) -> None:
        self._directory, self._stale_after = os.path.abspath(directory), stale_after
        self._clients, self._is_for_parts = clients, is_for_parts

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`: as the daemon's last round left it; refused without a live daemon."""
        with self._open() as store:
            return snapshot_of(store.state(now), now, self._clients, self._is_for_parts)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        """See `Pool`; the order stands in the state when this returns, and the daemon has been woken."""
        self._change(lambda store, now: store.order(pilot.run, deadline, now, reason))

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        """See `Pool`; the daemon, which has been woken, writes the site notice."""
        self._change(lambda store, now: store.withdraw_order(pilot.run, now, reason))

    def ask_for_part(self, pilot: Pilot, part: PartialReturn, reason: str) -> None:
        """Ask a pilot to return some of its cores, and to go on with the others; 0 cores: none any more.

        Raises as `give_order`.
        """
        self._change(lambda store, now: store.ask_for_part(pilot.run, part.cores, part.by, part.chunk, now, reason))

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        """See `Pool`; what has ended is remembered for as long as the daemon's settings say."""
        with self._open() as store:
            jobs = store.ended_runs(runs)
        return {
            job.run: Ending(job.run, int(job.ended), job.was_ended, job.cpu_seconds)
            for job in jobs
            if job.ended is not None and int(job.ended) <= now
        }

    def follow_up(self, snapshot: Snapshot) -> list[str]:  # noqa: ARG002 - the daemon enforces every deadline
        """See `Pool`: nothing is ever left to do."""
        return []

    def _change(self, change: Callable[[LocalStore, float], None]) -> None:
        with self._open() as store:
            change(store, time.time())
        wake_daemon(self._directory)

    def _open(self) -> LocalStore:
        try:
            store = LocalStore(self._directory)
        except UsageError as fault:
            raise PoolUnreachable(str(fault)) from None
        try:
            require_daemon(self._directory, time.time(), self._stale_after)
        except PoolUnreachable:
            store.close()
            raise
        return store


def snapshot_of(
    state: LocalState, now: int, clients: ClientRules | None = None, is_for_parts: bool = False
) -> Snapshot:
    """Return the snapshot of `state` at `now` (UNIX s). A job larger than every node does not count as waiting.

    clients, is_for_parts: as in `LocalPool`. A pilot holds what it has not returned and what others do not hold still.
    """
    largest = max((node.cores for node in state.nodes), default=0)
    waiting = [job for job in state.waiting if job.cores <= largest]
    in_use: Counter[str] = Counter()
    by_user: Counter[str] = Counter()
    returned = state.returned(now)
    owed = owed_by_node(state.live, returned, {node.name: node.cores for node in state.nodes})
    without = cores_gone_without(state.live, returned, state.reports, owed)
    for job in state.live:
        in_use[job.request.account] += job.cores - without.get(job.run, 0)
        by_user[job.request.user] += job.cores - without.get(job.run, 0)
    pilots = [_pilot(job, state, without, clients) for job in state.live if job.state == RUNNING]
    if is_for_parts:
        for place, pilot in enumerate(pilots):
            wish = asked(state.parts.get(pilot.run), pilot.cores + pilot.returned, now, pilot.returned)
            # All but one core can be returned if its statement is believed.
            can_return = pilot.cores - 1 if pilot.run in returned else 0
            pilots[place] = replace(pilot, can_return=can_return, asked=wish.cores)
    return Snapshot(
        taken=now,
        pilots=tuple(pilots),
        accounts=tuple(
            _account(account.name, account.quota, in_use[account.name], waiting) for account in state.accounts
        ),
        free_cores=float(usable_cores(waiting, holdings(state.live, returned), state.nodes, state.accounts, now)),
        user_priorities={user: float(cores) for user, cores in by_user.items()},
    )


def _pilot(job: LocalJob, state: LocalState, without: Mapping[str, int], clients: ClientRules | None) -> Pilot:
    return Pilot(
        run=job.run,
        name=str(job.job_id),
        node=job.node,
        account=job.request.account,
        user=job.request.user,
        cores=job.cores - without.get(job.run, 0),
        started=job.started,
        lease_end=job.wall_end,
        report=state.reports.get(job.run),
        deadline=job.deadline,
        leaving=job.removed or job.term_sent is not None,
        client=client_of(job.request, clients).name,
        returned=without.get(job.run, 0),
    )


def _account(name: str, quota: int, in_use: int, waiting: list[WaitingJob]) -> Account:
    """Its priority is how full its quota is, in per cent: the fuller, the worse."""
    wanted = [job.cores for job in waiting if job.account == name]
    return Account(
        name,
        cores_in_use=float(in_use),
        cores_owed=float(quota),
        cores_wanted=float(sum(wanted)),
        priority=100.0 * load(in_use, quota),
        cores_per_job=sum(wanted) / len(wanted) if wanted else 1.0,
    )

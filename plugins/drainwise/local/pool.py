"""The local batch system as a `Pool`: the state tells and takes the orders, the daemon carries them out."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from drainwise.errors import PoolUnreachable, UsageError
from drainwise.local.presence import STALE_AFTER, require_daemon
from drainwise.local.store import Store
from drainwise.local.view import snapshot_of
from drainwise.local.wake import wake_daemon
from drainwise.pool import Ending, Pilot, Snapshot


class LocalPool:
    """The local batch system in `directory`; stale_after: seconds without a round after which its daemon is stuck."""

    def __init__(self, directory: str, stale_after: float = STALE_AFTER) -> None:
        self._directory, self._stale_after = os.path.abspath(directory), stale_after

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`: what the daemon's last round left; without a live daemon that would be no truth."""
        with self._open() as store:
            return snapshot_of(store.state(now), now)

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:
        """See `Pool`; the order stands in the state when this returns, and the daemon has been woken."""
        with self._open() as store:
            store.order(pilot.run, deadline, time.time(), reason)
        wake_daemon(self._directory)

    def take_back(self, pilot: Pilot, reason: str) -> None:
        """See `Pool`; the daemon, which has been woken, tells the pilot."""
        with self._open() as store:
            store.take_back(pilot.run, time.time(), reason)
        wake_daemon(self._directory)

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        """See `Pool`; what has ended is remembered for as long as the daemon's settings say."""
        with self._open() as store:
            jobs = store.ended_runs(runs)
        return {
            job.run: Ending(job.run, int(job.ended), job.was_ended, job.cpu_seconds)
            for job in jobs
            if job.ended is not None and int(job.ended) <= now
        }

    def tend(self, snapshot: Snapshot) -> list[str]:  # noqa: ARG002 - the daemon enforces every deadline
        """See `Pool`: nothing is ever left to do."""
        return []

    def _open(self) -> Store:
        try:
            store = Store(self._directory)
        except UsageError as fault:
            raise PoolUnreachable(str(fault)) from None
        try:
            require_daemon(self._directory, time.time(), self._stale_after)
        except PoolUnreachable:
            store.close()
            raise
        return store

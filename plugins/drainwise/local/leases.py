"""The live leases as the daemon knows them: started once, found again after a crash, ended, and seen to have ended."""

from __future__ import annotations

import os

from drainwise.errors import PoolError, UsageError
from drainwise.features.facts import HostFacts
from drainwise.local.deadline import KILL, due, why_due
from drainwise.local.job import STARTING, Job
from drainwise.local.lease import (
    LeaseRequest,
    Outcome,
    Process,
    abandon,
    find_lease,
    is_alive,
    kill,
    outcome_of,
    start_lease,
    terminate,
)
from drainwise.local.lease_files import remove_lease
from drainwise.local.ledger import Ledger
from drainwise.local.log import Say
from drainwise.local.processes import has_argument
from drainwise.local.settings import Settings
from drainwise.local.wake import Sleeper

_PATIENT_EVERY = 5.0
"""Seconds between two kills that are waited for."""


class Leases:
    """The keepers of the live jobs, by run."""

    def __init__(self, store: Ledger, sleeper: Sleeper, settings: Settings, say: Say) -> None:
        self._store, self._sleeper, self._settings, self._say = store, sleeper, settings, say
        self._keepers: dict[str, Process] = {}
        self._patient_at = 0.0

    def start(self, job: Job, node_cores: int, planned: int | None, now: float) -> bool:
        """Start a job whose start is written down; False when it was put back. `planned`, `now`: UNIX s."""
        request = LeaseRequest(
            run=job.run,
            job_id=str(job.job_id),
            user=job.request.user,
            account=job.request.account,
            cores=job.cores,
            command=job.request.command,
            wall_limit=job.request.wall_limit,
            environment=job.request.environment,
        )
        directory = self._store.lease_directory(job.run)
        host = HostFacts(total_cpu=node_cores)
        try:
            keeper = start_lease(directory, request, host, planned, job.started, self._settings.kill_wait)
        except UsageError as fault:  # it will not be another one next time
            self._store.ended(job, now, None, None, f"cannot be run: {fault}")
        except (PoolError, OSError) as fault:
            self._put_back(job, directory, now, now + self._settings.retry, str(fault))
        else:
            self._watch(job, keeper)
            self._store.started(job, keeper, now)
            self._say(f"job {job.job_id} of {job.request.account} started on {job.node}, {job.cores} cores")
            return True
        return False

    def settle(self, job: Job, now: float) -> bool:
        """Find the job's lease, or see how it ended; whether it still holds its cores."""
        directory = self._store.lease_directory(job.run)
        keeper = self._keepers.get(job.run) or self._find(job, directory)
        if keeper is not None and is_alive(keeper):
            if job.run not in self._keepers:
                self._watch(job, keeper)
                self._say(f"job {job.job_id} found again on {job.node}")
            if job.state == STARTING:
                self._store.started(job, keeper, now)
            return True
        outcome = outcome_of(directory, keeper)
        if outcome is not None:
            self._end(job, outcome, "")
            return False
        if job.state == STARTING and keeper is None:
            return self._clear_up_start(job, directory, now)
        return self._vanished(job, directory, keeper, now)

    def enforce(self, job: Job, now: float) -> None:
        """End the job when it is due: SIGTERM, later SIGKILL."""
        what, keeper = due(job, now, self._settings.kill_wait), self._keepers.get(job.run)
        if what is None or keeper is None:
            return
        directory = self._store.lease_directory(job.run)
        if what == KILL:
            kill(keeper, directory, self._patience(job, now))
        else:
            terminate(keeper, directory)
        # Written down afterwards: a crash in between makes it hear the signal twice, not never.
        self._store.told_to_end(job, now, what == KILL, why_due(job))
        if job.kill_sent is None:
            self._say(f"job {job.job_id} {'killed' if what == KILL else 'told to end'}: {why_due(job)}")

    def _patience(self, job: Job, now: float) -> float:
        """Seconds to wait for one that a first SIGKILL did not end: for one at a time, the others need the round."""
        if job.kill_sent is None or now < self._patient_at:
            return 0.0
        self._patient_at = now + _PATIENT_EVERY
        return 1.0

    def _watch(self, job: Job, keeper: Process) -> None:
        self._keepers[job.run] = keeper
        self._sleeper.watch(job.run, keeper.pid)

    @staticmethod
    def _find(job: Job, directory: str) -> Process | None:
        """By the lock on the keeper's record or, should the job have removed that, by what is written down of it."""
        keeper = find_lease(directory)
        if keeper is None and job.keeper is not None and is_alive(job.keeper):
            return job.keeper if has_argument(job.keeper.pid, os.fsencode(directory)) else None
        return keeper

    def _clear_up_start(self, job: Job, directory: str, now: float) -> bool:
        """The daemon before us began this start and there is no lease: see that there never will be; it waits again."""
        if abandon(directory):
            self._put_back(job, directory, now, now, "its start was interrupted")
            return False
        if find_lease(directory) is not None or outcome_of(directory) is not None:
            return True  # it has come to be in the meantime: the next round finds it
        return self._vanished(job, directory, None, now)

    def _put_back(self, job: Job, directory: str, now: float, not_before: float, note: str) -> None:
        self._say(f"job {job.job_id} not started: {note}")
        # The next run must have another name, so another second.
        self._store.not_started(job, now, max(not_before, job.started + 1.0), note)
        remove_lease(directory)

    def _vanished(self, job: Job, directory: str, keeper: Process | None, now: float) -> bool:
        """Nobody keeps the lease any more: what is left of it must be gone before its cores are free."""
        if not kill(keeper or job.keeper, directory):
            return True
        outcome = outcome_of(directory)
        self._end(job, outcome or Outcome(None, None, now), "" if outcome else "its keeper vanished")
        return False

    def _end(self, job: Job, outcome: Outcome, fault: str) -> None:
        note = fault or (job.note if job.term_sent is not None else "")
        self._store.ended(job, outcome.ended, outcome.code, outcome.signal, note, outcome.cpu_seconds)
        self._keepers.pop(job.run, None)
        self._sleeper.forget(job.run)
        how = "ended" if outcome.code is None else f"ended with {outcome.code}"
        by = f" by signal {outcome.signal}" if outcome.signal is not None else ""
        self._say(f"job {job.job_id} {how}{by}{f': {note}' if note else ''}")

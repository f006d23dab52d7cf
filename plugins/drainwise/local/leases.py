"""The live leases: started once, found again after a crash, ended, and seen to have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drainwise.facts.errors import PoolError, UsageError
from drainwise.features import host as machine
from drainwise.features.facts import HostFacts
from drainwise.local.job import KILL, STARTING, LocalJob, client_of, due, why_due
from drainwise.local.lease.files import (
    LeaseOutcome,
    abandon,
    find_lease,
    is_supervisor,
    kill,
    outcome_of,
    remove_lease,
    terminate,
)
from drainwise.local.lease.start import LeaseRequest, start_lease
from drainwise.local.store import DaemonStore
from drainwise.local.wake import Sleeper
from drainwise.node.job_features import host_facts
from drainwise.node.settings import NodeSettings, SettingsFile
from drainwise.processes.process import Process, is_alive

Say = Callable[[str], None]
_PATIENT_EVERY = 5.0
"""Seconds between two kills that are waited for."""


@dataclass(frozen=True)
class DaemonSettings:
    """The daemon's settings, in seconds.

    kill_wait: from SIGTERM to SIGKILL of a lease that must end. period: between two looks at the leases; idle_period:
    the same while there is none. patience: what the reads of one round may wait in all for pilots that hold their lock.
    repair: how soon a site notice that a job removed is written again. retry: until a job that could not be
    started is tried again. keep_ended: for how long an ended job and its directory are kept.
    """

    kill_wait: float = 10.0
    period: float = 1.0
    idle_period: float = 5.0
    patience: float = 0.5
    repair: float = 10.0
    retry: float = 10.0
    keep_ended: float = 7 * 86400.0


def made_up_host(cores: int, settings: NodeSettings) -> HostFacts:
    """Return the facts of a node of so many cores: of this machine where it has as many, else of a made-up one.

    A made-up node has as many physical cores, without hyper-threading; what its site says of it is in `settings`.
    """
    physical, logical = machine.cores()
    if cores != (logical or physical):
        physical, logical = cores, 0
    return host_facts(settings, cores, physical, logical)


class Leases:
    """The lease supervisors of the live jobs, by run."""

    def __init__(
        self,
        store: DaemonStore,
        sleeper: Sleeper,
        settings: DaemonSettings,
        file: SettingsFile,
        say: Say,
    ) -> None:
        self._store, self._sleeper, self._settings, self._file, self._say = store, sleeper, settings, file, say
        self._supervisors: dict[str, Process] = {}
        self._patient_at = 0.0

    def start(self, job: LocalJob, node_cores: int, all_cores: int, planned: int | None, now: float) -> bool:
        """Start a job whose start is written down; False when it was put back.

        node_cores: of its node; all_cores: of all nodes, which share this machine. `planned`, `now`: UNIX s.
        """
        asked, settings = job.request, self._file.settings.of_node(job.node)
        request = LeaseRequest(
            str(job.job_id), job.cores, asked.command, asked.wall_limit, asked.environment, all_cores, settings
        )
        directory = self._store.lease_directory(job.run)
        host = made_up_host(node_cores, settings)
        shown = planned if client_of(asked, settings.clients).shutdown_files else None
        try:
            supervisor = start_lease(directory, request, host, shown, job.started, self._settings.kill_wait)
        except UsageError as fault:  # it will not be another one next time
            self._store.ended(job, now, None, None, f"cannot be run: {fault}")
        except (PoolError, OSError) as fault:
            self._put_back(job, directory, now, now + self._settings.retry, str(fault))
        else:
            self._watch(job, supervisor)
            self._store.started(job, supervisor, now)
            self._say(f"job {job.job_id} of {job.request.account} started on {job.node}, {job.cores} cores")
            return True
        return False

    def settle(self, job: LocalJob, now: float) -> bool:
        """Find the job's lease, or see how it ended; whether it still holds its cores."""
        directory = self._store.lease_directory(job.run)
        supervisor = self._supervisors.get(job.run) or self._find(job, directory)
        if supervisor is not None and is_alive(supervisor):
            if job.run not in self._supervisors:
                self._watch(job, supervisor)
                self._say(f"job {job.job_id} found again on {job.node}")
            if job.state == STARTING:
                self._store.started(job, supervisor, now)
            return True
        outcome = outcome_of(directory, supervisor)
        if outcome is not None:
            self._end(job, outcome, "")
            return False
        if job.state == STARTING and supervisor is None:
            return self._clear_up_start(job, directory, now)
        return self._vanished(job, directory, supervisor, now)

    def enforce(self, job: LocalJob, now: float) -> None:
        """End the job when it is due: SIGTERM, later SIGKILL."""
        what, supervisor = due(job, now, self._settings.kill_wait), self._supervisors.get(job.run)
        if what is None or supervisor is None:
            return
        directory = self._store.lease_directory(job.run)
        if what == KILL:
            kill(supervisor, directory, self._patience(job, now))
        else:
            terminate(supervisor, directory)
        # Written down afterwards: after a crash in between it receives the signal twice, not never.
        self._store.signalled(job, now, what == KILL, why_due(job))
        if job.kill_sent is None:
            self._say(f"job {job.job_id} {'killed' if what == KILL else 'sent SIGTERM'}: {why_due(job)}")

    def _patience(self, job: LocalJob, now: float) -> float:
        """Return the seconds to wait for one that a first SIGKILL did not end: for one job at a time."""
        if job.kill_sent is None or now < self._patient_at:
            return 0.0
        self._patient_at = now + _PATIENT_EVERY
        return 1.0

    def _watch(self, job: LocalJob, supervisor: Process) -> None:
        self._supervisors[job.run] = supervisor
        self._sleeper.watch(job.run, supervisor.pid)

    @staticmethod
    def _find(job: LocalJob, directory: str) -> Process | None:
        """Find it by the lock on its record or, should the job have removed that, by what the state has of it."""
        supervisor = find_lease(directory)
        if supervisor is None and job.supervisor is not None and is_supervisor(job.supervisor, directory):
            return job.supervisor
        return supervisor

    def _clear_up_start(self, job: LocalJob, directory: str, now: float) -> bool:
        """Put back a start that an earlier daemon began and that made no lease: see that none ever comes to be."""
        if abandon(directory):
            self._put_back(job, directory, now, now, "its start was interrupted")
            return False
        if find_lease(directory) is not None or outcome_of(directory) is not None:
            return True  # it has come to be in the meantime: the next round finds it
        return self._vanished(job, directory, None, now)

    def _put_back(self, job: LocalJob, directory: str, now: float, not_before: float, note: str) -> None:
        self._say(f"job {job.job_id} not started: {note}")
        # The next run must have another name, so another second.
        self._store.not_started(job, now, max(not_before, job.started + 1.0), note)
        remove_lease(directory)

    def _vanished(self, job: LocalJob, directory: str, supervisor: Process | None, now: float) -> bool:
        """Nobody keeps the lease any more: what is left of it must be gone before its cores are free."""
        if not kill(supervisor or job.supervisor, directory):
            return True
        outcome = outcome_of(directory)
        self._end(job, outcome or LeaseOutcome(None, None, now), "" if outcome else "its lease supervisor vanished")
        return False

    def _end(self, job: LocalJob, outcome: LeaseOutcome, fault: str) -> None:
        note = fault or (job.note if job.term_sent is not None else "")
        self._store.ended(job, outcome.ended, outcome.code, outcome.signal, note, outcome.cpu_seconds)
        self._supervisors.pop(job.run, None)
        self._sleeper.forget(job.run)
        how = "ended" if outcome.code is None else f"ended with {outcome.code}"
        by = f" by signal {outcome.signal}" if outcome.signal is not None else ""
        self._say(f"job {job.job_id} {how}{by}{f': {note}' if note else ''}")

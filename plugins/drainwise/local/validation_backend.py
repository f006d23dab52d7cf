"""The local batch system as the `Backend` of a validation: jobs of one account, known by a variable they carry."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from drainwise.errors import PoolError, UsageError
from drainwise.estimate.validation_backend import ENDED, RUNNING, VANISHED, WAITING, Run, RunState
from drainwise.estimate.validation_left import report_in, said_in
from drainwise.estimate.validation_start import command_here
from drainwise.features.host import memory_bytes
from drainwise.local import job as jobs
from drainwise.local.job import Job, JobRequest
from drainwise.local.lease_files import work_directory
from drainwise.local.presence import find_daemon
from drainwise.local.store import Store
from drainwise.local.wake import wake_daemon

NAME = "DRAINWISE_VALIDATION_RUN"
"""The variable of a job that says which run it is."""

_MB = 10**6


class LocalValidationBackend:
    """Runs as jobs of `account`, called `user`'s, in the local batch system of `directory`. See `Backend`."""

    first_pause = 0.1

    def __init__(self, directory: str, account: str, user: str) -> None:
        self._directory, self._account, self._user = os.path.abspath(directory), account, user

    def refusal(self, run: Run) -> str:
        """See `Backend`: no such account, no node so large, or more memory than this machine has."""
        with self._store() as store:
            known = [account.name for account in store.accounts()]
            largest = max((node.cores for node in store.nodes()), default=0)
        if self._account not in known:
            made = f"`drainwise local account {self._account} --quota CORES` makes it"
            return f"there is no account {self._account}; {made}"
        if not largest:
            return "it has no nodes yet; `drainwise local start` makes them"
        if run.cores > largest:
            return f"the largest node has {largest} cores"
        there = memory_bytes()
        if there is not None and run.memory * _MB > there:
            return f"it needs {run.memory} MB, this machine has {there // _MB}"
        return ""

    def doubt(self, counts: Sequence[int]) -> str:
        """See `Backend`.

        Cores are counted here and not bound: runs that share too few of them look as if they could not use more.
        """
        usable, wanted = len(os.sched_getaffinity(0)), max(sum(counts), 1)
        if wanted <= usable:
            return ""
        runs = " + ".join(map(str, counts)) or "1"
        return f"runs of {runs} cores share the {usable} of this machine: their CPU efficiency comes out too low"

    def find(self, name: str) -> str | None:
        """See `Backend`."""
        with self._store() as store:
            found = [job.job_id for job in store.jobs(ended=True) if job.request.environment.get(NAME) == name]
        return str(found[0]) if found else None

    def start(self, run: Run) -> str:
        """See `Backend`."""
        request = JobRequest(
            account=self._account,
            user=self._user,
            cores=run.cores,
            command=command_here(run),
            wall_limit=run.wall_limit,
            environment={**run.environment, NAME: run.name},
        )
        with self._store() as store:
            [job_id] = store.submit(request, time.time())
        wake_daemon(self._directory)
        return str(job_id)

    def poll(self, handle: str, name: str) -> RunState:
        """See `Backend`."""
        with self._store() as store:
            job = _own(store, handle, name)
            if job is None:
                return RunState(VANISHED, note=f"job {handle} is not known any more")
            if job.state != jobs.ENDED:
                return RunState(WAITING if job.state == jobs.WAITING else RUNNING, note=job.note or self._unserved())
            work = work_directory(store.lease_directory(job.run)) if job.run else ""
        if job.code is None and job.signal is None and not job.was_ended and job.run:
            return RunState(VANISHED, note=job.note)
        said = said_in(f"{work}/err") if work else ""
        return RunState(ENDED, job.code, _why(job), report_in(work), said)

    def kill(self, handle: str, name: str) -> None:
        """See `Backend`."""
        with self._store() as store:
            job = _own(store, handle, name)
            if job is not None and job.state != jobs.ENDED:
                store.remove([job.job_id], time.time())
        wake_daemon(self._directory)

    def _unserved(self) -> str:
        """What is said while nobody serves the jobs; leases go on, and the next daemon finds them again."""
        there = find_daemon(self._directory) is not None
        return "" if there else f"no daemon serves {self._directory}: `drainwise local start` it"

    def _store(self) -> Store:
        try:
            return Store(self._directory)
        except UsageError as fault:
            raise PoolError(str(fault)) from None


def _own(store: Store, handle: str, name: str) -> Job | None:
    """The job, if it is still the run of that name: in a state made anew its number may be another's."""
    job = store.job(int(handle)) if handle.isascii() and handle.isdigit() and len(handle) < 19 else None
    return job if job is not None and job.request.environment.get(NAME) == name else None


def _why(job: Job) -> str:
    """Why it did not end with 0, in words; empty for one that ended by itself with a code."""
    if job.code is not None and not job.was_ended:
        return ""
    how = f"ended by signal {job.signal}" if job.signal is not None else f"ended with {job.code}"
    if job.removed and not job.run:
        how = "removed before it started"
    return f"{how}: {job.note}" if job.note and job.note != how else how

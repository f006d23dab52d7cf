"""The launcher's jobs in the local batch system: jobs of one account, found again by a variable that they carry.

They outlive whoever submitted them, and wait for cores as all jobs there do. Cores alone are counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence

from drainwise.common.typed_table import in_file, read_table, text
from drainwise.facts.errors import ActionRefused, PoolUnreachable, UsageError
from drainwise.features.host import memory_bytes
from drainwise.local import job as jobs
from drainwise.local.daemon_lock import find_daemon
from drainwise.local.job import LONGEST_WALL_LIMIT, JobRequest, LocalJob, login_name
from drainwise.local.store import LocalStore
from drainwise.local.system import default_directory
from drainwise.local.wake import wake_daemon
from drainwise_launch.backend import (
    DEFAULT_MAX_QUEUED,
    DONE,
    RUNNING,
    SIGNALLED,
    VANISHED,
    WAITING,
    JobState,
    LaunchPlace,
    Queueing,
    Start,
)
from drainwise_launch.choice.resources import Resources
from drainwise_launch.job_script import NOT_BEGUN

NAME = "local-batch"
TAG_VARIABLE = "DRAINWISE_LOCAL_TAG"
"""The variable of a job that holds the launcher's tag."""
REMOVED = SIGNALLED + 15
"""Code of a job that was removed before it started."""

_KINDS = dict.fromkeys(("directory", "account", "user"), text(4096, 1))
_SCRIPT = f'cd -- "$0" && exec >>"$1" 2>&1 </dev/null || exit {NOT_BEGUN}; shift; exec "$@"'
_LOOK = 0.05  # seconds
_MOST_PRIORITY = 1_000_000
_MIB = 1 << 20


def open_backend(settings: Mapping[str, object], options: str, place: LaunchPlace) -> LocalBatchBackend:
    """Open the local batch system that the table [backends.local-batch] of `place.file` names; `options`: none.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    if options.strip():
        raise UsageError(f"--backend-options: {NAME} has none")
    table = {"directory": default_directory(), **settings}
    found = read_table(table, _KINDS, in_file(place.file, f"backends.{NAME}"))
    user = found.get("user") or login_name()
    return LocalBatchBackend(found["directory"], found.get("account") or user, user, place.state)


def doubt(counts: Sequence[int]) -> str:
    """Say why CPU efficiencies measured on `counts` cores at the same time say little; empty where they do.

    Cores are counted here and not bound: jobs that share too few of them look as if they could not use more.
    """
    usable, wanted = len(os.sched_getaffinity(0)), max(sum(counts), 1)
    if wanted <= usable:
        return ""
    runs = " + ".join(map(str, counts)) or "1"
    return f"runs of {runs} cores share the {usable} of this machine: their CPU efficiency comes out too low"


class LocalBatchBackend(Queueing):
    """Jobs of `account`, called `user`'s, in the local batch system of `directory`. See `Backend`.

    state: what all tags begin with. In a state made anew a job's number may be another's: one without such a tag is.
    """

    name = NAME
    max_queued = DEFAULT_MAX_QUEUED

    def __init__(self, directory: str, account: str, user: str, state: str = "") -> None:
        self._directory, self._account, self._user, self._state = os.path.abspath(directory), account, user, state
        self._began = time.time()
        self._store = self._opened()
        self._changes = -1

    def fits(self, resources: Resources) -> str:
        """See `Backend`: no such account, no node so large, more memory than this machine has."""
        if resources.others:
            return f"{resources.others[0][0]}: the local batch system counts cores alone"
        store = self._here()
        if self._account not in [account.name for account in store.accounts()]:
            made = f"`drainwise local account {self._account} --quota CORES` makes it"
            return f"there is no account {self._account}; {made}"
        largest = max((node.cores for node in store.nodes()), default=0)
        if not largest:
            return "it has no nodes yet; `drainwise local start` makes them"
        if resources.cpu > largest:
            return f"the largest node has {largest} cores"
        there = memory_bytes()
        if there is not None and resources.mem * _MIB > there:
            return f"it needs {resources.mem} MiB, this machine has {there // _MIB}"
        return ""

    def start(self, job: Start) -> str:
        """See `Backend`. Its priority there: how much sooner than this backend was opened it should start."""
        sooner = max(-_MOST_PRIORITY, min(_MOST_PRIORITY, int(self._began - job.priority)))
        request = JobRequest(
            account=self._account,
            user=self._user,
            cores=job.resources.cpu,
            command=("/bin/sh", "-c", _SCRIPT, job.cwd, job.stdout, *job.argv),
            wall_limit=min(job.wall_limit or LONGEST_WALL_LIMIT, LONGEST_WALL_LIMIT),
            priority=sooner,
            environment={**job.environment, TAG_VARIABLE: job.tag},
        )
        try:
            [job_id] = self._here().submit(request, time.time())
        except UsageError as fault:
            raise ActionRefused(str(fault)) from None
        wake_daemon(self._directory)
        return str(job_id)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        found = {_tag(job): str(job.job_id) for job in reversed(self._here().jobs(ended=True))}
        return {tag: found[tag] for tag in tags if tag in found}

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """See `Backend`."""
        store = self._here()
        self._changes = store.changes_by_others()
        return {one: self._state_of(self._job(store, one)) for one in ids}

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`."""
        store = self._here()
        found = [self._job(store, one) for one in ids]
        store.remove([job.job_id for job in found if job is not None and job.state != jobs.ENDED], time.time())
        wake_daemon(self._directory)

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. A job keeps the priority that it was submitted with."""

    def wait(self, seconds: float) -> None:
        """See `Backend`. Whatever somebody else changes in the state may be an end."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and self._here().changes_by_others() == self._changes:
            time.sleep(min(_LOOK, left))

    def close(self) -> None:
        """See `Backend`."""
        self._store.close()

    def _here(self) -> LocalStore:
        """Return the state that lies in the directory now."""
        if not self._store.in_place():
            self._store.close()
            self._store = self._opened()
            self._changes = -1
        return self._store

    def _opened(self) -> LocalStore:
        try:
            return LocalStore(self._directory)
        except UsageError as fault:
            raise PoolUnreachable(str(fault)) from None

    def _job(self, store: LocalStore, number: str) -> LocalJob | None:
        """Return the job of that number, if it is of this launch."""
        job = store.job(int(number)) if number.isascii() and number.isdigit() and len(number) < 19 else None
        return job if job is not None and _tag(job) and _tag(job).startswith(self._state) else None

    def _state_of(self, job: LocalJob | None) -> JobState:
        if job is None:
            return JobState(VANISHED, why="it is not known any more")
        if job.state == jobs.WAITING:
            return JobState(WAITING, why=job.note or self._unserved())
        if job.state != jobs.ENDED:
            return JobState(RUNNING, why=job.note or self._unserved())
        if job.code is None and job.signal is None and not job.was_ended and job.run:
            return JobState(VANISHED, why=job.note)
        wall = None if job.ended is None or not job.run else max(0.0, job.ended - job.started)
        code = REMOVED if job.code is None and job.signal is None else job.code
        code = SIGNALLED + job.signal if code is None and job.signal is not None else code or 0
        if not job.was_ended:
            return JobState(DONE, code, wall, job.cpu_seconds)
        return JobState(DONE, code or REMOVED, wall, job.cpu_seconds, _why(job))

    def _unserved(self) -> str:
        """Say that nobody serves the jobs; leases go on, and the next daemon finds them again."""
        there = find_daemon(self._directory) is not None
        return "" if there else f"no daemon serves {self._directory}: `drainwise local start` it"


def _tag(job: LocalJob) -> str:
    return job.request.environment.get(TAG_VARIABLE, "")


def _why(job: LocalJob) -> str:
    if job.note:
        return job.note
    return "removed before it started" if not job.run else "removed" if job.removed else "its lease was over"

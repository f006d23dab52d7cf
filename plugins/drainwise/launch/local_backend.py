"""This machine as a backend: a pool of what there is, never overshot, and jobs held to what they asked for.

Enforced: CPUs (by affinity, each job on its own), memory (what each process of a job may allocate), scratch (a TMPDIR
of the job's own, looked at every few seconds), the wall limit, and that nothing of a job's process group outlives it.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping

from drainwise.errors import ActionRefused, PoolError, PoolUnreachable, UsageError
from drainwise.launch import backend
from drainwise.launch.backend import RUNNING, Place, Start, State
from drainwise.launch.local_pool import enough, misfit, pool_of
from drainwise.launch.local_process import LocalProcess
from drainwise.launch.resources import CPU, Resources
from drainwise.launch.stray import TAG, end_strays

NAME = "local"
_BLIND = 0.01
"""Seconds between two looks where the kernel does not say when a process ends."""
_PASSING = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ETXTBSY}
_LIMITED = 'ulimit -d "$1" || exit 126; shift; exec "$@"'
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class LocalBackend:
    """`pool`: what there is, by name. scratch: where the TMPDIR of each job is made that asks for tmp.

    state: what all tags begin with; what fled from its job is ended in the end.
    """

    name = NAME
    max_queued = None

    def __init__(self, pool: Mapping[str, int], scratch: str, state: str = "") -> None:
        self.pool = dict(pool)
        self._free = dict(pool)
        self._scratch, self._state_name = scratch, state
        usable = sorted(os.sched_getaffinity(0))
        # More CPUs than there are can only be counted.
        self._cpus = usable if self.pool[CPU] <= len(usable) else []
        self._all_cpus = frozenset(usable)
        self._running: dict[str, LocalProcess] = {}
        self._poll = select.poll()
        self._encoded = {text: os.fsencode(text) for pair in os.environ.items() for text in pair}

    def fits(self, resources: Resources) -> str:
        """See `Backend`."""
        return misfit(resources, self.pool)

    def free(self) -> Mapping[str, int]:
        """See `Backend`."""
        return self._free

    def start(self, job: Start) -> str:
        """See `Backend`. Its id is its tag."""
        if not enough(job.resources, self._free):
            raise PoolUnreachable(f"{job.name}: {misfit(job.resources, self.pool) or 'not free now'}")
        if not _found(job.argv[0], job.cwd, job.environment.get("PATH", os.defpath)):
            raise ActionRefused(f"{job.argv[0][:100]}: there is no such program")
        argv = job.argv
        if job.resources.mem:
            argv = ("/bin/sh", "-c", _LIMITED, job.argv[0], str(job.resources.mem << 10), *argv)
        scratch = self._make_scratch(job)
        cpus = self._cpus[: job.resources.cpu]
        try:
            process = self._spawn(job, argv, self._environment_of(job, scratch), cpus)
        except (OSError, ValueError) as fault:
            if scratch:
                shutil.rmtree(scratch, ignore_errors=True)
            raise _complaint(job, fault) from None
        del self._cpus[: job.resources.cpu]
        self._reserve(job.resources, -1)
        self._running[job.tag] = running = LocalProcess(job, process, cpus, scratch)
        if running.handle is not None:
            self._poll.register(running.handle, select.POLLIN)
        return job.tag

    def _make_scratch(self, job: Start) -> str:
        if not job.resources.tmp:
            return ""
        try:
            return tempfile.mkdtemp(prefix="job-", dir=self._scratch)
        except OSError as fault:
            raise PoolUnreachable(f"{self._scratch}: {fault.strerror}") from None

    def _environment_of(self, job: Start, scratch: str) -> dict[bytes, bytes]:
        """The job's variables as bytes: what most jobs share has been encoded before, which is most of it."""
        variables = {**job.environment, TAG: job.tag, **({"TMPDIR": scratch} if scratch else {})}
        known = self._encoded
        return {
            known.get(name) or os.fsencode(name): known.get(value) or os.fsencode(value)
            for name, value in variables.items()
        }

    def _spawn(
        self, job: Start, argv: tuple[str, ...], environment: Mapping[bytes, bytes], cpus: list[int]
    ) -> subprocess.Popen[bytes]:
        """Inherited from this process, the affinity holds for the job from its first instruction."""
        output = os.open(job.stdout, _OUTPUT, 0o666)
        try:
            if cpus:
                os.sched_setaffinity(0, cpus)
            return subprocess.Popen(
                argv,
                cwd=job.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.close(output)
            if cpus:
                os.sched_setaffinity(0, self._all_cpus)

    def _reserve(self, resources: Resources, sign: int) -> None:
        for name, amount in resources.amounts().items():
            if amount:
                self._free[name] += sign * amount

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`. What an earlier launcher started here was ended when this one began."""
        return {tag: tag for tag in tags if tag in self._running}

    def poll(self, ids: Collection[str]) -> Mapping[str, State]:
        """See `Backend`."""
        now = time.monotonic()
        return {each: self._state(each, now) for each in ids}

    def _state(self, tag: str, now: float) -> State:
        running = self._running.get(tag)
        if running is None:
            return State(backend.VANISHED, why="its launcher was killed, and it was ended")
        if not running.has_ended():
            running.enforce(now)
            return State(RUNNING, wall=now - running.began)
        if running.handle is not None:
            self._poll.unregister(running.handle)
        state = running.reap(now)
        self._cpus += running.cpus
        self._reserve(running.job.resources, 1)
        del self._running[tag]
        return state

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`. SIGTERM to its process group, SIGKILL later, when it is polled."""
        now = time.monotonic()
        for each in ids:
            if each in self._running:
                self._running[each].end(now, "killed")

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Nothing waits here."""

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        if any(running.handle is None for running in self._running.values()):
            seconds = min(seconds, _BLIND)
        self._poll.poll(max(0.0, seconds) * 1000)

    def close(self) -> None:
        """End what runs still, at once: nobody would see how it ends."""
        for running in self._running.values():
            running.kill()
        for tag in list(self._running):
            self._running[tag].wait()
            self._state(tag, time.monotonic())
        if self._state_name:
            end_strays(self._state_name)


def _complaint(job: Start, fault: OSError | ValueError) -> PoolError:
    """Why a job could not be started, and whether that may pass. ValueError: there is a NUL in an argument."""
    if isinstance(fault, ValueError):
        return ActionRefused(f"{job.name}: {fault}")
    what = f"{fault.filename or job.argv[0]}: {fault.strerror}"
    return PoolUnreachable(what) if fault.errno in _PASSING else ActionRefused(what)


def _found(program: str, cwd: str, path: str) -> bool:
    """Whether there is such a program, by path from the job's directory or by PATH."""
    if "/" in program:
        return os.access(os.path.join(cwd, program), os.X_OK)
    return shutil.which(program, path=path) is not None


def open_backend(settings: Mapping[str, object], options: str, place: Place) -> LocalBackend:
    """The local backend, as every room's `open_backend`; what an earlier launcher of this place left is ended.

    Raises UsageError for wrong settings.
    """
    if options.strip():
        raise UsageError("--backend-options: the local backend has none")
    scratch = os.path.join(place.directory, "scratch")
    if place.state:
        end_strays(place.state)
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch, mode=0o700, exist_ok=True)
    return LocalBackend(pool_of(settings, scratch, place.file), scratch, place.state)

"""A job's process on this machine: its limits, how it is ended, how it ended, and what has escaped from it."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
from collections.abc import Container

from drainwise.facts.errors import ActionRefused, PoolError, PoolFull
from drainwise.processes.process import each_bearer, send
from drainwise.processes.supervised import Supervisor
from drainwise_launch.backend import DONE, SIGNALLED, JobState, Start
from drainwise_launch.this_machine.memory_groups import MemoryGroup
from drainwise_launch.this_machine.scratch import Usage

_LIMITED = 'ulimit -d "$1" || exit 126; shift; exec "$@"'
_GROUPED = f'echo 0 > "$1" || exit 126; shift; {_LIMITED}'
_UNLIMITED = 1 << 62
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PASSING = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ETXTBSY}
_PASSING |= {errno.ECONNRESET, errno.EPIPE}  # the supervisor was killed: the next one starts it

KILL_WAIT = 5.0
"""Seconds between SIGTERM and SIGKILL."""


class LocalProcess:
    """The process `pid` was started by `supervisor` at `began` (monotonic clock, s) and leads a session.

    cpus: those it has for itself. scratch: its TMPDIR. group: what limits its memory as a whole. The methods raise
    ConnectionError: its supervisor was killed.
    """

    def __init__(
        self,
        job: Start,
        supervisor: Supervisor,
        pid: int,
        began: float,
        cpus: list[int],
        scratch: str,
        group: MemoryGroup | None = None,
    ) -> None:
        self.job, self.began, self.cpus, self.scratch, self.group = job, began, cpus, scratch, group
        self.supervisor, self._pid = supervisor, pid
        self._usage = Usage(scratch) if job.resources.tmp else None
        self._why = ""
        self._kill_at: float | None = None

    def end_state(self) -> JobState | None:
        """Return how it ended, once; None while it runs. What was left of its group has been killed then."""
        end = self.supervisor.end_of(self._pid)
        if end is None:
            return None
        self.supervisor.forget(self._pid)
        self._look_at_memory()
        status, wall, cpu = end
        signalled = os.WIFSIGNALED(status)
        code = SIGNALLED + os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)
        why = self._why or (f"signal {os.WTERMSIG(status)}" if signalled else "")
        # What was ended for a reason has not succeeded, whatever it made of the signal.
        return JobState(DONE, code or (SIGNALLED + signal.SIGTERM if self._why else 0), wall, cpu, why)

    def _look_at_memory(self) -> None:
        """Find out whether the kernel has killed any of it for its memory."""
        if self.group is not None and not self._why and self.group.kills():
            self._why = f"used more than its memory of {self.job.resources.mem} MB"

    def kill(self) -> None:
        """Send SIGKILL to all of it: its process group, and what is in its memory group."""
        self.supervisor.signal(self._pid, signal.SIGKILL)
        if self.group is not None:
            self.group.kill()

    def end(self, now: float, why: str) -> None:
        """Send SIGTERM now, SIGKILL KILL_WAIT later; a job that has ended by itself has not been ended."""
        if self._kill_at is None and self.supervisor.end_of(self._pid) is None:
            self._kill_at, self._why = now + KILL_WAIT, why
            self.supervisor.signal(self._pid, signal.SIGTERM)
            self.supervisor.signal(self._pid, signal.SIGCONT)  # what has stopped itself receives nothing

    def enforce(self, now: float) -> None:
        """End it where it passes a limit."""
        limit = self.job.wall_limit
        self._look_at_memory()
        if self._why and self._kill_at is None:
            self._kill_at = now  # the kernel has killed some of it already
        if self._kill_at is not None:
            if now >= self._kill_at:
                self.kill()
        elif limit and now - self.began >= limit:
            self.end(now, f"ran for its wall limit of {limit} s")
        elif self._usage is not None:
            used = self._usage.look(now) >> 20
            if used > self.job.resources.tmp:
                self.end(now, f"used {used} MB of scratch, and had asked for {self.job.resources.tmp}")


def program_of(job: Start) -> str:
    """Return the path of its program, by path from its directory or by PATH. Raises ActionRefused: there is none."""
    program, path = job.argv[0], job.environment.get("PATH", os.defpath)
    places = [program] if "/" in program else [f"{each or '.'}/{program}" for each in path.split(os.pathsep)]
    for place in places:
        found = os.path.join(job.cwd, place)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    raise ActionRefused(f"{program[:100]}: there is no such program")


def command_of(job: Start, program: str, group: MemoryGroup | None) -> tuple[str, ...]:
    """Return program and arguments, with any memory limit: of each process, and of the group that it enters."""
    if not job.resources.mem:
        return job.argv
    # A limit that holds already can only be lowered.
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    kilobytes = min(job.resources.mem << 10, (_UNLIMITED if most == resource.RLIM_INFINITY else most) >> 10)
    # By its path, as a name may be an option of `exec`.
    limited = (job.argv[0], str(kilobytes)) if group is None else (job.argv[0], group.entry, str(kilobytes))
    return ("/bin/sh", "-c", _GROUPED if group else _LIMITED, *limited, program, *job.argv[1:])


def opened_output(path: str) -> int:
    """Open the file for what a job prints. Raises OSError; ActionRefused: a FIFO would have us wait for a reader."""
    output = os.open(path, _OUTPUT, 0o666)
    if not stat.S_ISREG(os.fstat(output).st_mode):
        os.close(output)
        raise ActionRefused(f"{path}: not a regular file")
    os.set_blocking(output, True)
    return output


def complaint(job: Start, fault: OSError | ValueError | ActionRefused) -> PoolError:
    """Return why a job could not be started, and whether that may pass. ValueError: there is a NUL in an argument."""
    if isinstance(fault, ActionRefused):
        return fault
    if isinstance(fault, ValueError):
        return ActionRefused(f"{job.name}: {fault}")
    what = f"{fault.filename or job.argv[0]}: {fault.strerror}"
    return PoolFull(what) if fault.errno in _PASSING else ActionRefused(what)


TAG = "DRAINWISE_LAUNCH_TAG"
"""The variable of a job's process that holds its tag."""
_ROUNDS = 10
"""Looks at most."""


def end_escaped(state: str, spared: Container[str] = ()) -> int:
    """Kill every escaped process of a launch, and what they start meanwhile; how many there were.

    state: what all tags of the launch begin with, before a `-`; never empty, which would be every launch's.
    spared: tags of jobs that still run.
    """

    def is_of_launch(value: bytes) -> bool:
        tag = value.decode("ascii", "replace")
        return tag.startswith(f"{state}-") and tag not in spared

    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = set()
        for escaped in each_bearer(TAG, is_of_launch):
            if escaped.pid != os.getpid():
                send(escaped, signal.SIGKILL)
                found.add(escaped.pid)
        if not found:
            break
        ended |= found
    return len(ended)

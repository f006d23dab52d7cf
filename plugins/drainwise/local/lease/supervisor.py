"""The lease supervisor: a small process for each lease, which needs nobody else to do its work.

It forks the job, with a session, a directory and descriptors of its own, and sleeps until something happens. When the
job has ended, or must, it kills all that is left of it. It is the child subreaper of all its descendants (see
`processes.tree`): once it has no child left, the lease is empty, and only then is the outcome recorded.

Started by start.py with a job spec on standard input; imports next to nothing, since the job waits for it.
"""

from __future__ import annotations

import errno
import posix
import sys
import time

from drainwise.local.lease.job_spec import DEFAULT_PATH, read_spec
from drainwise.local.lease.records import WORK, SupervisorRecords, complain
from drainwise.processes.process import birth_of
from drainwise.processes.tree import adopt_orphans, die_with_parent, kill_all_below, reap_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start
KILL_ALL = _signal.SIGUSR1
"""Asks a supervisor to end its lease at once; SIGTERM asks it to terminate the job."""

_AWAITED = (_signal.SIGCHLD, _signal.SIGTERM, KILL_ALL)
_FOREVER = float("inf")


def _take_signals_by_asking() -> None:
    """Block all signals, and undo what was inherited: with SIGCHLD ignored no child would leave an exit code."""
    signals = _signal.valid_signals()
    _signal.pthread_sigmask(_signal.SIG_BLOCK, signals)
    for number in signals - {_signal.SIGKILL, _signal.SIGSTOP}:
        _signal.signal(number, _signal.SIG_DFL)


class LeaseSupervisor:
    """The lease in `directory` (with lease/ and work/ in it), in the process that keeps it.

    kill_wait: seconds from asking the job to terminate to killing everything.
    """

    def __init__(self, directory: str, kill_wait: float) -> None:
        self._directory, self._kill_wait = directory, kill_wait
        self._records = SupervisorRecords(directory)
        self._job = 0
        self._status: int | None = None
        self._ended = 0.0

    def start(self, command: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Start the job; raises OSError when no process can be made."""
        supervisor = posix.getpid()
        self._job = posix.fork()
        if self._job == 0:
            become_job(supervisor, f"{self._directory}/{WORK}", command, environment)
        self._records.write_supervisor(supervisor, birth_of(supervisor), self._job)

    def keep(self) -> None:
        """Stay until the job has ended and everything in the lease is dead, then record the outcome."""
        killing_at: float | None = None
        while self._status is None:
            left = None if killing_at is None else killing_at - time.monotonic()
            got = self._wait(left)
            if got == _signal.SIGTERM:
                posix.kill(self._job, _signal.SIGTERM)  # not reaped yet, so the pid is still the job's
                posix.kill(self._job, _signal.SIGCONT)  # a stopped job would not act on it
                killing_at = killing_at or time.monotonic() + self._kill_wait
            elif got in {0, KILL_ALL}:
                break
            self._reap()
        kill_all_below(_FOREVER, self._reap, self._wait, complain)
        self._write_outcome()

    @staticmethod
    def _wait(seconds: float | None) -> int:
        """Sleep until a signal comes; return it, or 0 when the time is over."""
        if seconds is None:
            return _signal.sigwaitinfo(_AWAITED).si_signo
        found = _signal.sigtimedwait(_AWAITED, max(seconds, 0.0))
        return 0 if found is None else found.si_signo

    def _reap(self) -> bool:
        """Reap, and keep the status of the job; True when this process has no children left at all."""
        return reap_all(self._take)

    def _take(self, pid: int, status: int) -> None:
        if pid == self._job and self._status is None:
            self._status, self._ended = status, time.time()

    def _write_outcome(self) -> None:
        status = self._status or 0
        signal = posix.WTERMSIG(status) if posix.WIFSIGNALED(status) else None
        code = None if signal is not None else posix.WEXITSTATUS(status)
        # Of all who were reaped, and of whom those had reaped: nobody is left who could have used more.
        used = posix.times()
        self._records.write_outcome(code, signal, self._ended, used.children_user + used.children_system)


def _let_go(pid: int) -> None:
    """Report that the job is made, and hold nothing of who started us."""
    try:
        posix.write(1, b"%d %d\n" % (pid, birth_of(pid) or 0))
    except BrokenPipeError:
        complain("who started this lease has not waited for it")
    null = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(null, 0)
    posix.dup2(null, 1)
    posix.close(null)


_OUTPUT = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
_NOT_FOUND, _NOT_RUN = 127, 126  # what a shell's exit code would be


def become_job(supervisor: int, work: str, command: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """Take a session, directory and descriptors of its own, then execute the command."""
    code = _NOT_RUN
    try:
        posix.setsid()
        # A job whose supervisor was killed does not run on.
        if not die_with_parent() or posix.getppid() != supervisor:
            posix._exit(code)
        posix.umask(0o022)
        posix.chdir(work)
        posix.dup2(posix.open("/dev/null", posix.O_RDONLY), 0)
        for name, number in (("out", 1), ("err", 2)):
            posix.dup2(posix.open(name, _OUTPUT, 0o600), number)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        code = _execute(command, environment)
    except OSError as error:
        complain(f"the job cannot be started: {error}")
    posix._exit(code)


def _execute(command: list[bytes], environment: dict[bytes, bytes]) -> int:
    """Become the command, found on the job's own PATH; returns the exit code of a shell that could not."""
    name, directories = command[0], environment.get(b"PATH", DEFAULT_PATH).split(b":")
    paths = [name] if b"/" in name else [b"%b/%b" % (part or b".", name) for part in directories]
    fault: OSError | None = None
    for path in paths:
        try:
            posix.execve(path, command, environment)
        except OSError as error:
            if fault is None and posix.access(
                path, posix.F_OK
            ):  # a directory of the PATH that others may not enter says nothing
                fault = error
    number = errno.ENOENT if fault is None or fault.errno is None else fault.errno
    complain(f"{name.decode('utf-8', 'replace')!a} cannot be run: {posix.strerror(number)}")
    return _NOT_FOUND if fault is None else _NOT_RUN


def main() -> NoReturn:
    """Keep one lease: `DIRECTORY KILL_WAIT` as arguments, a job spec on standard input; answer `PID BIRTH`."""
    try:
        directory, kill_wait = sys.argv[1], float(sys.argv[2])
        command, environment = read_spec(0)
        if posix.fork() != 0:
            posix._exit(0)  # so the supervisor is no child of who started it, and needs nobody to reap it
        _take_signals_by_asking()
        posix.setsid()
        if not adopt_orphans():
            raise OSError("the kernel does not make it a child subreaper")
        supervisor = LeaseSupervisor(directory, kill_wait)
        supervisor.start(command, environment)
        _let_go(posix.getpid())
        supervisor.keep()
    except (OSError, ValueError) as error:
        complain(str(error))
        posix._exit(1)
    posix._exit(0)

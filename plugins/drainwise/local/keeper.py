"""The keeper: the small process that each lease has for itself, and that needs nobody else to do its work.

It starts the job, sleeps until something happens, and when the job has ended, or must, kills whatever there is left
of it. It is the reaper of all its descendants: an orphan of the job becomes the keeper's own child, whatever group or
session it hid in. A child's pid cannot pass to a stranger before it is reaped, so what is killed here is the lease's.
Having no child left is the kernel's own word that the lease is empty; only then is the outcome recorded.

Started by lease.py, which says everything on standard input; imports next to nothing, since the job waits for it.
"""

from __future__ import annotations

import posix
import sys
import time

from drainwise.local.job_process import PR_SET_CHILD_SUBREAPER, become_job, complain, prctl
from drainwise.local.order import read_order
from drainwise.local.processes import Process, birth_of, children_of_this_process, send, send_below
from drainwise.local.records import WORK, Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start

KILL_ALL = _signal.SIGUSR1
"""Asks a keeper to end its lease at once; SIGTERM asks it to terminate the job."""

_HEARD = (_signal.SIGCHLD, _signal.SIGTERM, KILL_ALL)
_WALL = 0x40000000  # __WALL: children that were cloned with another signal than SIGCHLD, too
_FREEZES = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 1.0  # seconds between looks at what does not die at once


def _hear_signals_by_asking() -> None:
    """Block all signals, and undo what was inherited: with SIGCHLD ignored no child would leave an exit code."""
    signals = _signal.valid_signals()
    _signal.pthread_sigmask(_signal.SIG_BLOCK, signals)
    for number in signals - {_signal.SIGKILL, _signal.SIGSTOP}:
        _signal.signal(number, _signal.SIG_DFL)


class Keeper:
    """The lease in `directory` (with lease/ and work/ in it), in the process that keeps it.

    kill_wait: seconds from asking the job to terminate to killing everything.
    """

    def __init__(self, directory: str, kill_wait: float) -> None:
        self._directory, self._kill_wait = directory, kill_wait
        self._records = Records(directory)
        self._group = posix.getpgrp()
        self._job = 0
        self._status: int | None = None
        self._ended = 0.0

    def start(self, command: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Start the job; raises OSError when no process can be made."""
        keeper = posix.getpid()
        self._job = posix.fork()
        if self._job == 0:
            become_job(keeper, f"{self._directory}/{WORK}", command, environment)
        self._records.write_keeper(keeper, birth_of(keeper), self._job)

    def keep(self) -> None:
        """Stay until the job has ended and everything in the lease is dead, then record the outcome."""
        killing_at: float | None = None
        while self._status is None:
            left = None if killing_at is None else killing_at - time.monotonic()
            heard = self._listen(left)
            if heard == _signal.SIGTERM:
                posix.kill(self._job, _signal.SIGTERM)  # not reaped yet, so the pid is still the job's
                posix.kill(self._job, _signal.SIGCONT)  # a stopped job would not hear it
                killing_at = killing_at or time.monotonic() + self._kill_wait
            elif heard in {0, KILL_ALL}:
                break
            self._reap()
        self._end_everything()
        self._write_outcome()

    @staticmethod
    def _listen(seconds: float | None) -> int:
        """Sleep until a signal comes: which one, or 0 when the time is over."""
        if seconds is None:
            return _signal.sigwaitinfo(_HEARD).si_signo
        found = _signal.sigtimedwait(_HEARD, max(seconds, 0.0))
        return 0 if found is None else found.si_signo

    def _reap(self) -> bool:
        """Take note of who died; True when this process has no children left at all."""
        while True:
            try:
                pid, status = posix.waitpid(-1, posix.WNOHANG | _WALL)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._job and self._status is None:
                self._status, self._ended = status, time.time()

    def _end_everything(self) -> None:
        """Kill until nothing is left: children with their groups, whose orphans become children and are next.

        Every other round goes through all descendants at once, as it takes one round for each link of a long line.
        """
        pause, rounds = _FIRST_PAUSE, 0
        while True:
            try:
                for pid in children_of_this_process():
                    self._kill_with_group(pid)
                if rounds % 2 == 1:
                    _freeze_and_kill(posix.getpid())
            except OSError as error:
                complain(f"some of the lease could not be looked at yet: {error}")  # such as no free descriptors
            if self._reap():
                return
            rounds += 1
            heard = self._listen(pause)
            pause = min(pause * 2, _LONGEST_PAUSE) if heard == 0 else _FIRST_PAUSE

    def _kill_with_group(self, pid: int) -> None:
        """One call ends a whole group, however fast it forks. No group reaches out of the sessions of its lease."""
        try:
            group = posix.getpgid(pid)
            if group != self._group:
                posix.killpg(group, _signal.SIGKILL)
            posix.kill(pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # dead, or a set-user-id program, which only root could end

    def _write_outcome(self) -> None:
        status = self._status or 0
        signal = posix.WTERMSIG(status) if posix.WIFSIGNALED(status) else None
        code = None if signal is not None else posix.WEXITSTATUS(status)
        # Of all who were reaped, and of whom those had reaped: nobody is left who could have used more.
        used = posix.times()
        self._records.write_outcome(code, signal, self._ended, used.children_user + used.children_system)


def _freeze_and_kill(pid: int) -> None:
    """Stop what is below `pid` until nothing new is found, then kill it.

    What is only stopped forks no more, frees no place for another, and leaves the processors to this process, which
    otherwise waits for its turn among hundreds.
    """
    known: dict[int, int] = {}
    frozen: list[Process] = []
    for _ in range(_FREEZES):
        new = send_below(pid, _signal.SIGSTOP, known)
        frozen += new
        if not new:
            break
    for member in frozen:
        send(member, _signal.SIGKILL)


def _let_go(pid: int) -> None:
    """Say that the job is made, and hold nothing of who started us."""
    try:
        posix.write(1, b"%d %d\n" % (pid, birth_of(pid) or 0))
    except BrokenPipeError:
        complain("who started this lease has not waited for it")
    null = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(null, 0)
    posix.dup2(null, 1)
    posix.close(null)


def main() -> NoReturn:
    """`DIRECTORY KILL_WAIT` in the arguments, the job on standard input; says `PID BIRTH` on standard output."""
    try:
        directory, kill_wait = sys.argv[1], float(sys.argv[2])
        command, environment = read_order(0)
        if posix.fork() != 0:
            posix._exit(0)  # so the keeper is no child of who started it, and needs nobody to reap it
        _hear_signals_by_asking()
        posix.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        keeper = Keeper(directory, kill_wait)
        keeper.start(command, environment)
        _let_go(posix.getpid())
        keeper.keep()
    except (OSError, ValueError) as error:
        complain(str(error))
        posix._exit(1)
    posix._exit(0)

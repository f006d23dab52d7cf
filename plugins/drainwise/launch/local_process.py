"""A job's process on this machine: its limits, how it is ended, and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from drainwise.launch.backend import DONE, SIGNALLED, Start, State
from drainwise.launch.scratch import Usage

KILL_WAIT = 5.0
"""Seconds between SIGTERM and SIGKILL."""


class LocalProcess:
    """`process` was started at `began` (monotonic clock, s) and leads a session. cpus: those it has for itself.

    scratch: its TMPDIR.
    """

    def __init__(
        self, job: Start, process: subprocess.Popen[bytes], began: float, cpus: list[int], scratch: str
    ) -> None:
        self.job, self.began, self.cpus, self.scratch = job, began, cpus, scratch
        self._process = process
        self._usage = Usage(scratch) if job.resources.tmp else None
        self._why = ""
        self._kill_at: float | None = None
        self.handle: int | None
        try:
            self.handle = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            self.handle = None

    def has_ended(self) -> bool:
        """Whether it has; it is not reaped yet, so that its pid is nobody else's."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self, now: float) -> State:
        """How it ended; what is left of its group is killed."""
        self.kill()
        _, status, used = os.wait4(self._process.pid, 0)
        signalled = os.WIFSIGNALED(status)
        code = SIGNALLED + os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)
        self._process.returncode = code
        if self.handle is not None:
            os.close(self.handle)
        why = self._why or (f"signal {os.WTERMSIG(status)}" if signalled else "")
        # What was ended for a reason has not succeeded, whatever it made of the signal.
        return State(
            DONE,
            code or (SIGNALLED + signal.SIGTERM if self._why else 0),
            now - self.began,
            used.ru_utime + used.ru_stime,
            why,
        )

    def kill(self) -> None:
        """SIGKILL to all of its session that has not left its group."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def end(self, now: float, why: str) -> None:
        """SIGTERM now, SIGKILL KILL_WAIT later; one that has ended by itself has not been ended."""
        if self._kill_at is None and not self.has_ended():
            self._kill_at, self._why = now + KILL_WAIT, why
            self._send(signal.SIGTERM)
            self._send(signal.SIGCONT)  # what has stopped itself hears nothing

    def enforce(self, now: float) -> None:
        """End it where it passes a limit."""
        limit = self.job.wall_limit
        if self._kill_at is not None:
            if now >= self._kill_at:
                self.kill()
        elif limit and now - self.began >= limit:
            self.end(now, f"ran for its wall limit of {limit} s")
        elif self._usage is not None:
            used = self._usage.look(now) >> 20
            if used > self.job.resources.tmp:
                self.end(now, f"used {used} MB of scratch, and had asked for {self.job.resources.tmp}")

"""A job's process on this machine: its limits, how it is ended, and how it ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress

from drainwise.launch.backend import DONE, SIGNALLED, Start, State

KILL_WAIT = 5.0
"""Seconds between SIGTERM and SIGKILL."""
_SCRATCH_LOOK = 2.0


class LocalProcess:
    """`process` has just been started and leads a session. cpus: those it has for itself. scratch: its TMPDIR."""

    def __init__(self, job: Start, process: subprocess.Popen[bytes], cpus: list[int], scratch: str) -> None:
        self.job, self.cpus, self.scratch = job, cpus, scratch
        self._process = process
        self.began = self._look_at = time.monotonic()
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

    def wait(self) -> None:
        """Wait until it has ended."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def reap(self, now: float) -> State:
        """How it ended; what is left of its group is killed."""
        self.kill()
        _, status, used = os.wait4(self._process.pid, 0)
        signalled = os.WIFSIGNALED(status)
        code = SIGNALLED + os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)
        self._process.returncode = code
        if self.handle is not None:
            os.close(self.handle)
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)
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
        """SIGTERM now, SIGKILL KILL_WAIT later."""
        if self._kill_at is None:
            self._kill_at, self._why = now + KILL_WAIT, why
            self._send(signal.SIGTERM)

    def enforce(self, now: float) -> None:
        """End it where it passes a limit."""
        limit = self.job.wall_limit
        if self._kill_at is not None:
            if now >= self._kill_at:
                self.kill()
        elif limit and now - self.began >= limit:
            self.end(now, f"ran for its wall limit of {limit} s")
        elif self.scratch and now >= self._look_at:
            self._look_at = now + _SCRATCH_LOOK
            used = _used(self.scratch) >> 20
            if used > self.job.resources.tmp:
                self.end(now, f"used {used} MB of scratch, and had asked for {self.job.resources.tmp}")


def _used(directory: str) -> int:
    """Bytes on disk below a directory."""
    total, above = 0, [directory]
    while above:
        with suppress(OSError), os.scandir(above.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        above.append(entry.path)
    return total

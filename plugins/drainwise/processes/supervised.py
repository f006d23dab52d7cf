"""The launcher's side of the supervisor: it starts the launcher's jobs, and says how they ended."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from drainwise.processes import supervisor
from drainwise.processes.children import isolated_program

_KILLED = "the process that starts jobs was killed"
_GOES_SECONDS = 5.0
"""Seconds in which it goes; then it is killed."""


class Supervisor:
    """A process of its own that starts jobs. record: the file for successes that no launcher sees; "": none.

    Its methods raise ConnectionError when it has been killed. Raises OSError when it cannot be started.
    """

    def __init__(self, record: str = "") -> None:
        self._ends: dict[int, tuple[int, float, float]] = {}
        self._poll = select.poll()
        self._channel, theirs = socket.socketpair()
        self._is_gone = False
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            # A program of its own, which has none of the launcher's memory.
            self._pid = os.posix_spawn(
                sys.executable,
                isolated_program(f"{supervisor.__name__}:main", str(theirs.fileno()), record),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_OPEN, place, os.devnull, os.O_RDWR, 0) for place in range(2)],
                setsid=True,
            )
        if supervisor.receive(self._channel) is None:
            self.dismiss()
            raise OSError(errno.ECHILD, "the process that starts jobs cannot be begun", sys.executable)
        self._poll.register(self._channel, select.POLLIN)

    def fileno(self) -> int:
        """Return the file that is readable when a job has ended."""
        return self._channel.fileno()

    def start(
        self,
        name: str,
        tag: str,
        argv: Sequence[str],
        cwd: str,
        variables: Mapping[bytes, bytes],
        output: int,
        cpus: Sequence[int] = (),
    ) -> int:
        """Start a job that prints into the open file `output`; its pid, a session's. cpus: those it is bound to.

        Raises OSError and ValueError as subprocess.Popen does.
        """
        words = [os.fsencode(word) for word in argv]
        values = (name, tag, words, os.fsencode(cwd), dict(variables), list(cpus))
        self._send(supervisor.START, *values, output=output)
        while (answer := self._next())[0] != supervisor.STARTED:
            continue
        _, pid, *why = answer
        if pid:
            return int(pid)
        number, text, path = why
        raise ValueError(text) if number is None else OSError(number, text, os.fsdecode(path))

    def end_of(self, pid: int) -> tuple[int, float, float] | None:
        """Return a job's status, as wait() has it, the seconds it ran and its CPU seconds; None while it runs."""
        while pid not in self._ends and (self._is_gone or self._poll.poll(0)):
            self._next()
        return self._ends.get(pid)

    def forget(self, pid: int) -> None:
        """Forget the end of a job: its pid may be another's."""
        del self._ends[pid]

    @property
    def has_news(self) -> bool:
        """Tell whether the end of any job has not been taken yet."""
        return bool(self._ends)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to all of a job that has not left its group. What it makes of that is no success."""
        self._send(supervisor.SIGNAL, pid, int(number))  # of an enumeration, which nobody could read

    def dismiss(self) -> None:
        """Let it go: there is nothing to wait for."""
        self._is_gone = True
        self._channel.settimeout(_GOES_SECONDS)
        try:
            with suppress(ConnectionError):
                supervisor.send(self._channel, (supervisor.DISMISS,))
                while self._channel.recv(1 << 16):
                    continue
        except TimeoutError:
            os.kill(self._pid, signal.SIGKILL)
        self._channel.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _send(self, word: str, *values: object, output: int | None = None) -> None:
        if self._is_gone:
            raise ConnectionResetError(errno.ECONNRESET, _KILLED)
        supervisor.send(self._channel, (word, *values), [] if output is None else [output])

    def _next(self) -> tuple[Any, ...]:
        """Take the next that it says."""
        received = None if self._is_gone else supervisor.receive(self._channel)
        if received is None:
            self._is_gone = True
            raise ConnectionResetError(errno.ECONNRESET, _KILLED)
        message = received[0]
        if message[0] == supervisor.ENDED:
            _, pid, *end = message
            self._ends[pid] = tuple(end)
        return message

"""One run of a batch system's command: by absolute path, in a session of its own, bounded in time and in output.

A command may hang, print without end, or leave a child behind that holds its pipes: nothing of that may hold its caller
or fill its memory.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drainwise.common.printable import one_line
from drainwise.facts.errors import PoolUnreachable

MOST_OUTPUT = 1 << 27
"""Bytes that a command may print: a million jobs in the queue of Grid Engine are less."""

_MOST_COMPLAINT = 1 << 20
"""Bytes of its complaints that are kept; what it says beyond is thrown away."""
_LET_GO = 1.0
"""Seconds in which the kernel ends what was killed, unless it waits for a disk that is not there."""
_PIECE = 1 << 16


def must_have_descriptors(number: int) -> None:
    """Open and close so many: what it reads, two pipes and the one by which a child says that it cannot start take 7.

    Where descriptors run out between two pipes, `subprocess` of Python 3.11.2 and older leaves the first one open for
    ever. Raises OSError.
    """
    held = []
    try:
        for _ in range(number):
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for descriptor in held:
            os.close(descriptor)


@dataclass(frozen=True)
class Answer:
    """A command's exit code (negative: the signal that ended it), its output and its error output."""

    code: int
    out: bytes
    err: bytes = b""

    @property
    def text(self) -> str:
        """Return its output as text."""
        return self.out.decode("utf-8", "replace")

    @property
    def whole(self) -> str:
        """Return all that it complained of."""
        return self.err.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        """Return its error output in one printable line."""
        return one_line(self.whole)

    @property
    def complaint(self) -> str:
        """Return its error output in one line, or else its end."""
        return self.said or (f"signal {-self.code}" if self.code < 0 else f"code {self.code}")


class Running:
    """A command that has been started: `argv`, of which the first is an absolute path, with `stdin` to read.

    seconds: how long it may take from now. most: bytes that it may print. until: where it complains so, it is ended at
    once. Whoever starts one takes its answer or ends it. Raises PoolUnreachable when it cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        stdin: str = "",
        most: int = MOST_OUTPUT,
        until: str = "",
    ) -> None:
        self._name, self._seconds, self._most, self._until = os.path.basename(argv[0]), seconds, most, until.encode()
        self._out, self._err = bytearray(), bytearray()
        keep_exit_codes()
        try:
            must_have_descriptors(8)
            with open(os.memfd_create("stdin"), "w+b") as given:
                given.write(stdin.encode())
                given.seek(0)
                self._process = subprocess.Popen(
                    argv,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=dict(environment),
                    cwd="/",
                    start_new_session=True,
                    bufsize=0,
                )
        except OSError as fault:
            raise PoolUnreachable(f"{argv[0]} cannot be run: {fault.strerror}") from None
        self._end = time.monotonic() + seconds

    def answer(self) -> Answer:
        """Wait for its end and return its answer.

        Raises PoolUnreachable when it is not done in its time or prints too much; it and its children are gone then.
        """
        try:
            self._read_outputs()
            if self._has_said_enough():
                self.end()
            self._process.wait(max(0.0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise PoolUnreachable(f"{self._name} did not answer within {self._seconds:g} s") from None
        except OverflowError:
            raise PoolUnreachable(f"{self._name} printed more than {self._most >> 20} MiB: that is no answer") from None
        finally:
            self.end()
        return Answer(self._process.returncode, bytes(self._out), bytes(self._err))

    def output(self) -> bytes:
        """Return its output. Raises PoolUnreachable as `answer`, and when it failed."""
        answer = self.answer()
        if answer.code != 0:
            raise PoolUnreachable(f"{self._name} failed: {answer.complaint}")
        return answer.out

    def end(self) -> None:
        """Kill it and what it has started, unless it has ended by itself, and close its pipes."""
        if self._process.returncode is None:
            # It has not been waited for, so nobody else can have its number.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LET_GO)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _has_said_enough(self) -> bool:
        return bool(self._until) and self._until in self._err

    def _read_outputs(self) -> None:
        """Read what it prints, until both of its outputs are closed or it has said enough."""
        process = self._process
        with selectors.DefaultSelector() as ready:
            for pipe, kept in ((process.stdout, self._out), (process.stderr, self._err)):
                if pipe is not None:
                    ready.register(pipe, selectors.EVENT_READ, kept)
            while ready.get_map() and not self._has_said_enough():
                events = ready.select(max(0.0, self._end - time.monotonic()))
                if time.monotonic() >= self._end:
                    raise subprocess.TimeoutExpired(process.args, 0)
                for key, _ in events:
                    piece = os.read(key.fd, _PIECE)
                    key.data.extend(piece)
                    if not piece:
                        ready.unregister(key.fileobj)
                if len(self._out) > self._most:
                    raise OverflowError
                del self._err[_MOST_COMPLAINT:]


def keep_exit_codes() -> None:
    """Undo an inherited SIGCHLD that is ignored: with it no child leaves an exit code, and all seem to end with 0."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

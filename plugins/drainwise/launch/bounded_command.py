"""One run of a batch system's command: by absolute path, in a session of its own, bounded in time and in what it says.

A submit command may hang, print without end, or leave a child behind that holds its pipes: nothing of that may hold the
launcher or fill its memory.
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
from typing import IO

from drainwise.errors import PoolUnreachable

MOST_OUTPUT = 1 << 27
"""Bytes that a command may print: a million jobs in the queue of Grid Engine are less."""

_MOST_COMPLAINT = 1 << 20
"""Bytes of its complaints that are kept; what it says beyond is thrown away."""
_LONGEST_WORD = 200
_LOOKED_AT = 4096
_LET_GO = 1.0
"""Seconds in which the kernel ends what was killed, unless it waits for a disk that is not there."""
_PIECE = 1 << 16


@dataclass(frozen=True)
class Answer:
    """How a command ended (negative: the signal that ended it), what it printed, its complaint in one line; `whole`:
    all of that."""

    code: int
    out: str
    said: str
    whole: str = ""

    @property
    def complaint(self) -> str:
        """What it complained of, or else how it ended."""
        return self.said or (f"signal {-self.code}" if self.code < 0 else f"code {self.code}")


def run_bounded(
    argv: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    stdin: str = "",
    most: int = MOST_OUTPUT,
    until: str = "",
) -> Answer:
    """Run a command to its end and give its answer. `until`: where it complains so, it is ended at once.

    Raises PoolUnreachable when it cannot be started, is not done within `seconds` or prints more than `most` bytes; it
    and its children are gone then.
    """
    name = os.path.basename(argv[0])
    keep_exit_codes()
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
    except OSError as fault:
        raise PoolUnreachable(f"{argv[0]} cannot be run: {fault.strerror}") from None
    end = time.monotonic() + seconds
    try:
        printed, said = _exchange(process, stdin.encode(), end, most, until.encode())
        if until and until.encode() in said:
            _end(process)
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise PoolUnreachable(f"{name} did not answer within {seconds:g} s") from None
    except OverflowError:
        raise PoolUnreachable(f"{name} printed more than {most >> 20} MiB: that is no answer") from None
    finally:
        _end(process)
    complaint = said.decode("utf-8", "replace")
    return Answer(process.returncode, printed.decode("utf-8", "replace"), one_line(complaint), complaint)


def _exchange(
    process: subprocess.Popen[bytes], stdin: bytes, end: float, most: int, until: bytes
) -> tuple[bytes, bytes]:
    """Write what it reads and read what it says, until both of its outputs are closed or it complains of `until`."""
    out, said = bytearray(), bytearray()
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as ready:
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        for pipe, heard in ((process.stdout, out), (process.stderr, said)):
            if pipe is not None:
                ready.register(pipe, selectors.EVENT_READ, heard)
        open_outputs = 2
        while open_outputs and not (until and until in said):
            events = ready.select(max(0.0, end - time.monotonic()))
            if time.monotonic() >= end:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _mask in events:
                if key.data is None:
                    rest = _write(key.fd, rest)
                    if not rest:
                        ready.unregister(key.fileobj)
                        _close(process.stdin)
                elif piece := os.read(key.fd, _PIECE):
                    key.data.extend(piece)
                else:
                    ready.unregister(key.fileobj)
                    open_outputs -= 1
            if len(out) > most:
                raise OverflowError
            del said[_MOST_COMPLAINT:]
    return bytes(out), bytes(said)


def _write(descriptor: int, rest: memoryview) -> memoryview:
    """Write a piece; what is left."""
    try:
        return rest[os.write(descriptor, rest[:_PIECE]) :] if rest else rest
    except BrokenPipeError:  # it does not want to read; its answer tells why
        return rest[:0]


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have it and what it has started gone, unless it has ended by itself, and its pipes closed."""
    if process.returncode is None:
        # It has not been waited for, so nobody else can have its number.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LET_GO)
    for pipe in (process.stdin, process.stdout, process.stderr):
        _close(pipe)


def one_line(said: str) -> str:
    """What a program complained of, in one line of at most 200 printable characters."""
    words = said.strip()[:_LOOKED_AT].split()
    return "".join(letter for letter in " ".join(words) if letter.isprintable())[:_LONGEST_WORD]


def keep_exit_codes() -> None:
    """Undo an inherited SIGCHLD that is ignored: with it no child leaves an exit code, and all seem to end with 0."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

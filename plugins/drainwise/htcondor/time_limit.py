"""A call that may hang, in a child process that is ended when its time is over.

HTCondor's bindings hold Python's interpreter lock while they wait for a daemon, so neither a thread nor a signal
handler can bound them; a daemon that accepts a connection and never answers would hold the agent for minutes.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from drainwise.errors import PoolError, PoolUnreachable

T = TypeVar("T")

_LATE = 1.0  # seconds after which the child ends itself, should nobody be there to end it


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """What `call` gives, when it gives it within `seconds`; its value must be plain enough to be pickled.

    Raises a PoolError that `call` raised; PoolUnreachable ("`what` …") when the time is over, or the child failed or
    died in any other way.
    """
    end = time.monotonic() + seconds
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(writer, call, seconds + _LATE)
    os.close(writer)
    try:
        answer = _read(reader, end)
    finally:
        os.close(reader)
        # No answer within the time: whatever it waits for, it waits for it no longer.
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if answer is None:
        raise PoolUnreachable(f"{what} did not answer within {seconds:g} s")
    if not answer:
        raise PoolUnreachable(f"{what} cannot be asked: the process that asked died")
    result, fault = pickle.loads(answer)  # noqa: S301 - from our own child, through a pipe that nobody else holds
    if isinstance(fault, PoolError):
        raise fault
    if fault is not None:
        raise PoolUnreachable(f"{what} cannot be asked: {fault}")
    return cast("T", result)


def _answer(writer: int, call: Callable[[], object], seconds: float) -> NoReturn:
    """In the child: make the call, send what came of it, end without touching what was copied from the parent."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the bindings print on their own
            os.dup2(nothing, stream)
        result: object = None
        fault: object = None
        try:
            result = call()
        except PoolError as error:
            fault = error
        except Exception as error:  # the child's outermost guard: the parent must hear of any fault
            fault = f"{type(error).__name__}: {error}"
        with os.fdopen(writer, "wb") as stream_out:
            pickle.dump((result, fault), stream_out, protocol=pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)


def _read(reader: int, end: float) -> bytes | None:
    """All that comes until the writer closes; None when the time is over before."""
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    parts: list[bytes] = []
    while True:
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return None
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)

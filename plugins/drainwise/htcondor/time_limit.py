"""A call that may hang, in a child process that is ended when its time is over.

HTCondor's bindings hold Python's interpreter lock while they wait for a daemon, so neither a thread nor a signal
handler can bound them; a daemon that accepts a connection and never answers would hold the agent for minutes.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, cast

from drainwise.errors import DrainwiseError, PoolError, PoolUnreachable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

_SET_PIPE_SIZE, _PIPE_SIZE = 1031, 1 << 20  # F_SETPIPE_SZ: a child goes on while what it gave is looked at
_LATE = 1.0  # seconds after which the child ends itself, should nobody be there to end it


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """What `call` gives, when it gives it within `seconds`; its value must be plain enough to be pickled.

    Raises a DrainwiseError that `call` raised; PoolUnreachable ("`what` …") when the time is over, or the child failed
    or died in any other way.
    """
    with closing(several_within(seconds, lambda: (call(),), what)) as values:
        return next(values)


def several_within(seconds: float, call: Callable[[], Iterable[T]], what: str) -> Generator[T, None, None]:
    """The values that `call` gives, each as soon as it is there and within `seconds` of the one before.

    As `within`; what is raised comes after the values that were given before it. Whoever stops early closes it.
    """
    with closing(Asked(seconds, call, what)) as asked:
        yield from asked.values()


def each_within(
    seconds: float, calls: Iterable[Callable[[], T]], what: str, at_once: int = 16
) -> Generator[tuple[int, T | PoolError], None, None]:
    """What each of `calls` gives, with its place among them, as the answers come; a PoolError is an answer, too.

    `at_once` of them are under way at the same time, each for `seconds` from its start. Raises as `within` what is no
    PoolError. Whoever stops early closes it.
    """
    under_way: dict[int, tuple[float, Asked[T]]] = {}
    waiting = enumerate(calls)
    try:
        while True:
            while len(under_way) < at_once and (following := next(waiting, None)) is not None:
                place, call = following
                under_way[place] = time.monotonic() + seconds, Asked(seconds, partial(_alone, call), what)
            if not under_way:
                return
            for place in _answered(under_way):
                end, asked = under_way.pop(place)
                with closing(asked):
                    try:
                        answer: T | PoolError = next(asked.values(end - time.monotonic()))
                    except PoolError as fault:
                        answer = fault
                yield place, answer
    finally:
        for _, asked in under_way.values():
            asked.close()


def _answered(under_way: Mapping[int, tuple[float, Asked[T]]]) -> list[int]:
    """Those that have begun to answer or whose time is over, as soon as there is one."""
    poll = select.poll()
    for _, asked in under_way.values():
        poll.register(asked.reader, select.POLLIN | select.POLLHUP)
    left = min(end for end, _ in under_way.values()) - time.monotonic()
    ready = {descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)}
    now = time.monotonic()
    return [place for place, (end, asked) in under_way.items() if asked.reader in ready or end <= now]


def _alone(call: Callable[[], T]) -> tuple[T]:
    return (call(),)


class Asked(Generic[T]):
    """A call that is under way in a child from now on; whoever has it reads its values, and closes it."""

    def __init__(self, seconds: float, call: Callable[[], Iterable[T]], what: str) -> None:
        self._seconds, self._what = seconds, what
        self.reader, writer = os.pipe()
        with suppress(OSError):  # a user may have too many large ones
            fcntl.fcntl(writer, _SET_PIPE_SIZE, _PIPE_SIZE)
        self._child = os.fork()
        if self._child == 0:
            os.close(self.reader)
            _answer(writer, call, seconds + _LATE)
        os.close(writer)

    def values(self, left: float | None = None) -> Iterator[T]:
        """See `several_within`; the time counts from the moment when a value is waited for.

        left: seconds that the first one may still take, where some of them have passed; what is there is read anyway.
        """
        for value in _values(self.reader, self._seconds, self._what, left):
            yield cast("T", value)

    def close(self) -> None:
        """End it; no answer within the time: whatever it waits for, it waits for it no longer."""
        os.close(self.reader)
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


def _answer(writer: int, call: Callable[[], Iterable[object]], seconds: float) -> NoReturn:
    """In the child: make the call, send what comes of it, end without touching what was copied from the parent."""
    code = 1
    try:
        gc.disable()  # the child ends before there is garbage worth looking for
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the bindings print on their own
            os.dup2(nothing, stream)
        fault: object = None
        with os.fdopen(writer, "wb") as stream_out:
            try:
                for value in call():
                    pickle.dump((True, value), stream_out, protocol=pickle.HIGHEST_PROTOCOL)
                    stream_out.flush()
                    signal.setitimer(signal.ITIMER_REAL, seconds)
            except DrainwiseError as error:
                fault = error
            except Exception as error:  # the child's outermost guard: the parent must hear of any fault
                fault = f"{type(error).__name__}: {error}"
            pickle.dump((False, fault), stream_out, protocol=pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)


def _values(reader: int, seconds: float, what: str, left: float | None) -> Iterator[object]:
    """The values that the child sends until it says that there are no more; `left`: see `Asked.values`."""
    pipe = _Pipe(reader)
    with io.BufferedReader(pipe, 1 << 20) as stream:
        while True:
            try:
                pipe.end = time.monotonic() + (seconds if left is None else max(0.0, left))
                left = None
                more, value = pickle.load(stream)  # noqa: S301 - from our own child, through a pipe of ours
            except _TimeOverError:
                raise PoolUnreachable(f"{what} did not answer within {seconds:g} s") from None
            except (EOFError, pickle.UnpicklingError):
                raise PoolUnreachable(f"{what} cannot be asked: the process that asked died") from None
            if more:
                yield value
            elif value is None:
                return
            elif isinstance(value, DrainwiseError):
                raise value
            else:
                raise PoolUnreachable(f"{what} cannot be asked: {value}")


class _TimeOverError(Exception):
    """Nothing more came in time."""


class _Pipe(io.RawIOBase):
    """The reading end of a pipe, until the moment `end` of the monotonic clock."""

    def __init__(self, reader: int) -> None:
        self._reader, self.end = reader, 0.0
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN | select.POLLHUP)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """What is there now, or as soon as something is."""
        left = max(0.0, self.end - time.monotonic())
        if not self._poll.poll(left * 1000):
            raise _TimeOverError
        return os.readv(self._reader, [buffer])

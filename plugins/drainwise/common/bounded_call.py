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
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from drainwise.facts.errors import DrainwiseError, PoolError, PoolUnreachable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

_SET_PIPE_SIZE, _PIPE_SIZE = 1031, 1 << 20  # F_SETPIPE_SZ: a child goes on while what it gave is looked at
_LATE = 1.0
"""Seconds after its time when a child ends itself, should nobody be there to end it."""
_MOST = 4 << 30
"""Bytes that a call may give: a pool of a million slots has fewer."""


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """Return the value of `call`, if it comes within `seconds`; it must be plain enough to be pickled.

    Raises a DrainwiseError that `call` raised; PoolUnreachable ("`what` …") when the time is over, or the child failed
    or died in any other way.
    """
    with closing(several_within(seconds, partial(_alone, call), what)) as values:
        return next(values)


def several_within(seconds: float, call: Callable[[], Iterable[T]], what: str) -> Generator[T, None, None]:
    """Yield the values of `call`, each as soon as it is there and within `seconds` of the one before.

    As `within`; what is raised comes after the values that were given before it. Whoever stops early closes it.
    """
    with closing(BoundedCall(seconds, call, what)) as asked:
        yield from asked.values()


def each_within(
    seconds: float, calls: Iterable[Callable[[], T]], what: str, at_once: int = 16
) -> Generator[tuple[int, T | PoolError], None, None]:
    """Yield the answer of each of `calls`, with its place among them, as it comes; a PoolError is an answer, too.

    `at_once` of them are under way at the same time, each for `seconds` from its start. Raises as `within` what is no
    PoolError. Whoever stops early closes it.
    """
    under_way: dict[int, tuple[float, BoundedCall[T]]] = {}
    waiting = enumerate(calls)
    try:
        while True:
            while len(under_way) < at_once and (following := next(waiting, None)) is not None:
                place, call = following
                under_way[place] = time.monotonic() + seconds, BoundedCall(seconds, partial(_alone, call), what)
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


def _alone(call: Callable[[], T]) -> tuple[T]:
    return (call(),)


def _answered(under_way: Mapping[int, tuple[float, BoundedCall[T]]]) -> list[int]:
    """Return the calls that have begun to answer or whose time is over, as soon as there is one."""
    poll = select.poll()
    for _, asked in under_way.values():
        poll.register(asked.reader, select.POLLIN | select.POLLHUP)
    left = min(end for end, _ in under_way.values()) - time.monotonic()
    ready = {descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)}
    now = time.monotonic()
    return [place for place, (end, asked) in under_way.items() if asked.reader in ready or end <= now]


class ForkedChild:
    """A child that does `work` with the end of a pipe to write to, and ends with the code that it returns.

    It ends itself soon after `seconds`, should nobody be there to end it. close: descriptors that it must not keep.
    Raises OSError when it cannot be started.
    """

    def __init__(self, work: Callable[[int], int], seconds: float, close: Iterable[int] = ()) -> None:
        self.reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.reader)
            os.close(writer)
            raise
        if self.pid == 0:
            _run(work, writer, seconds + _LATE, (self.reader, *close))
        os.close(writer)

    def kill(self) -> None:
        """Kill it, unless it was reaped."""
        os.kill(self.pid, signal.SIGKILL)

    def exit_code(self, wait: bool = False) -> int | None:
        """Return its exit code, or minus the signal that ended it; None while it has not ended. Once it is reaped."""
        ended, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
        if ended == 0:
            return None
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def _run(work: Callable[[int], int], writer: int, seconds: float, close: Iterable[int]) -> NoReturn:
    code = 1
    try:
        for descriptor in close:
            os.close(descriptor)
        if writer <= 2:  # the parent was started without one of its standard streams
            writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 3)
        gc.disable()  # it ends before there is garbage worth looking for, and would copy the parent's memory
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # what it calls may print on its own
            os.dup2(nothing, stream)
        code = work(writer)
    finally:
        os._exit(code)


class BoundedCall(Generic[T]):
    """A call that is under way in a child from now on; whoever has it reads its values, and closes it."""

    def __init__(self, seconds: float, call: Callable[[], Iterable[T]], what: str) -> None:
        self._seconds, self._what = seconds, what
        self._child = ForkedChild(partial(_answer, call, seconds + _LATE), seconds)
        self.reader = self._child.reader
        with suppress(OSError):  # a user may have too many large ones
            fcntl.fcntl(self.reader, _SET_PIPE_SIZE, _PIPE_SIZE)

    def values(self, left: float | None = None) -> Iterator[T]:
        """See `several_within`; the time counts from the moment when a value is waited for.

        left: seconds that the first one may still take, where some of them have passed; what is there is read anyway.
        """
        what, pipe = self._what, _Pipe(self.reader)
        with io.BufferedReader(pipe, 1 << 20) as stream:
            while True:
                try:
                    pipe.end = time.monotonic() + (self._seconds if left is None else max(0.0, left))
                    left = None
                    more, value = pickle.load(stream)  # noqa: S301 - from our own child, through a pipe of ours
                except OverflowError:
                    raise PoolUnreachable(f"{what} answered with more than {_MOST >> 30} GiB") from None
                except (TimeoutError, EOFError, pickle.UnpicklingError):
                    if time.monotonic() >= pipe.end:  # also of a child that has ended itself since
                        raise PoolUnreachable(f"{what} did not answer within {self._seconds:g} s") from None
                    raise PoolUnreachable(f"{what} cannot be asked: the process that asked died") from None
                if more:
                    yield value
                elif value is None:
                    return
                elif isinstance(value, DrainwiseError):
                    raise value
                else:
                    raise PoolUnreachable(f"{what} cannot be asked: {value}")

    def close(self) -> None:
        """End it; no answer within the time: whatever it waits for, it waits for it no longer."""
        os.close(self.reader)
        self._child.kill()
        self._child.exit_code(wait=True)


def _answer(call: Callable[[], Iterable[object]], seconds: float, writer: int) -> int:
    """Make the call in the child, and send what comes of it."""
    fault: object = None
    with os.fdopen(writer, "wb") as stream:
        try:
            for value in call():
                pickle.dump((True, value), stream, protocol=pickle.HIGHEST_PROTOCOL)
                stream.flush()
                signal.setitimer(signal.ITIMER_REAL, seconds)
        except DrainwiseError as error:
            fault = error
        except Exception as error:  # the child's outermost guard: the parent must receive any fault
            fault = f"{type(error).__name__}: {error}"
        pickle.dump((False, fault), stream, protocol=pickle.HIGHEST_PROTOCOL)
    return 0


class _Pipe(io.RawIOBase):
    """The reading end of a pipe, until the moment `end` of the monotonic clock."""

    def __init__(self, reader: int) -> None:
        self._reader, self.end, self._taken = reader, 0.0, 0
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN | select.POLLHUP)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what is there now, or as soon as something is."""
        left = max(0.0, self.end - time.monotonic())
        if not self._poll.poll(left * 1000):
            raise TimeoutError
        count = os.readv(self._reader, [buffer])
        self._taken += count
        if self._taken > _MOST:
            raise OverflowError
        return count

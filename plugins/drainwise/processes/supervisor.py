"""The process whose children this machine's jobs are: it outlives a launcher that is killed, and sees how they end.

It starts jobs and waits for them as the launcher tells it on a socket. When the launcher goes without a word, it waits
for those that still run, and writes down those that succeed, a line of JSON each: the next launcher need not run them
again. It ends nothing by itself. Standard library alone.
"""

from __future__ import annotations

import fcntl
import json
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from drainwise.processes.children import ended_children
from drainwise.processes.process import kill_group

START, SIGNAL, DISMISS = "start", "signal", "dismiss"
"""What the launcher says. SIGNAL has no answer; DISMISS: nothing has to be waited for."""
READY, STARTED, ENDED = "ready", "started", "ended"
"""What it says itself: at first; to START; and of its own accord when a job has ended."""

_LENGTH = struct.Struct("!I")
_PIECE = 1 << 16
_REMEMBERED = 10_000
"""The last successes, which the launcher may not have written down yet. One that it has is written down once more."""


def send(channel: socket.socket, message: tuple[Any, ...], descriptors: Collection[int] = ()) -> None:
    """Send a message, with open files. Raises OSError: nobody is there."""
    content = marshal.dumps(message)
    content = _LENGTH.pack(len(content)) + content
    sent = socket.send_fds(channel, [content], list(descriptors)) if descriptors else 0
    channel.sendall(content[sent:])


def receive(channel: socket.socket) -> tuple[tuple[Any, ...], list[int]] | None:
    """Return the next message and the open files that came with it; None where nobody is there any more."""
    with suppress(ConnectionError):
        length, descriptors, _flags, _address = socket.recv_fds(channel, _LENGTH.size, 1)
        length += _read(channel, _LENGTH.size - len(length))
        content = _read(channel, _LENGTH.unpack(length)[0])
        message: tuple[Any, ...] = marshal.loads(content)  # noqa: S302 - who holds the other end is our own process
        return message, list(descriptors)
    return None


def _read(channel: socket.socket, count: int) -> bytes:
    """Read so many bytes. Raises ConnectionError: nobody is there any more."""
    content = bytearray()
    while len(content) < count:
        piece = channel.recv(min(count - len(content), _PIECE))
        if not piece:
            raise ConnectionResetError
        content += piece
    return bytes(content)


def keep_to(cpus: Collection[int]) -> None:
    """Bind this process, and what it starts from now on, to these CPUs."""
    if cpus:
        with suppress(OSError):  # they have been taken from this machine meanwhile
            os.sched_setaffinity(0, cpus)


class _Child:
    """A job: its process, its name and tag, when it began (monotonic clock, s), and whether it was ordered to end."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, tag: str, began: float) -> None:
        self.process, self.name, self.tag, self.began = process, name, tag, began
        self.ordered = False


class Supervision:
    """Does what the launcher tells on `channel`, and tells it what has ended."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._usable = channel, os.sched_getaffinity(0)
        self._children: dict[int, _Child] = {}
        self._successes: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._untold: deque[tuple[int, int, float, float]] = deque()
        self._is_dismissed = False
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self._woken, self._wakes = woken, wakes

    def serve(self) -> bool:
        """Do what is told until nobody is there any more; whether ends may have been missed."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        while True:
            # Who is not read from must not stop reading: the launcher may be writing as well.
            poll.register(self._channel, select.POLLIN | (select.POLLOUT if self._untold else 0))
            ready = dict(poll.poll())
            if self._woken.fileno() in ready:
                with suppress(BlockingIOError):
                    self._woken.recv(_PIECE)
                self._untold += self._ends()
            events = ready.get(self._channel.fileno(), 0)
            if events & select.POLLOUT:
                with suppress(OSError):
                    send(self._channel, (ENDED, *self._untold.popleft()))
            if events & ~select.POLLOUT and not self._obey():
                return not self._is_dismissed

    def _obey(self) -> bool:
        """Do the next that the launcher says; whether there will be more."""
        received = receive(self._channel)
        if received is None:
            return False
        (word, *values), descriptors = received
        if word == DISMISS:
            self._is_dismissed = True
        elif word == SIGNAL:
            self._signal(*values)
        else:
            with suppress(OSError):
                send(self._channel, (STARTED, *self._start(descriptors[0], *values)))
        return not self._is_dismissed

    def _signal(self, pid: int, number: int) -> None:
        """Send a signal to all of a job that has not left its group: what it makes of that is no success."""
        child = self._children.get(pid)
        if child is not None:
            child.ordered = True
            kill_group(pid, number)

    def _start(
        self,
        output: int,
        name: str,
        tag: str,
        argv: list[bytes],
        cwd: bytes,
        variables: dict[bytes, bytes],
        cpus: list[int],
    ) -> tuple[Any, ...]:
        """Start the process; the answer is its pid, or why it cannot be. It has the CPUs from its first instruction."""
        try:
            keep_to(cpus)
            began = time.monotonic()
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as fault:
            return 0, fault.errno, fault.strerror, os.fsencode(fault.filename or argv[0])
        except ValueError as fault:
            return 0, None, str(fault), b""
        finally:
            os.close(output)
            keep_to(self._usable if cpus else ())
        self._children[process.pid] = _Child(process, name, tag, began)
        return (process.pid,)

    def _ends(self, wait: bool = False) -> Iterator[tuple[int, int, float, float]]:
        """Reap what has ended: its pid, its status as wait() has it, the seconds it ran, and its CPU seconds."""
        for pid, status, used, *_ in ended_children(lambda _: True, wait):
            child = self._children.pop(pid)
            child.process.returncode = status  # or its class would wait for it, too
            seconds = time.monotonic() - child.began
            if status == 0 and not child.ordered:
                self._successes.append(_line(child, seconds))
            yield pid, status, seconds, used

    def watch(self, record: int) -> None:
        """Wait for all that still runs, and write each success to this open file at once."""
        ends = self._ends(wait=True)
        while True:
            while self._successes:
                os.write(record, self._successes.popleft())
            if next(ends, None) is None:
                return


def _line(child: _Child, seconds: float) -> bytes:
    found = {"name": child.name, "tag": child.tag, "seconds": round(seconds, 3), "ended": round(time.time(), 3)}
    return json.dumps(found).encode() + b"\n"


def main() -> None:
    """Serve the launcher: the number of its socket and the file for what it does not see ("": none) are arguments."""
    descriptor, path = int(sys.argv[1]), sys.argv[2]
    channel = socket.socket(fileno=descriptor)
    record = -1
    if path:
        record = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(record, fcntl.LOCK_SH)  # who reads it waits until nobody writes there
    supervision = Supervision(channel)
    send(channel, (READY,))
    if supervision.serve() and path:
        channel.close()
        supervision.watch(record)

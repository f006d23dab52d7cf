"""Doing something as another user: in a child that gives up root's rights, checks that they are gone, and can be lost.

The agent is root; a file of a user's is touched with that user's rights and no others. The child can neither harm the
agent nor hold it up: it has a time limit, and what it has sent by then counts. One that not even a kill ends, because a
file server does not answer, is left to itself, and its user has to do without until it is gone.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

Send = Callable[[bytes], None]

DONE, FAILED, NOT_DROPPED = 0, 1, 3
"""How a child ends: all done; a fault of ours; its rights could not be given up, so nothing was done."""
_STATUS_LIMIT = 65536
_PIECE = 65536
_LONGEST_ANSWER = 8 << 20
_ALARM_SLACK = 1.0


class NotDroppedError(Exception):
    """Root's rights are still there, or the user's are not."""


@dataclass(frozen=True)
class Identity:
    """Whose rights to have. `part` tells apart several children of one user."""

    uid: int
    gid: int
    part: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a child sent, whole lines, and what was wrong with it: one phrase, "" for nothing."""

    lines: tuple[bytes, ...]
    fault: str


def become(identity: Identity) -> None:
    """Give up every right that is not this user's, for good. Raises NotDroppedError unless that is sure.

    Other groups of the user's are left out: to know them takes a name service, which may hang. Where this process is
    the user's already there is nothing to give up; root's own jobs are root's business.
    """
    uid, gid = identity.uid, identity.gid
    if os.getresuid() == (uid, uid, uid):
        return
    try:
        os.setgroups([gid])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        status = _own_status()
    except OSError as error:
        raise NotDroppedError(f"uid {uid}: {error.strerror}") from None
    held = [line.split()[1] for line in status.splitlines() if line.startswith((b"CapEff:", b"CapPrm:", b"CapAmb:"))]
    is_user = os.getresuid() == (uid, uid, uid) and os.getresgid() == (gid, gid, gid) and os.getgroups() == [gid]
    if not is_user or len(held) != 3 or any(rights.strip(b"0") for rights in held):
        raise NotDroppedError(f"uid {uid}: rights are left")
    try:
        os.setresuid(0, 0, 0)
    except OSError:
        return
    raise NotDroppedError(f"uid {uid}: root's rights come back")


def _own_status() -> bytes:
    descriptor = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _STATUS_LIMIT)
    finally:
        os.close(descriptor)


class Users:
    """The children of all rounds. `close`: descriptors that a child must not keep open."""

    def __init__(self, close: Sequence[int] = ()) -> None:
        self._close = tuple(close)
        self._lost: dict[int, list[int]] = {}

    def lost(self, uid: int) -> int:
        """How many children of this user's have not ended although they were killed."""
        left = [pid for pid in self._lost.get(uid, []) if not _has_ended(pid)]
        self._lost[uid] = left
        return len(left)

    def run(self, work: Mapping[Identity, Callable[[Send], None]], seconds: float) -> dict[Identity, Outcome]:
        """Do each piece of work as its user, all at the same time, for at most `seconds` in all.

        A piece of work sends lines. Its user's child may end at any moment: what was sent in whole counts.
        """
        end = time.monotonic() + seconds
        children: dict[int, tuple[Identity, int]] = {}
        outcomes: dict[Identity, Outcome] = {}
        for identity, step in work.items():
            try:
                pid, pipe = self._start(identity, step, seconds, list(children))
            except OSError as error:
                outcomes[identity] = Outcome((), f"no process could be started: {error.strerror}")
            else:
                children[pipe] = (identity, pid)
        received = _receive(list(children), end)
        for pipe, (identity, pid) in children.items():
            os.close(pipe)
            data, ended = received[pipe]
            outcomes[identity] = Outcome(tuple(data.split(b"\n")[:-1]), self._finish(identity.uid, pid, ended, end))
        return outcomes

    def _start(
        self, identity: Identity, step: Callable[[Send], None], seconds: float, others: list[int]
    ) -> tuple[int, int]:
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            raise
        if pid == 0:
            _child(identity, step, write_end, seconds, (*self._close, read_end, *others))
        os.close(write_end)
        return pid, read_end

    def _finish(self, uid: int, pid: int, ended: bool, end: float) -> str:
        """Reap the child, or kill it; what was wrong."""
        if not ended:
            os.kill(pid, signal.SIGKILL)
        # It closed its pipe by ending, or was killed: this takes no time, unless it hangs in the kernel.
        while (code := _exit_code(pid)) is None and time.monotonic() < end + _ALARM_SLACK / 10:
            time.sleep(0.0005)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            self._lost.setdefault(uid, []).append(pid)
        if not ended or code is None:
            return "a file of the user's does not answer in time"
        if code == NOT_DROPPED:
            return "root's rights could not be given up: nothing was done"
        return "" if code == DONE else f"the work was not done to its end (code {code})"


def _child(
    identity: Identity, step: Callable[[Send], None], pipe: int, seconds: float, close: Sequence[int]
) -> NoReturn:
    code = FAILED
    try:
        for descriptor in close:
            os.close(descriptor)
        gc.disable()  # it would touch, and so copy, all of the agent's memory
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + _ALARM_SLACK)  # for the case that the agent is killed
        become(identity)
        step(lambda data: _write(pipe, data))
        code = DONE
    except NotDroppedError:
        code = NOT_DROPPED
    finally:
        os._exit(code)  # nothing of the agent's may go on in this process


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _receive(pipes: list[int], end: float) -> dict[int, tuple[bytes, bool]]:
    """What comes out of each pipe until it is closed, or until `end` (monotonic clock); and whether it was closed."""
    received = {pipe: bytearray() for pipe in pipes}
    open_pipes = set(pipes)
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    while open_pipes and (left := end - time.monotonic()) > 0:
        for pipe, _ in poll.poll(left * 1000 + 1):
            piece = os.read(pipe, _PIECE)
            received[pipe] += piece
            if not piece or len(received[pipe]) > _LONGEST_ANSWER:
                poll.unregister(pipe)
                open_pipes.discard(pipe)
    return {pipe: (bytes(data), pipe not in open_pipes) for pipe, data in received.items()}


def _exit_code(pid: int) -> int | None:
    """How a child ended: its code, the negative number of the signal; None while it has not."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended == 0:
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def _has_ended(pid: int) -> bool:
    try:
        return _exit_code(pid) is not None
    except ChildProcessError:
        return True

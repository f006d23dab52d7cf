"""Doing something as another user: in a child that gives up root's rights, checks that they are gone, and can be lost.

The agent is root; a file of a user's is touched with that user's rights and no others. The child can neither harm the
agent nor hold it up: it has a time limit, and what it has sent by then counts. One that not even a kill ends, because a
file server does not answer, is left to itself, and its user has to do without until it is gone.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from drainwise.common.bounded_call import ForkedChild
from drainwise.node.hook import write_whole

Send = Callable[[bytes], None]
Task = TypeVar("Task")
Result = TypeVar("Result")

DONE, NOT_DROPPED = 0, 3
"""How a child ends: all done; its rights could not be given up, so nothing was done. Other codes: a fault of ours."""
_STATUS_LIMIT = 65536
_PIECE = 65536
_LONGEST_ANSWER = 8 << 20
_LET_GO = 0.1  # seconds in which the kernel ends what was killed


class NotDroppedError(Exception):
    """Root's rights are still there, or the user's are not."""


@dataclass(frozen=True)
class Identity:
    """The user whose rights a child has. `part` distinguishes several children of one user."""

    uid: int
    gid: int
    part: int = 0


@dataclass(frozen=True)
class ChildOutcome:
    """A child's output in whole lines, and what was wrong with it: one phrase, "" for nothing."""

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
        with open("/proc/self/status", "rb") as file:
            status = file.read(_STATUS_LIMIT)
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


class Users:
    """The children of all rounds. `close`: descriptors that a child must not keep open."""

    def __init__(self, close: Sequence[int] = ()) -> None:
        self._close = tuple(close)
        self._lost: dict[int, list[ForkedChild]] = {}

    def lost(self, uid: int) -> int:
        """Return how many children of this user's have not ended although they were killed."""
        left = [child for child in self._lost.get(uid, []) if not _has_ended(child)]
        self._lost[uid] = left
        return len(left)

    def run(self, work: Mapping[Identity, Callable[[Send], None]], seconds: float) -> dict[Identity, ChildOutcome]:
        """Do each piece of work as its user, all at the same time, for at most `seconds` in all.

        A piece of work sends lines. Its user's child may end at any moment: what was sent in whole counts.
        """
        end = time.monotonic() + seconds
        children: dict[int, tuple[Identity, ForkedChild]] = {}
        outcomes: dict[Identity, ChildOutcome] = {}
        for identity, step in work.items():
            try:
                child = ForkedChild(partial(_as_user, identity, step), seconds, (*self._close, *children))
            except OSError as error:
                outcomes[identity] = ChildOutcome((), f"no process could be started: {error.strerror}")
            else:
                children[child.reader] = (identity, child)
        received = _receive(list(children), end)
        for pipe, (identity, child) in children.items():
            os.close(pipe)
            data, ended = received[pipe]
            outcomes[identity] = ChildOutcome(
                tuple(data.split(b"\n")[:-1]), self._finish(identity.uid, child, ended, end)
            )
        return outcomes

    def results(
        self,
        tasks: Mapping[Identity, Mapping[str, Task]],
        step: Callable[[Mapping[str, Task], Send], None],
        result_in: Callable[[bytes], tuple[str, Result]],
        seconds: float,
    ) -> tuple[dict[str, Result], dict[Identity, str]]:
        """Have each user's tasks done, which have names: the results by name, and what was wrong with each child.

        step: does them, and sends lines. result_in: reads the name and the result out of one; raises ValueError.
        Whatever else a child has sent, and a result of another user's task, is a fault of that child alone.
        """
        outcomes = self.run({who: partial(step, some) for who, some in tasks.items()}, seconds) if tasks else {}
        found: dict[str, Result] = {}
        faults = {who: outcome.fault for who, outcome in outcomes.items()}
        for who, outcome in outcomes.items():
            for line in outcome.lines:
                try:
                    name, result = result_in(line)
                    if name not in tasks[who]:
                        raise ValueError("a result of another user's task")
                except ValueError as error:
                    faults[who] = faults[who] or str(error)
                    break
                found[name] = result
        return found, faults

    def _finish(self, uid: int, child: ForkedChild, ended: bool, end: float) -> str:
        """Reap the child, or kill it; what was wrong."""
        if not ended:
            child.kill()
        # It closed its pipe by ending, or was killed: this takes no time, unless it hangs in the kernel.
        while (code := child.exit_code()) is None and time.monotonic() < end + _LET_GO:
            time.sleep(0.0005)
        if code is None:
            child.kill()
            self._lost.setdefault(uid, []).append(child)
        if not ended or code is None:
            return "a file of the user's does not answer in time"
        if code == NOT_DROPPED:
            return "root's rights could not be given up: nothing was done"
        return "" if code == DONE else f"the work was not done to its end (code {code})"


def _as_user(identity: Identity, step: Callable[[Send], None], pipe: int) -> int:
    """In the child: do the work with the user's rights."""
    try:
        become(identity)
    except NotDroppedError:
        return NOT_DROPPED
    step(lambda data: write_whole(pipe, data))
    return DONE


def _receive(pipes: list[int], end: float) -> dict[int, tuple[bytes, bool]]:
    """Read each pipe until it is closed, or until `end` (monotonic clock); return also whether it was closed."""
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


def _has_ended(child: ForkedChild) -> bool:
    try:
        return child.exit_code() is not None
    except ChildProcessError:
        return True

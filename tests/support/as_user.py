"""Work done in a process of another user, for tests that run as root."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable


def become(uid: int) -> None:
    """Give up root for good."""
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def answer_of(work: Callable[[], str], uid: int = 0) -> str:
    """Return what `work` says in a process of `uid`, within 10 s."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(uid)
            said = work()
        except BaseException as error:  # the parent shows whatever it was
            said = repr(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    try:
        assert select.select([ours], [], [], 10)[0], "no answer in 10 s"
        return os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def in_child(step: Callable[[], object]) -> int:
    """The exit code of a process of its own that does this."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            step()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

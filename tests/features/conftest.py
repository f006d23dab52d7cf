"""Real processes for the attacks: functions run as another user, attackers that loop until they are stopped."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

Result = TypeVar("Result")
USER = 54321
DEADLINE_SECS = 60.0


def _become(uid: int | None) -> None:
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _child(function: Callable[[], object], uid: int | None, write_to: int) -> None:
    try:
        _become(uid)
        answer: tuple[bool, object] = (True, function())
    except BaseException as error:  # the parent raises it again
        answer = (False, error)
    try:
        content = pickle.dumps(answer)
    except Exception:
        content = pickle.dumps((False, RuntimeError(repr(answer))))
    os.write(write_to, content)
    os._exit(0)


def need_root() -> None:
    """Skip the test where no other user can be had."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")


def run_as(uid: int | None, function: Callable[[], Result]) -> Result:
    """Run a function in a forked process, as `uid` when given; its result or its exception comes back."""
    if uid is not None:
        need_root()
    read_from, write_to = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_from)
        _child(function, uid, write_to)
    os.close(write_to)
    content = b""
    deadline = time.monotonic() + DEADLINE_SECS
    try:
        while True:
            if not select.select([read_from], [], [], max(0, deadline - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                pytest.fail(f"not done after {DEADLINE_SECS} s")
            piece = os.read(read_from, 65536)
            if not piece:
                break
            content += piece
    finally:
        os.close(read_from)
        os.waitpid(pid, 0)
    good, answer = pickle.loads(content)
    if not good:
        raise answer
    result: Result = answer
    return result


@contextlib.contextmanager
def looping(step: Callable[[int], None], uid: int | None = None) -> Iterator[None]:
    """Call `step(0)`, `step(1)`, ... in a forked process (as `uid`), killed when the block ends."""
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            _become(uid)
            count = 0
            while os.getppid() == parent:
                with contextlib.suppress(Exception):
                    step(count)
                count += 1
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Attack:
    """What the tests of this folder use: `run_as`, `looping`, `user`, `need_root`."""

    user = USER
    need_root = staticmethod(need_root)
    run_as = staticmethod(run_as)
    looping = staticmethod(looping)


@pytest.fixture
def attack() -> Attack:
    return Attack()


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A directory that belongs to the job's user and can be reached by it."""
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.name.startswith(("pytest-", "popen-")) or parent == tmp_path:  # pytest and its workers make them 0700
            parent.chmod(0o755)
    place = tmp_path / "sandbox"
    place.mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(place, USER, USER)
    return place


@pytest.fixture
def fds() -> Callable[[], int]:
    """Count the open file descriptors of this process."""
    return lambda: len(os.listdir("/proc/self/fd"))

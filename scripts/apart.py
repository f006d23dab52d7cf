"""Tests that reap, adopt or kill children do so in a process of their own: the suite has children, too."""

from __future__ import annotations

import functools
import os
import signal
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])
PATIENCE = 60.0


def apart(test: Test) -> Test:
    """Run a test in a forked process; what it raises there fails it here."""

    @functools.wraps(test)
    def run(*args: object, **names: object) -> None:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            failed = b""
            try:
                test(*args, **names)
            except BaseException:  # it is told to the parent
                failed = traceback.format_exc().encode()
            os.write(write, failed[-60_000:])
            os._exit(1 if failed else 0)
        os.close(write)
        deadline = time.monotonic() + PATIENCE
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                ended = os.waitpid(pid, 0)
                break
            time.sleep(0.005)
        with open(read, "rb") as stream:
            failed = stream.read() if os.WIFEXITED(ended[1]) else b"killed: not done in time"
        if ended[1]:
            pytest.fail(failed.decode(errors="replace"), pytrace=False)

    return run  # type: ignore[return-value]  # the same call

"""How long a test may take, and its fixtures before and after: `timeout` in pyproject.toml, more where daemons run."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Generator
from types import FrameType

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

DAEMONS = 600  # seconds
LOST = 900  # seconds after which all threads say where they are, when even a limit does not come through
_AGAIN = 60  # seconds: a thread waits for that; pytest itself would begin one for each test
_SETTINGS = pytest.StashKey[object]()
_NEXT = pytest.StashKey[float]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is marked `daemons` may take longer, unless the test says itself how long it may take."""
    for item in items:
        if item.get_closest_marker("daemons") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(DAEMONS))


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Begin the time anew from which on a test counts as lost."""
    stash, now = item.config.stash, time.monotonic()
    if now >= stash.get(_NEXT, now):
        stash[_NEXT] = now + _AGAIN
        faulthandler.dump_traceback_later(LOST, file=stash[fault_handler_stderr_fd_key])


class HungError(BaseException):
    """A test took too long. Hypothesis, which tries a failed example again and again, lets it through."""


@pytest.hookimpl(hookwrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> Generator[None, None, None]:
    """Let the timer go on, for what hangs again as it is cleaned up."""
    yield
    item.stash[_SETTINGS] = settings
    fail = signal.getsignal(signal.SIGALRM)

    def end(signum: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        try:
            if callable(fail):
                fail(signum, frame)
        except pytest.fail.Exception as failure:
            raise HungError(failure.msg) from None

    left = signal.getitimer(signal.ITIMER_REAL)[0]
    if left:
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, left, left)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def _limited(item: pytest.Item) -> Generator[None, None, None]:
    """Set the timer for each step of a test: pytest-timeout has none any more for the teardown of one that failed.

    Between the steps there is none, which would end pytest's own work.
    """
    if _SETTINGS in item.stash:
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[_SETTINGS])
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = _limited

# The timer is not its children's, and neither is what is done when it is over: SIGALRM ends them as it does a program.
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGALRM, signal.SIG_DFL))

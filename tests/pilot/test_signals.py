"""Signals wake a sleeping pilot, and are as before when it has ended."""

from __future__ import annotations

import os
import select
import signal

import pytest

from drainwise.pilot.runner import Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_request_wakes_and_counts(number: int) -> None:
    """Readable at once, counted once each, not readable any more after `clear`."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)}
    with Signals() as signals:
        assert not select.select([signals], [], [], 0)[0]
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert select.select([signals], [], [], 2)[0]
        assert signals.requests >= 1
        signals.clear()
        assert not select.select([signals], [], [], 0)[0]
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_child_that_ends_wakes() -> None:
    """SIGCHLD is an event, and no request."""
    with Signals() as signals:
        pid = os.posix_spawn("/bin/true", ["true"], os.environ)
        assert select.select([signals], [], [], 5)[0]
        os.waitpid(pid, 0)
        assert signals.requests == 0


def test_nohup_is_kept() -> None:
    """Who started the pilot with SIGHUP ignored wants it to outlive the terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.requests == 0
    finally:
        signal.signal(signal.SIGHUP, before)

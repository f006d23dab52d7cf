"""AgentSignals set a mark and end the sleep; none is lost and none cuts an act in two."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from drainwise.agent.signals import AgentSignals

AGES = 1e6
"""Seconds that nobody waits for: what ends, ends for another reason."""


@pytest.fixture
def signals() -> Iterator[AgentSignals]:
    made = AgentSignals()
    made.install()
    yield made
    made.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_term_and_int_end_the_sleep(signals: AgentSignals, number: signal.Signals) -> None:
    assert not signals.stopping
    os.kill(os.getpid(), number)
    assert signals.sleep(AGES)
    assert signals.stopping


def test_a_second_int_ends_at_once(signals: AgentSignals) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()


def test_hup_asks_for_a_reload_once(signals: AgentSignals) -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGHUP)
    assert signals.sleep(AGES)
    assert (signals.take_reload(), signals.take_reload(), signals.stopping) == (True, False, False)
    assert not signals.sleep(0.01)


def test_so_many_signals_as_you_like(signals: AgentSignals) -> None:
    for _ in range(70_000):
        signals.reload()
    while signals.sleep(0):
        pass
    assert signals.take_reload()


def test_afterwards_they_do_what_they_did() -> None:
    made = AgentSignals()
    made.install()
    made.close()
    assert signal.getsignal(signal.SIGTERM) == signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler

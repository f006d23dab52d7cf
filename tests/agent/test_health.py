"""The agent of a machine as the check sees it: by the kernel's word on its lock, its journal, its keeper."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.agent.health import AgentFacts, ServiceManager, facts_of, judge
from drainwise.journal.entries import state_event
from drainwise.journal.file import JournalFile
from drainwise.pool.finding import MISSING, OK

HOLD = """
import signal, sys
from drainwise.agent.lock import AgentLock
AgentLock(sys.argv[1]).must_take()
print("held", flush=True)
signal.pause()
"""
NOW = int(time.time())


class Place:
    """Where an agent keeps its lock and its journal, and what is seen of it there."""

    def __init__(self, directory: Path) -> None:
        self.lock, self.journal = str(directory / "agent.lock"), str(directory / "agent.journal")

    def seen(self, acting: bool = True, here: bool = True, keeper: ServiceManager | None = None) -> AgentFacts | None:
        return facts_of(self.lock, self.journal, acting, here, keeper, NOW)

    def found(self, acting: bool = True, here: bool = True, keeper: ServiceManager | None = None) -> dict[str, str]:
        """Severity by subject."""
        facts = self.seen(acting, here, keeper)
        return {} if facts is None else {one.what: one.severity for one in judge(facts)}

    def write(self, *events: dict[str, object]) -> None:
        for event in events:
            JournalFile(self.journal).write(event)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock as an agent does."""
    with subprocess.Popen([sys.executable, "-c", HOLD, place.lock], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def order(outcome: str, detail: str, age: int = 60) -> dict[str, object]:
    return {"event": "order", "version": 2, "time": NOW - age, "outcome": outcome, "detail": detail}


def test_an_agent_that_lives_is_in_order_and_its_death_is_seen(place: Place, agent: subprocess.Popen[str]) -> None:
    """Killed, it leaves its number in the lock's file; a process that has the number by chance is not taken for it."""
    facts = place.seen()
    assert facts is not None and facts.holder == agent.pid
    assert place.found() == {"agent": OK}
    agent.kill()
    agent.wait()
    assert Path(place.lock).read_text().strip() == str(agent.pid)
    assert place.found() == {"agent": MISSING}
    Path(place.lock).write_text(f"{os.getpid()}\n")
    assert place.found() == {"agent": MISSING}


def test_the_look_does_not_take_the_lock(place: Place) -> None:
    """A new agent that starts in this moment must find it free."""
    Path(place.lock).write_text("")
    place.found()
    with subprocess.Popen([sys.executable, "-c", HOLD, place.lock], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        process.kill()


def test_where_none_belongs_nothing_is_said(place: Place) -> None:
    """Another machine; a dry run; a machine from which the agent was moved, whose lock's file is still there."""
    assert place.seen(here=False) is None
    assert place.found(acting=False) == {}
    Path(place.lock).write_text("")
    assert place.found(here=False) == {}
    assert place.found(here=False, keeper=ServiceManager("systemd")) == {"agent": MISSING}


@pytest.mark.parametrize(
    "keeper", [ServiceManager("systemd", 0, "it ended (status 2, exit-code)"), ServiceManager("condor_master", 3)]
)
def test_an_agent_that_dies_at_each_start_is_told(place: Place, keeper: ServiceManager) -> None:
    """Also a dry run: whoever has it started wants it."""
    assert place.found(acting=False, keeper=keeper) == {"agent": MISSING}
    assert place.found(acting=False, keeper=ServiceManager(keeper.name, 2)) == {}


def test_orders_that_failed_are_told_with_the_last_reason(place: Place) -> None:
    """Of the last hour; those that were done or skipped are no fault."""
    old = order("failed", "long ago", 4000)
    place.write(old, order("done", ""), order("failed", "n1 refused"), order("failed", "n2 refused"))
    facts = place.seen(acting=False)
    assert facts is not None
    [found] = judge(facts)
    assert (found.what, found.severity, found.value) == (
        "agent's orders",
        MISSING,
        "2 of 3 orders of the last hour failed",
    )
    assert found.why.endswith("n2 refused")


@pytest.mark.usefixtures("agent")
def test_an_agent_that_backs_off_does_nothing(place: Place) -> None:
    place.write(state_event("backing off", "the collector does not answer", NOW - 5))
    assert place.found() == {"agent": OK, "agent's state": MISSING}
    facts = place.seen()
    assert facts is not None
    assert [one.line for one in judge(facts) if one.severity == MISSING] == [f"kill -HUP {facts.holder}   # the agent"]
    place.write(state_event("ok", "asks pilots", NOW - 1))
    assert place.found() == {"agent": OK}


def test_a_broken_journal_is_passed_over(place: Place) -> None:
    """Lines of other versions and half a line say nothing."""
    Path(place.journal).write_text(
        '{"event":"order","version":2,"time":true}\n{"event":"state"}\n{"event":"order","ver'
    )
    assert place.found(acting=False) == {}


def test_who_may_not_look_is_told_so(place: Place) -> None:
    """A plain user sees no lock: that is no fault of the agent."""
    Path(place.lock).symlink_to(place.lock)  # stands for what cannot be opened, also by root
    assert place.found() == {"agent": OK}

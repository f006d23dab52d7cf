"""A pool in memory for the commands: alice is over her quota, bob waits for 16 cores in jobs of 8."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from drainwise.cli import agent_place, pool_options
from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.pilotad.report import PilotReport
from drainwise.pool import Ending, Pilot, Principal, Snapshot


def pilot(number: int, now: int, begun: int, used: float | None, user: str = "alice@pool") -> Pilot:
    """An 8-core pilot that has 8 − `used` cores idle for the next 1000 s, or one that says nothing."""
    report = None
    if used is not None:
        report = PilotReport(
            now - 65,
            used_cpu=used,
            last_job_start=now - 600,
            first_exp_job_end=now + 1000,
            last_exp_job_end=now + 1000,
            add_uncom_time=0.0,
            add_final_exp_waste=0.0,
            priority_factor=3,
        )
    start = begun - 7200
    run = f"ce.pool#{number}.0#{start - 5}@{start}"
    return Pilot(run, f"slot1_{number}@node1", "node1", "group_a", user, 8, start, report=report)


class MemoryPool:
    """A batch system in memory that remembers what it was asked."""

    def __init__(self, wanted: float = 16.0, user: str = "alice@pool") -> None:
        self.wanted, self.user = wanted, user
        self.asked: dict[str, int] = {}
        self.refusing = self.unreachable = self.cannot_tend = False
        self.left_to_do: list[str] = []
        self.ended: dict[str, Ending] = {}
        self.now = int(time.time())

    def snapshot(self, now: int) -> Snapshot:
        if self.unreachable:
            raise PoolUnreachable("the collector did not answer within 8 s")
        pilots = tuple(pilot(n, now, self.now, used, self.user) for n, used in enumerate((7.0, 2.0, 5.0, None), 1))
        accounts = (
            Principal("group_a", 32.0, 16.0, 0.0, 900.0),
            Principal("group_b", 0.0, 16.0, self.wanted, 500.0, 8.0),
        )
        return Snapshot(now, pilots, accounts, 0.0, {self.user: 900.0})

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:
        if self.refusing:
            raise ActionRefused("node1 refused the order")
        self.asked[pilot.name] = deadline

    def take_back(self, pilot: Pilot, reason: str) -> None:
        if self.refusing:
            raise ActionRefused("node1 refused to take the order back")
        self.asked.pop(pilot.name, None)

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        if self.unreachable:
            raise PoolUnreachable("the records cannot be had")
        return {run: ending for run, ending in self.ended.items() if run in runs and ending.ended <= now}

    def tend(self, snapshot: Snapshot) -> list[str]:
        if self.cannot_tend:
            raise PoolUnreachable("slurmctld did not tell its jobs")
        left, self.left_to_do = self.left_to_do, []
        return left


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MemoryPool]:
    """The pool that the commands open as `htcondor`; no site file of this machine counts."""
    memory = MemoryPool()
    monkeypatch.setitem(pool_options.POOLS, "htcondor", lambda: memory)
    monkeypatch.setattr(pool_options, "missing_of_htcondor", lambda: "")
    monkeypatch.setattr(agent_place, "lock_path", lambda *_: str(tmp_path / "agent.lock"))
    monkeypatch.setattr(pool_options, "DEFAULT_SITE_FILE", "/nonexistent/site.ini")
    monkeypatch.delenv("COLUMNS", raising=False)
    yield memory

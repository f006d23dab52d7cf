"""A pool in memory for the commands: alice is over her quota, bob waits for 16 cores in jobs of 8."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.cli import agent_place, site_file
from drainwise.cli.main import main
from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.system import HTCondor
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from memory_pool import MemoryPool


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
            last_max_job_end=now + 4000,
            add_uncom_time=0.0,
            add_final_exp_waste=0.0,
            priority_factor=3,
        )
    start = begun - 7200
    run = f"ce.pool#{number}.0#{start - 5}@{start}"
    return Pilot(run, f"slot1_{number}@node1", "node1", "group_a", user, 8, start, report=report)


class AlicesPool(MemoryPool):
    """Four pilots of alice's, as of the snapshot's time."""

    def __init__(self, wanted: float = 16.0, user: str = "alice@pool") -> None:
        super().__init__()
        self.wanted, self.user = wanted, user
        self.now = int(time.time())
        self.versions: tuple[tuple[str, int], ...] = ()

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        pilots = tuple(pilot(n, now, self.now, used, self.user) for n, used in enumerate((7.0, 2.0, 5.0, None), 1))
        accounts = (
            Account("group_a", 32.0, 16.0, 0.0, 900.0),
            Account("group_b", 0.0, 16.0, self.wanted, 500.0, 8.0),
        )
        return Snapshot(now, pilots, accounts, 0.0, {self.user: 900.0}, versions=self.versions)

    def go_away(self) -> None:
        """Answer nothing any more."""
        self.fail(PoolUnreachable("the collector did not answer within 8 s"), "snapshot")
        self.fail(PoolUnreachable("the records cannot be had"), "endings")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture, tmp_path: Path) -> Iterator[AlicesPool]:
    """The pool that the commands open as `htcondor`; no site file of this machine counts."""
    memory = AlicesPool()
    for name, answer in (("open_pool", memory), ("missing", ""), ("ask_ahead", None), ("require", None)):
        mocker.patch.object(HTCondor, name, autospec=True, return_value=answer)
    mocker.patch.object(agent_place, "lock_path", autospec=True, return_value=str(tmp_path / "agent.lock"))
    monkeypatch.setattr(site_file, "DEFAULT_SITE_FILE", "/nonexistent/site.ini")
    monkeypatch.delenv("COLUMNS", raising=False)
    yield memory


@pytest.fixture
def journal(pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What one cycle on the pool in memory wrote."""
    path = str(tmp_path / "journal")
    assert main(["reclaim", "--once", "--act", "--journal", path]) == 0
    capsys.readouterr()
    pool.go_away()
    return path

"""Slurm as a pool: what is finished in each cycle. The commands are programs of the test's; see tests/daemons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.pool import OVERDUE_AFTER, SlurmPool
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import SiteRules
from drainwise.slurm.pool.transport import Answers

T0 = 1795270000
END = T0 + 601
OVERDUE = Snapshot(
    END + 200, (Pilot(f"17@{T0}", "17", "n1", "atlas", "alice", 8, T0, lease_end=END, deadline=END),), ()
)
RUN = f"17|17|N/A|0|RUNNING|{T0}|{END}|1|1|1|0|100|11:00|"


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """Slurm's commands: run 17 runs until it is cancelled; what waits is not told while `silent` is there."""
    (tmp_path / "runs").write_text(RUN)
    programs = {
        "squeue": f'case "$*" in *PENDING*) test ! -e {tmp_path}/silent;; *) cat {tmp_path}/runs;; esac',
        "scancel": f"sed -i s/RUNNING/CANCELLED/ {tmp_path}/runs",
        "scontrol": "",
        "sacctmgr": "",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def pool(bin_dir: Path, native: str, now: int) -> SlurmPool:
    return SlurmPool(replace(SlurmSection(), bin_dir=str(bin_dir), native_preemption=native), clock=lambda: now)


@pytest.mark.parametrize("native", ["no", "yes"])
def test_who_is_overdue_is_ended_and_told(bin_dir: Path, native: str) -> None:
    """Not before slurmctld itself has had its time."""
    assert pool(bin_dir, native, END + OVERDUE_AFTER).follow_up(OVERDUE) == []
    assert "RUNNING" in (bin_dir / "runs").read_text()
    assert pool(bin_dir, native, END + OVERDUE_AFTER + 1).follow_up(OVERDUE) == ["17 was overdue and is ended"]
    assert "CANCELLED" in (bin_dir / "runs").read_text()


def test_nobody_is_ended_without_a_word(bin_dir: Path) -> None:
    """HOSTILE 54: where priorities cannot be read there is no list of what was done, so nothing is done."""
    (bin_dir / "silent").touch()
    with pytest.raises(PoolUnreachable):
        pool(bin_dir, "yes", END + 200).follow_up(OVERDUE)
    assert "RUNNING" in (bin_dir / "runs").read_text()


class Answering:
    """A transport that gives one answer after the other."""

    def __init__(self, *trees: str) -> None:
        self._trees = list(trees)

    def answers(self) -> Answers:
        node = SlurmNode("n1", 0, 8, 8, False, frozenset({"main"}), cpus=8, unused=8)
        return Answers([], [node], shares_in(self._trees.pop(0)))


def test_accounts_that_are_gone_make_one_answer_doubtful(bin_dir: Path) -> None:
    """sshare's may have been cut at a line's end; what it says twice is so."""
    whole, cut = "root|||0\n atlas||2|0\n cms||1|0\n", "root|||0\n atlas||2|0\n"
    seen = SlurmPool(SlurmSection(bin_dir=str(bin_dir)), SiteRules(7200), Answering(whole, cut, cut, whole))
    seen.snapshot(1_795_270_000)
    with pytest.raises(PoolUnreachable, match="doubtful answer: sshare lacks 1 accounts that it had, such as cms"):
        seen.snapshot(1_795_270_060)
    for later in (120, 180):
        assert seen.snapshot(1_795_270_000 + later).taken == 1_795_270_000 + later


def test_what_runs_in_a_job_began_with_its_longest_step(tmp_path: Path) -> None:
    """Its batch script is none; nothing that a user has named is read."""
    steps = "7.batch 1-00:00:00\n7.0 00:40\n7.1 01:00:00\n8_3.0 10:02\n8_3.extern 02:00\nodd\n9.0 never\n"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\nprintf '{steps}'\n")
    (tmp_path / "squeue").chmod(0o755)
    made = SlurmPool(SlurmSection(bin_dir=str(tmp_path)))
    assert made.steps_since(T0) == {"7": T0 - 3600, "8_3": T0 - 602}

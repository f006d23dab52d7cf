"""Slurm as a pool: what is finished in each cycle. The commands are programs of the test's; see tests/daemons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Piece, Pilot, Snapshot
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.pool import pool as pool_module
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import SiteRules
from drainwise.slurm.pool.transport import Answers, SlurmTransport

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
    assert pool(bin_dir, native, END + 120).follow_up(OVERDUE) == []
    assert "RUNNING" in (bin_dir / "runs").read_text()
    assert pool(bin_dir, native, END + 120 + 1).follow_up(OVERDUE) == ["17 was overdue and is ended"]
    assert "CANCELLED" in (bin_dir / "runs").read_text()


def test_nobody_is_ended_without_a_word(bin_dir: Path) -> None:
    """HOSTILE 54: where priorities cannot be read there is no list of what was done, so nothing is done."""
    (bin_dir / "silent").touch()
    with pytest.raises(PoolUnreachable):
        pool(bin_dir, "yes", END + 200).follow_up(OVERDUE)
    assert "RUNNING" in (bin_dir / "runs").read_text()


class Answering(SlurmTransport):
    """A transport that gives one answer after the other."""

    def __init__(self, *trees: str) -> None:
        super().__init__(SlurmCommands(), 30.0)
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


LEASE = SlurmJob(17, states=frozenset({RUNNING}), start=T0, end=END, limit=600)


class Parts:
    """A pool whose parts are made up, and what each was told."""

    def __init__(self, mocker: MockerFixture, native: str = "no") -> None:
        names = ("SlurmOrders", "OrderMarks", "SlurmPreemption", "SlurmEndings", "SlurmClosings", "Allocations")
        made = {name: mocker.patch.object(pool_module, name, autospec=True).return_value for name in names}
        self.orders, self.marks, self.native, self.endings, self.closings, _ = made.values()
        self.orders.shorten.return_value = self.orders.withdraw.return_value = LEASE
        self.orders.must_run.return_value = LEASE
        self.orders.give_limits_back.return_value, self.native.settle.return_value = ["17 has its limit"], ["18"]
        self.marks.write.return_value = ""
        settings = replace(SlurmSection(), native_preemption=native)
        self.transport = mocker.Mock(spec_set=["answers"])
        self.pool = SlurmPool(settings, transport=self.transport, clock=lambda: T0)


PILOT = Pilot(f"17@{T0}", "17", "n1", "atlas", "alice", 8, T0, lease_end=END)
ORDERED = replace(PILOT, deadline=END)
WIDE = replace(PILOT, pieces=(Piece("n1", "", Amounts(cores=4)), Piece("n2", "", Amounts(cores=4))))


@pytest.mark.parametrize("native", ["no", "yes"])
@pytest.mark.parametrize("pilot", [PILOT, ORDERED])
def test_a_deadline_that_is_over_ends_a_run_at_once(mocker: MockerFixture, native: str, pilot: Pilot) -> None:
    """Requeued where it has no order yet; such a one is left to Slurm's own preemption where that is the site's way."""
    parts = Parts(mocker, native)
    parts.pool.give_order(pilot, T0 + 1, "why")
    parts.orders.shorten.assert_called_once_with(PILOT.run, T0 + 1, "why")
    parts.marks.write.assert_called_once_with("n1", 17, END)
    parts.pool.give_order(pilot, T0, "why")
    if native == "yes" and pilot is PILOT:
        parts.native.expose.assert_called_once_with(PILOT.run)
        parts.orders.end_now.assert_not_called()
    else:
        parts.orders.end_now.assert_called_once_with(PILOT.run, "why", requeue=pilot is PILOT)
        parts.native.expose.assert_not_called()


def test_all_nodes_of_a_run_look_at_its_lease_when_it_is_given_back(mocker: MockerFixture) -> None:
    parts = Parts(mocker)
    parts.orders.withdraw.return_value = replace(LEASE, end=None)
    parts.pool.withdraw_order(WIDE, "why")
    parts.orders.withdraw.assert_called_once_with(PILOT.run, "why")
    assert [call.args for call in parts.marks.write.call_args_list] == [("n1", 17, 0), ("n2", 17, 0)]


@pytest.mark.parametrize("native", ["no", "yes"])
def test_what_a_cycle_finishes_is_told(mocker: MockerFixture, native: str) -> None:
    """A run that cannot be ended keeps no other from its end; one without an order is never overdue."""
    parts = Parts(mocker, native)
    parts.marks.entry.return_value = str(END)
    overdue = replace(ORDERED, deadline=T0 - 121)
    parts.orders.end_now.side_effect = [PoolError("silent"), None]
    said = parts.pool.follow_up(Snapshot(T0, (PILOT, ORDERED, overdue, replace(overdue, name="18")), ()))
    settled = ["18 has its own priority again"] if native == "yes" else []
    assert said == [
        *settled,
        "17 has its limit",
        "17 is overdue and is not ended: silent",
        "18 was overdue and is ended",
    ]
    parts.orders.end_now.assert_called_with(PILOT.run, "it is overdue", requeue=False)


@pytest.mark.parametrize(
    ("pilot", "entry", "is_marked"),
    [
        (PILOT, None, False),
        (PILOT, str(END), False),
        (PILOT, str(END + 1), True),
        (ORDERED, None, True),
        (ORDERED, str(END), False),
        (replace(PILOT, lease_end=None), "0", False),
        (replace(PILOT, lease_end=None), str(END), True),
        (replace(ORDERED, cannot="why"), None, False),
        (replace(ORDERED, leaving=True), None, False),
        (replace(WIDE, deadline=END), None, True),
    ],
)
def test_nodes_are_marked_for_leases_that_somebody_changed(
    mocker: MockerFixture, pilot: Pilot, entry: str | None, is_marked: bool
) -> None:
    """Where their mark says something else, or an order has none."""
    parts = Parts(mocker)
    parts.orders.give_limits_back.return_value = []
    parts.pool._numbers = {"17": 17}
    parts.marks.entry.side_effect = lambda _node, number: {17: entry}.get(number, "unknown")
    parts.marks.write.return_value = "silent"
    said = parts.pool.follow_up(Snapshot(T0, (pilot,), ()))
    why = "; ".join(["silent"] * len(pilot.nodes))
    assert said == ([f"17 receives the change of its lease later: {why}"] if is_marked else [])
    assert [call.args for call in parts.marks.write.call_args_list] == [
        (node, 17, END) for node in (pilot.nodes if is_marked else ())
    ]


def test_few_are_marked_in_a_cycle_and_none_that_has_ended(mocker: MockerFixture) -> None:
    """Nor where the node's agent asks for a run on several nodes anyhow."""
    parts = Parts(mocker)
    parts.orders.give_limits_back.return_value = []
    parts.marks.entry.return_value = None
    many = tuple(replace(ORDERED, run=f"{number}@{T0}") for number in range(65))
    parts.orders.must_run.side_effect = [PoolError("ended"), *[LEASE] * 63]
    assert parts.pool.follow_up(Snapshot(T0, many, ())) == []
    assert len(parts.marks.write.call_args_list) == 63
    parts.marks.has_carrier.return_value = False
    parts.pool.follow_up(Snapshot(T0, (replace(WIDE, deadline=END),), ()))
    assert len(parts.marks.write.call_args_list) == 63


def test_of_those_who_ended_an_account_has_its_own_and_its_children(mocker: MockerFixture) -> None:
    """As the tree of the last snapshot says; before it each account is its own."""
    parts = Parts(mocker)
    parts.endings.ended_on.return_value = [
        ("atlas", (T0, T0 + 9, 8)),
        ("higgs", (T0, T0 + 9, 4)),
        ("cms", (T0, T0 + 9, 2)),
    ]
    assert parts.pool.cores_of_ended("atlas", ["n1"], T0, T0 + 9) == 8
    parts.endings.ended_on.assert_called_once_with(["n1"], T0)
    tree = mocker.Mock(accounts=frozenset(), sharing_account={"higgs": "atlas"}.get)
    parts.transport.answers.return_value = Answers([], [], tree)
    mocker.patch.object(pool_module, "snapshot_of", autospec=True, return_value=Snapshot(T0, (), ()))
    parts.pool.snapshot(T0)
    assert parts.pool.cores_of_ended("atlas", ["n1"], T0, T0 + 9) == 4


def test_a_snapshot_tells_the_parts_what_they_need(mocker: MockerFixture) -> None:
    """The marks all jobs; the orders which runs of several nodes they may reach, and which limits were taken."""
    parts = Parts(mocker)
    jobs = [SlurmJob(17), SlurmJob(18)]
    parts.transport.answers.return_value = Answers(jobs, [], shares_in("root|||0\n"))
    pilots = (PILOT, WIDE, replace(WIDE, run="18@1", cannot="why"))
    mocker.patch.object(pool_module, "snapshot_of", autospec=True, return_value=Snapshot(T0, pilots, ()))
    parts.pool.snapshot(T0)
    parts.marks.learn.assert_called_once_with(jobs)
    assert parts.orders.as_one == {WIDE.run}
    parts.pool.follow_up(Snapshot(T0, (), ()))
    parts.orders.give_limits_back.assert_called_once_with(jobs)
    parts.closings.close_nodes.return_value = ["made"]
    assert parts.pool.close_nodes([], Snapshot(T0, (), ()), T0) == ["made"]


def test_what_runs_in_a_job_began_with_its_longest_step(tmp_path: Path) -> None:
    """Its batch script is none; nothing that a user has named is read."""
    steps = "7.batch 1-00:00:00\n7.0 00:40\n7.1 01:00:00\n8_3.0 10:02\n8_3.extern 02:00\nodd\n9.0 never\n"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\nprintf '{steps}'\n")
    (tmp_path / "squeue").chmod(0o755)
    made = SlurmPool(SlurmSection(bin_dir=str(tmp_path)))
    assert made.steps_since(T0) == {"7": T0 - 3600, "8_3": T0 - 602}

"""What the reclaim agent sees of the local batch system."""

from __future__ import annotations

from dataclasses import replace

from drainwise.facts.client_rules import ClientRules
from drainwise.local.job import RUNNING, STARTING, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.pool import snapshot_of
from drainwise.local.schedule import WaitingJob
from drainwise.local.store import LocalState
from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.quota import owed, require_whole, weigh

NOW = 1795249000
ACCOUNTS = (AccountQuota("alice", 16), AccountQuota("bob", 16), AccountQuota("none", 0))
NODES = (LocalNode("node1", 16), LocalNode("node2", 16))


def job(number: int, cores: int, node: str, state: str = RUNNING) -> LocalJob:
    request = JobRequest("alice", "alice", cores, ("pilot",), 3600)
    return LocalJob(number, request, 0.0, state=state, node=node, run=f"{number}@{NOW}", started=NOW)


def test_cores_of_those_over_and_under_their_quota_are_in_the_balance() -> None:
    report = PilotReport(NOW, used_cpu=3.0)
    live = (
        job(1, 16, "node1"),
        replace(job(2, 8, "node2"), deadline=NOW + 60),
        replace(job(3, 8, "node2"), removed=True),
    )
    state = LocalState(
        ACCOUNTS, NODES, live, (WaitingJob(4, "bob", 8, 60), WaitingJob(5, "bob", 8, 60)), {f"1@{NOW}": report}
    )
    snapshot = snapshot_of(state, NOW)
    require_whole(snapshot)
    [first, second, third] = snapshot.pilots
    assert (first.run, first.cores, first.lease_end, first.report) == (f"1@{NOW}", 16, NOW + 3600, report)
    assert (second.deadline, second.leaving) == (NOW + 60, False)
    assert (third.deadline, third.leaving) == (None, True)
    assert {one.name: one.cores_in_use for one in snapshot.accounts} == {"alice": 32.0, "bob": 0.0, "none": 0.0}
    assert [owed(one) for one in snapshot.accounts] == [0, 16, 0]
    balance = weigh(snapshot, NOW, 7200)
    assert (balance.demand, balance.surplus, balance.leaving, balance.deficit) == (16, 16, 16, 0)


def test_free_cores_count_as_they_lie_and_for_who_is_owed_them() -> None:
    live = (job(1, 12, "node1"), job(2, 12, "node2"))
    state = LocalState(ACCOUNTS, NODES, live, (WaitingJob(4, "bob", 8, 60), WaitingJob(5, "alice", 4, 60)), {})
    assert snapshot_of(state, NOW).free_cores == 0.0
    state = LocalState(ACCOUNTS, NODES, live[:1], (WaitingJob(4, "bob", 8, 60), WaitingJob(5, "alice", 4, 60)), {})
    assert snapshot_of(state, NOW).free_cores == 12.0


def test_a_job_that_no_node_can_hold_asks_for_nobodys_cores() -> None:
    state = LocalState(ACCOUNTS, NODES, (), (WaitingJob(4, "bob", 17, 60),), {})
    assert [one.cores_wanted for one in snapshot_of(state, NOW).accounts] == [0.0, 0.0, 0.0]


def test_a_lease_that_is_only_being_started_uses_its_cores_and_is_no_pilot_yet() -> None:
    state = LocalState(ACCOUNTS, NODES, (job(1, 8, "node1", state=STARTING),), (), {})
    snapshot = snapshot_of(state, NOW)
    assert snapshot.pilots == () and snapshot.accounts[0].cores_in_use == 8.0


def test_who_uses_most_of_a_small_quota_has_the_worst_priority() -> None:
    state = LocalState(ACCOUNTS, NODES, (job(1, 16, "node1"),), (), {})
    priorities = [one.priority for one in snapshot_of(state, NOW).accounts]
    assert priorities == [100.0, 0.0, 0.0]


def test_a_pilot_is_of_the_client_that_the_site_says() -> None:
    state = LocalState(ACCOUNTS, NODES, (job(1, 8, "node1"),), (), {})
    assert [one.client for one in snapshot_of(state, NOW).pilots] == ["paper"]
    assert [one.client for one in snapshot_of(state, NOW, ClientRules({"dirac": "user=ali*"})).pilots] == ["dirac"]

"""Who starts: owed before not owed, never more than there is, nobody starved."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.local.job import AccountQuota, LocalNode
from drainwise.local.schedule import Holding, Schedule, WaitingJob, choose_starts, load, owed_jobs, usable_cores

ALICE, BOB = AccountQuota("alice", 16), AccountQuota("bob", 16)
NODE = LocalNode("node1", 32)
HOUR = 3600


def jobs(account: str, *cores: int, first: int = 1, wall: int = HOUR) -> list[WaitingJob]:
    return [WaitingJob(first + place, account, size, wall) for place, size in enumerate(cores)]


def started(schedule: Schedule) -> list[int]:
    return [start.job_id for start in schedule.starts]


def test_an_account_may_use_free_cores_beyond_its_quota() -> None:
    assert len(started(choose_starts(jobs("alice", *[8] * 5), [], [NODE], [ALICE, BOB], 0))) == 4


def test_who_is_owed_is_served_before_who_is_not_whoever_asked_first() -> None:
    waiting = [*jobs("alice", 8, 8, first=1), *jobs("bob", 8, 8, first=10)]
    running = [Holding("alice", "node1", 16, 9000)]
    assert started(choose_starts(waiting, running, [NODE], [ALICE, BOB], 0)) == [10, 11]


def test_of_those_beyond_their_quota_the_one_with_the_smallest_part_of_its_quota_is_next() -> None:
    accounts = [AccountQuota("alice", 8), AccountQuota("bob", 4)]
    running = [Holding("alice", "node1", 10, 9000), Holding("bob", "node1", 6, 9000)]
    waiting = [*jobs("bob", 4), *jobs("alice", 4, first=10)]
    nodes = [LocalNode("node1", 20)]
    assert started(choose_starts(waiting, running, nodes, accounts, 0)) == [10]


def test_an_account_without_quota_gets_what_nobody_owed_wants() -> None:
    nobody = AccountQuota("nobody", 0)
    waiting = [*jobs("nobody", 8, 8, first=1), *jobs("alice", 8, first=10)]
    assert started(choose_starts(waiting, [], [LocalNode("node1", 16)], [nobody, ALICE], 0)) == [10, 1]
    assert load(8, 0) > load(64, 16)


def test_within_an_account_priority_counts_then_age() -> None:
    waiting = [WaitingJob(1, "alice", 8, HOUR), WaitingJob(2, "alice", 8, HOUR, 5), WaitingJob(3, "alice", 8, HOUR, 5)]
    assert started(choose_starts(waiting, [], [NODE], [ALICE], 0)) == [2, 3, 1]


def test_a_job_goes_to_one_node_the_first_on_which_it_fits() -> None:
    nodes = [LocalNode("node1", 8), LocalNode("node2", 16)]
    schedule = choose_starts(jobs("alice", 12, 6, 6), [], nodes, [ALICE], 0)
    assert [(start.job_id, start.node) for start in schedule.starts] == [(1, "node2"), (2, "node1")]


def test_what_cannot_run_anywhere_waits_and_keeps_no_node() -> None:
    waiting = [*jobs("alice", 33), *jobs("stranger", 1, first=5), *jobs("bob", 1, first=9)]
    schedule = choose_starts(waiting, [], [NODE], [ALICE, BOB], 0)
    assert started(schedule) == [9] and schedule.reservations == ()


def test_leases_on_a_node_that_is_no_more_count_for_their_account_alone() -> None:
    running = [Holding("alice", "node9", 16, 9000)]
    assert started(choose_starts(jobs("bob", 32), running, [NODE], [ALICE, BOB], 0)) == [1]


def test_a_larger_job_gets_a_node_kept_and_smaller_ones_use_it_meanwhile() -> None:
    running = [Holding("bob", "node1", 16, 1000), Holding("bob", "node1", 8, 5000)]
    large = WaitingJob(1, "alice", 24, HOUR)
    too_long, short = WaitingJob(2, "bob", 4, 1001), WaitingJob(3, "bob", 4, 1000)
    schedule = choose_starts([large, too_long, short], running, [NODE], [ALICE, BOB], 0)
    assert started(schedule) == [3]
    [kept] = schedule.reservations
    assert (kept.job_id, kept.node, kept.at, kept.spare) == (1, "node1", 1000, 0)


def test_what_the_larger_job_does_not_need_is_not_kept() -> None:
    running = [Holding("bob", "node1", 28, 1000)]
    waiting = [WaitingJob(1, "alice", 29, HOUR), WaitingJob(2, "bob", 2, HOUR), WaitingJob(3, "bob", 2, HOUR)]
    assert started(choose_starts(waiting, running, [NODE], [ALICE, BOB], 0)) == [2]


@pytest.mark.parametrize("wall", [100, 50])
def test_a_larger_job_is_not_starved_by_a_stream_of_smaller_ones(wall: int) -> None:
    """Four nodes full of small jobs, of which there are always more: the large one starts when the first leases end."""
    nodes = [LocalNode(f"node{number}", 8) for number in range(1, 5)]
    accounts = [AccountQuota("alice", 8), AccountQuota("bob", 8)]
    running: dict[int, Holding] = {}
    large, number = WaitingJob(1, "alice", 8, 1000), 2
    for now in range(0, 1000, 7):
        running = {job: lease for job, lease in running.items() if lease.lease_end > now}
        small = [WaitingJob(number + place, "bob", 1, wall) for place in range(8)]
        number += 8
        known = {job.job_id: job for job in [*small, *([large] if now >= 50 else [])]}
        for start in choose_starts(known.values(), list(running.values()), nodes, accounts, now).starts:
            job = known[start.job_id]
            running[start.job_id] = Holding(job.account, start.node, job.cores, now + job.wall_limit)
        if 1 in running:
            assert now <= 50 + wall + 14
            return
    raise AssertionError("the large job never started")


accounts_strategy = st.lists(st.integers(0, 40), min_size=1, max_size=4).map(
    lambda quotas: [AccountQuota(f"a{place}", quota) for place, quota in enumerate(quotas)]
)
nodes_strategy = st.lists(st.integers(1, 32), min_size=1, max_size=4).map(
    lambda cores: [LocalNode(f"node{place}", size) for place, size in enumerate(cores)]
)
waiting_strategy = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 36), st.integers(1, 500), st.integers(-2, 2)), max_size=30
).map(lambda rows: [WaitingJob(n, f"a{account}", c, w, p) for n, (account, c, w, p) in enumerate(rows, 1)])
leases_strategy = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 8), st.integers(-50, 600)))


def fitting(rows: list[tuple[int, int, int, int]], nodes: list[LocalNode]) -> list[Holding]:
    """Leases that the nodes can really hold."""
    free = {node.name: node.cores for node in nodes}
    held = []
    for account, node, cores, end in rows:
        name = f"node{node}"
        if free.get(name, 0) >= cores:
            free[name] -= cores
            held.append(Holding(f"a{account}", name, cores, end))
    return held


@given(waiting_strategy, leases_strategy, nodes_strategy, accounts_strategy)
def test_no_node_is_ever_oversubscribed_and_no_free_core_idles_for_a_job_that_may_use_it(
    waiting: list[WaitingJob],
    rows: list[tuple[int, int, int, int]],
    nodes: list[LocalNode],
    accounts: list[AccountQuota],
) -> None:
    running = fitting(rows, nodes)
    schedule = choose_starts(waiting, running, nodes, accounts, 0)
    by_id = {job.job_id: job for job in waiting}
    used: Counter[str] = Counter()
    for lease in running:
        used[lease.node] += lease.cores
    for start in schedule.starts:
        used[start.node] += by_id[start.job_id].cores
    free = {node.name: node.cores - used[node.name] for node in nodes}
    assert min(free.values()) >= 0
    assert len({start.job_id for start in schedule.starts}) == len(schedule.starts)
    kept = {one.node for one in schedule.reservations}
    quotas = {account.name for account in accounts}
    for job in waiting:
        if job.account in quotas and job.job_id not in {start.job_id for start in schedule.starts}:
            assert all(size < job.cores for node, size in free.items() if node not in kept)


@given(waiting_strategy, leases_strategy, nodes_strategy, accounts_strategy)
def test_no_start_delays_the_job_for_which_the_first_node_is_kept(
    waiting: list[WaitingJob],
    rows: list[tuple[int, int, int, int]],
    nodes: list[LocalNode],
    accounts: list[AccountQuota],
) -> None:
    """When its time has come, the cores are free there, whatever was started in the meantime."""
    running = fitting(rows, nodes)
    schedule = choose_starts(waiting, running, nodes, accounts, 0)
    by_id = {job.job_id: job for job in waiting}
    for kept in schedule.reservations:
        held = [(lease.cores, max(lease.lease_end, 0)) for lease in running if lease.node == kept.node]
        held += [(by_id[s.job_id].cores, by_id[s.job_id].wall_limit) for s in schedule.starts if s.node == kept.node]
        cores = next(node.cores for node in nodes if node.name == kept.node)
        assert cores - sum(size for size, end in held if end > kept.at) >= kept.cores


@given(waiting_strategy, leases_strategy, nodes_strategy, accounts_strategy)
def test_cores_that_count_as_usable_are_free_and_owed(
    waiting: list[WaitingJob],
    rows: list[tuple[int, int, int, int]],
    nodes: list[LocalNode],
    accounts: list[AccountQuota],
) -> None:
    running = fitting(rows, nodes)
    usable = usable_cores(waiting, running, nodes, accounts, 0)
    quotas = {account.name: account.quota for account in accounts}
    assert 0 <= usable <= sum(node.cores for node in nodes) - sum(lease.cores for lease in running)
    assert usable <= sum(job.cores for job in owed_jobs(waiting, running, quotas))


def seconds_to_choose(count: int) -> float:
    """CPU time with so many waiting jobs that can all start; the best of three."""
    waiting = [WaitingJob(n, f"a{n % 20}", 1 + n % 16, 60 + n % 977) for n in range(1, count + 1)]
    nodes = [LocalNode(f"node{n}", count) for n in range(50)]
    accounts = [AccountQuota(f"a{n}", 100) for n in range(20)]
    taken = []
    for _ in range(3):
        begun = time.process_time()
        assert len(choose_starts(waiting, [], nodes, accounts, 0).starts) == count
        taken.append(time.process_time() - begun)
    return min(taken)


def test_ten_thousand_waiting_jobs_are_looked_at_once() -> None:
    """It costs time in the number of jobs, not in its square: twenty times as many cost about twenty times as long."""
    assert seconds_to_choose(10_000) < 60 * seconds_to_choose(500)

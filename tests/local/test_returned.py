"""Leases that shrink: what is lent is returned first, and nothing is held twice for longer than others hold it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from drainwise.local.job import RUNNING, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.pool import snapshot_of
from drainwise.local.returned import acknowledged, held_cores, owed_by_node, returned_parts
from drainwise.local.schedule import WaitingJob, choose_starts, holdings
from drainwise.local.store import LocalState
from drainwise.pilot.decide.lease import ReturnedCores
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn, ReturnedPart
from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.columns import standing_of

NOW = 1_795_249_000
NODE = LocalNode("node1", 16)
CORES = {"node1": 16}
ACCOUNTS = (AccountQuota("alice", 8), AccountQuota("bob", 8))


def job(number: int, cores: int, account: str = "alice") -> LocalJob:
    request = JobRequest(account, account, cores, ("pilot",), 3600)
    run = f"{number}@{NOW - 100}"
    return LocalJob(number, request, 0.0, state=RUNNING, node=NODE.name, run=run, started=NOW - 100)


def report(cores: int, used: int, since: int = NOW - 10) -> PilotReport:
    """Of a pilot that has returned so many."""
    return PilotReport(
        *(NOW - 5, float(used), NOW - 90, NOW + 60, NOW + 60),
        add_uncom_time=0.0,
        add_final_exp_waste=0.0,
        returned_cores=cores,
        returned_since=since,
    )


def test_what_is_returned_goes_to_who_waits_and_is_charged_to_nobody() -> None:
    """A lease of 16 that has returned 6 holds 10: bob's job of 4 starts, the account uses 10, the plan sees 10."""
    live, reports = [job(1, 16)], {f"1@{NOW - 100}": report(6, 10)}
    returned = returned_parts(live, reports, NOW)
    assert held_cores(live[0], returned) == 10
    waiting = (WaitingJob(2, "bob", 8, 60), WaitingJob(3, "bob", 4, 60))
    starts = choose_starts(waiting[1:], holdings(live, returned), [NODE], ACCOUNTS, NOW).starts
    assert [one.job_id for one in starts] == [3]
    assert choose_starts(waiting[:1], holdings(live, returned), [NODE], ACCOUNTS, NOW).starts == ()
    snapshot = snapshot_of(LocalState(ACCOUNTS, (NODE,), tuple(live), waiting[1:], reports), NOW)
    [pilot] = snapshot.pilots
    assert (pilot.cores, pilot.returned, snapshot.free_cores, snapshot.accounts[0].cores_in_use) == (10, 6, 4.0, 10.0)
    assert standing_of(pilot, NOW, 3600) == ("fresh", "")


@pytest.mark.parametrize(
    ("wish", "asked"),
    [
        (None, 0),
        (PartialReturn(12, NOW + 60, 4), 12),
        (PartialReturn(12, NOW), 6),  # it is over: what is returned stays so, and a new wish is another one
        (PartialReturn(99), 15),
    ],
)
def test_the_agent_sees_wishes_and_who_can_return_where_it_may_ask(wish: PartialReturn | None, asked: int) -> None:
    """Its own key in the site file; without it nobody can return any and no wish stands, whoever asked."""
    live = [job(1, 16), job(2, 16)]
    said = {live[0].run: report(6, 10), live[1].run: PilotReport(NOW - 5, used_cpu=16.0)}
    state = LocalState(ACCOUNTS, (NODE,), tuple(live), (), said, {} if wish is None else {live[0].run: wish})
    shown = [
        [(one.returned, one.can_return, one.asked) for one in snapshot_of(state, NOW, is_for_parts=is_for_parts).pilots]
        for is_for_parts in (True, False)
    ]
    assert shown == [[(6, 9, asked), (0, 0, 0)], [(6, 0, 0), (0, 0, 0)]]


def test_a_pilot_that_waits_for_its_cores_goes_without_them() -> None:
    """Two state that they use all of theirs again; three are held still, and count for who holds them alone."""
    live = (job(1, 8), job(2, 8), job(3, 3, "bob"))
    said = {live[0].run: report(0, 7), live[1].run: report(0, 6)}
    snapshot = snapshot_of(LocalState(ACCOUNTS, (NODE,), live, (), said), NOW, is_for_parts=True)
    assert [(one.cores, one.returned, one.can_return) for one in snapshot.pilots] == [(7, 1, 6), (6, 2, 5), (3, 0, 0)]
    assert {one.name: one.cores_in_use for one in snapshot.accounts} == {"alice": 13.0, "bob": 3.0}
    assert [standing_of(one, NOW, 3600)[0] for one in snapshot.pilots[:2]] == ["fresh"] * 2


def test_a_pilot_whose_statement_is_void_can_return_nothing() -> None:
    """Too old."""
    state = LocalState(ACCOUNTS, (NODE,), (job(1, 16),), (), {f"1@{NOW - 100}": report(6, 10)})
    [pilot] = snapshot_of(state, NOW + 7200, is_for_parts=True).pilots
    assert (pilot.cores, pilot.returned, pilot.can_return) == (16, 0, 0)


@pytest.mark.parametrize(
    "void",
    [
        replace(job(1, 16), started=NOW + 100),  # the report is an earlier run's
        job(1, 8),  # more cores in use and returned than the lease has
    ],
)
def test_a_report_that_is_void_returns_nothing(void: LocalJob) -> None:
    """Nobody new comes."""
    assert returned_parts([void], {void.run: report(6, 10)}, NOW) == {}
    assert returned_parts([job(1, 16)], {f"1@{NOW - 100}": report(6, 10)}, NOW + 7200) == {}


def test_cores_that_others_hold_are_owed_and_said_so() -> None:
    """Two pilots have all their cores back by their word, and three are held still: neither may use these three."""
    live = [job(1, 8), job(2, 8), job(3, 3, "bob")]
    returned = returned_parts(live, {one.run: report(0, 5) for one in live[:2]}, NOW)
    owed = owed_by_node(live, returned, CORES)
    assert owed == {"node1": 3}
    assert [acknowledged(one, returned, 3) for one in live] == [Acknowledgement(NOW - 10, 5, 3)] * 2 + [None]
    assert acknowledged(live[0], returned, 0) == Acknowledgement(NOW - 10, 8, 0)


@pytest.mark.parametrize("seed", range(60))
def test_no_core_of_a_node_is_ever_used_twice(seed: int) -> None:
    """Several pilots that shrink and grow, each with its own pace of reports and notices, and jobs that take what is
    free by the daemon's own functions: what all use fits the node at every moment.
    """
    chance = random.Random(seed)
    live = [job(number, cores) for number, cores in enumerate((6, 6, 4), 1)]
    pilots = {one.run: ReturnedCores(one.cores, NOW) for one in live}
    used = {one.run: one.cores for one in live}
    stated: dict[str, ReturnedPart] = {}
    told: dict[str, tuple[PartialReturn | None, Acknowledgement | None]] = {one.run: (None, None) for one in live}
    lent: list[LocalJob] = []
    for now in range(NOW + 1, NOW + 120):
        one = chance.choice(live)
        what = chance.choice(("read", "read", "answer", "answer", "ask", "payload ends", "payload ends", "job ends"))
        if what == "read":
            stated[one.run] = pilots[one.run].stated
        elif what == "answer":
            owed = owed_by_node([*live, *lent], stated, CORES)["node1"]
            told[one.run] = (told[one.run][0], acknowledged(one, stated, owed))
        elif what == "ask":
            told[one.run] = (PartialReturn(chance.randint(0, 6)), told[one.run][1])
        elif what == "payload ends":
            used[one.run] = max(0, used[one.run] - chance.randint(1, 2))
        elif lent:
            lent.pop(chance.randrange(len(lent)))
        pilot = pilots[one.run]
        pilot.settle(*told[one.run], used[one.run], now)
        if chance.random() < 0.7:
            used[one.run] = max(used[one.run], pilot.fillable)
        waiting = [WaitingJob(1000 + now, "bob", chance.randint(1, 3), 60)]
        held = holdings([*live, *lent], stated)
        lent += [
            job(start.job_id, waiting[0].cores, "bob")
            for start in choose_starts(waiting, held, [NODE], ACCOUNTS, now).starts
        ]
        assert all(used[each.run] <= pilots[each.run].usable for each in live)
        assert sum(used.values()) + sum(each.cores for each in lent) <= NODE.cores

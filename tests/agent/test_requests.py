"""Requests over several cycles: what an agent that was started again knows, what starts anew, what is cancelled."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals, Cycle
from drainwise.facts.errors import OrderUnanswered, UsageError
from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.reclaim.history import PastOrder
from drainwise.requests.request import AdminRequest, RequestFiles

from .memory_pool import NOW, SETTINGS, AlicesPool, Killed, Lines, pilot

CORES = AdminRequest("r1", NOW, NOW + 3600, cores=16, user="alice")
NODES = AdminRequest("r2", NOW, NOW + 3600, nodes=("n",))


class Agent:
    """Cycles, one after the other; `again` is another process with the same journal."""

    def __init__(self, pool: AlicesPool, place: Path, *requests: AdminRequest) -> None:
        self.pool, self.place, self.requests, self.now = pool, place, requests, NOW
        self.memory, self.journal, self.confirmed = Memory(), Lines(), ConfirmedWithdrawals()

    def cycle(self, later: int = 0) -> Cycle:
        self.now += later
        return AgentCycle(
            self.pool,
            SETTINGS,
            self.memory,
            self.journal,
            lambda: self.now,
            True,
            confirmed=self.confirmed,
            requests=RequestFiles("", tuple(self.requests)),
        ).run()

    def again(self) -> None:
        """End, as with kill -9, and start anew."""
        self.place.write_text("".join(journal_line(one) for one in self.journal.events))
        self.memory, self.confirmed = Memory.load([str(self.place)], self.now), ConfirmedWithdrawals()


@pytest.fixture
def pool() -> AlicesPool:
    """Nobody waits."""
    return AlicesPool(wanted=0)


def test_an_agent_that_was_started_again_orders_nothing_twice(pool: AlicesPool, tmp_path: Path) -> None:
    """Nor does one whose pilots have left: their cores came back, and that is what was wanted."""
    agent = Agent(pool, tmp_path / "journal", CORES)
    agent.cycle()
    assert len(pool.orders) == 2
    agent.again()
    agent.cycle(60)
    for run in list(pool.runs()):
        pool.end(run, agent.now)
    agent.again()
    agent.cycle(60)
    assert len(pool.orders) == 2


def test_wherever_the_agent_is_killed_the_request_gets_its_cores_and_no_more(tmp_path: Path) -> None:
    for moment in range(2, 20):
        pool = AlicesPool(wanted=0)
        agent = Agent(pool, tmp_path / "journal", CORES)
        pool.kill_at = moment
        with contextlib.suppress(Killed):
            agent.cycle()
        pool.kill_at = None
        agent.again()
        agent.cycle(60)
        assert sorted(run for run, _ in pool.orders) == sorted(set(pool.runs())), moment
        assert len(pool.orders) == 2, moment


def test_an_order_that_nobody_answered_is_not_given_to_another_pilot(pool: AlicesPool, tmp_path: Path) -> None:
    agent = Agent(pool, tmp_path / "journal", CORES)
    pool.fail(OrderUnanswered("no answer"), "give_order")
    agent.cycle()
    pool.faults.clear()
    agent.again()
    agent.cycle(10)
    assert [event["outcome"] for event in agent.journal.events if event["event"] == "order"].count("done") <= 1
    pool.acts.clear()
    agent.cycle(10)
    assert pool.acts == []


def test_what_starts_on_a_node_before_it_closes_gets_an_order_too(pool: AlicesPool, tmp_path: Path) -> None:
    agent = Agent(pool, tmp_path / "journal", NODES)
    agent.cycle()
    assert {deadline for _, deadline in pool.orders} == {NODES.by}
    new = replace(pilot(9, agent.now), started=agent.now + 599, run="ce#9.0#9@9")
    pool.pilots[new.run] = new
    agent.cycle(600)
    assert pool.orders[4:] == [(new.run, NODES.by)]


def test_on_a_node_that_is_closed_nothing_more_is_ordered_and_it_is_no_room_for_others(
    pool: AlicesPool, tmp_path: Path
) -> None:
    agent = Agent(pool, tmp_path / "journal", NODES)
    pool.wanted = 16
    agent.now = NODES.by + 9000
    pool.pilots = {run: replace(one, started=NODES.by + 8000) for run, one in pool.pilots.items()}
    cycle = agent.cycle()
    assert pool.orders == []
    assert cycle.plan is not None and all(one.reserved for user in cycle.plan.users for one, _ in user.closed)


def test_one_that_is_cancelled_is_withdrawn_by_the_agent_though_somebody_waits(
    pool: AlicesPool, tmp_path: Path
) -> None:
    """Their deadlines were the request's; found twice, as any withdrawal, also after a restart."""
    agent = Agent(pool, tmp_path / "journal", NODES)
    agent.cycle()
    agent.again()
    agent.requests, pool.wanted = (), 16
    agent.cycle(60)
    assert pool.runs("withdrawn") == []
    agent.cycle(60)
    assert sorted(pool.runs("withdrawn")) == sorted(pool.runs())
    reasons = {str(event["reason"]) for event in agent.journal.events if event["event"] == "withdrawal"}
    assert {reason.partition(";")[0] for reason in reasons} == {"r2 was cancelled"}


def test_requests_that_cannot_be_read_are_not_taken_for_cancelled(pool: AlicesPool) -> None:
    class Broken(RequestFiles):
        def standing(self, now: int) -> tuple[tuple[AdminRequest, ...], tuple[str, ...]]:
            raise UsageError("the requests cannot be read: Input/output error")

    broken = Broken("")
    done = AgentCycle(pool, SETTINGS, Memory(), Lines(), lambda: NOW, True, requests=broken).run()
    assert "cannot be read" in done.fault
    looked = AgentCycle(pool, SETTINGS, Memory(), Lines(), lambda: NOW, False, requests=broken).run()
    assert looked.fault == "" and looked.plan is not None and "cannot be read" in looked.plan.notices[0]


def test_orders_for_a_request_use_up_no_limit_of_the_agents_own(pool: AlicesPool, tmp_path: Path) -> None:
    agent = Agent(pool, tmp_path / "journal", CORES)
    agent.cycle()
    assert agent.memory.history(agent.now).orders == ()
    assert len(agent.memory.history(agent.now).requested) == 2
    agent.requests, pool.wanted = (), 8
    demand = Agent(AlicesPool(wanted=8), tmp_path / "journal")
    demand.cycle()
    assert demand.memory.history(NOW).orders == (PastOrder(NOW, "alice", 8),)


def test_a_decision_has_the_requests_that_its_orders_are_for(pool: AlicesPool, tmp_path: Path) -> None:
    many = replace(NODES, nodes=(*(f"n{number}" for number in range(99)), "n"), who="root", reason="new disks")
    agent = Agent(pool, tmp_path / "journal", many, replace(CORES, user="bob", name="r3"))
    agent.cycle()
    [decision] = [event for event in agent.journal.events if event["event"] == "decision"]
    [request] = json.loads(json.dumps(decision["requests"]))
    assert (request["name"], request["who"], request["reason"], len(request["nodes"])) == (
        "r2",
        "root",
        "new disks",
        50,
    )

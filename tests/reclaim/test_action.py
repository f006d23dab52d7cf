"""Carrying out a plan: the right run, once, written down, and no further than needed."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Mapping

import pytest

from drainwise.agent import act, second_look
from drainwise.agent.act import LOOK_AGAIN, carry_out
from drainwise.agent.cycle_facts import CycleBasis, CycleOutcome
from drainwise.facts.errors import (
    ActionRefused,
    DrainwiseError,
    OrderUnanswered,
    PoolError,
    PoolUnreachable,
    RightsRefused,
    RunEnded,
)
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Closure, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import ReclaimSettings
from memory_pool import MemoryPool

from .facts import NOW, SETTINGS, pilot, report, snapshot


def refusing(seen: Snapshot, faults: Mapping[str, DrainwiseError]) -> MemoryPool:
    """A pool that raises these faults for these runs."""
    pool = MemoryPool(seen, seen)
    pool.faults.update(faults)
    return pool


class Memory:
    """A journal in memory that fails after `room` lines."""

    def __init__(self, room: int = 100) -> None:
        self.lines: list[Mapping[str, object]] = []
        self._room = room

    def write(self, act: Mapping[str, object]) -> None:
        if len(self.lines) >= self._room:
            raise DrainwiseError("full")
        self.lines.append(act)


def pool_of(*pilots: Pilot, deficit: int = 16) -> Snapshot:
    return snapshot(*pilots, deficit=deficit)


FIRST, SECOND, THIRD = pilot(1, report(8.0)), pilot(2, report(7.0)), pilot(3, report(6.0))
BEFORE = pool_of(FIRST, SECOND, THIRD)
PLAN = make_plan(BEFORE, NOW, SETTINGS)
DEADLINE = NOW + 2000 + SETTINGS.margin


def basis(seen: Snapshot = BEFORE, rules: ReclaimSettings = SETTINGS) -> CycleBasis:
    """What a plan was decided on."""
    return CycleBasis(seen, NOW, rules, History())


def carried_out(
    pool: MemoryPool, journal: Memory | None = None, plan: Plan = PLAN, before: Snapshot = BEFORE
) -> CycleOutcome:
    ticks = itertools.count(NOW)
    return carry_out(plan, basis(before), pool, lambda: next(ticks), journal or Memory())


def test_every_order_of_the_plan_is_given_once_and_written_down() -> None:
    pool, journal = MemoryPool(BEFORE), Memory()
    outcome = carried_out(pool, journal)
    assert pool.orders == [(FIRST.run, DEADLINE), (SECOND.run, DEADLINE)]
    assert [(line["run"], line["outcome"], line["deadline"]) for line in journal.lines] == [
        (FIRST.run, "done", DEADLINE),
        (SECOND.run, "done", DEADLINE),
    ]
    assert all(line["reason"] and line["expected_waste"] is not None for line in journal.lines)
    assert outcome.exit_code == 0


def test_a_run_that_has_ended_is_not_ordered() -> None:
    """HOSTILE 50: neither is the next run of the same job in the same slot, nor anything else in its place."""
    next_run = dataclasses.replace(FIRST, run=FIRST.run[:-1] + "9", started=FIRST.started + 9)
    pool = MemoryPool(pool_of(next_run, SECOND, THIRD))
    outcome = carried_out(pool)
    assert pool.orders == [(SECOND.run, DEADLINE)]
    assert [(act.outcome, act.detail) for act in outcome.acts] == [
        ("skipped", "this run has ended since the plan was made"),
        ("done", "ordered to end by 2026-11-21 09:05:00Z"),
    ]
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    "changed",
    [{"cores": 4}, {"user": "bea"}, {"node": "node2"}],
    ids=["fewer cores", "another user", "another node"],
)
def test_a_pilot_that_is_not_what_was_planned_is_not_ordered(changed: dict[str, object]) -> None:
    pool = MemoryPool(pool_of(dataclasses.replace(FIRST, **changed), SECOND, THIRD))  # type: ignore[arg-type]
    carried_out(pool)
    assert FIRST.run not in dict(pool.orders)


@pytest.mark.parametrize("changed", [{"deadline": NOW + 50}, {"leaving": True}])
def test_a_pilot_that_is_on_its_way_by_now_is_not_ordered_again(changed: dict[str, object]) -> None:
    pool = MemoryPool(pool_of(dataclasses.replace(FIRST, **changed), SECOND, THIRD))  # type: ignore[arg-type]
    outcome = carried_out(pool)
    assert (FIRST.run, DEADLINE) not in pool.orders
    assert outcome.acts[0].detail == "it is on its way out already"


def test_no_more_is_taken_than_is_still_needed() -> None:
    """Another agent, or the users themselves, may have been quicker: bob still waits for 8 of his 16 cores."""
    pool = MemoryPool(pool_of(FIRST, SECOND, THIRD, deficit=8))
    outcome = carried_out(pool)
    assert pool.orders == [(FIRST.run, DEADLINE)]
    assert outcome.acts[1].detail == "enough cores are free or on their way by now"


def test_an_account_gives_no_more_than_it_holds_beyond_its_quota_by_now() -> None:
    """Its quota was raised, and bob still waits for all of his cores."""
    outcome = carried_out(pool := MemoryPool(snapshot(FIRST, SECOND, THIRD, deficit=16, surplus=8)))
    assert pool.orders == [(FIRST.run, DEADLINE)]
    assert outcome.acts[1].detail == "group_a holds less beyond its quota by now"


def test_cores_that_go_by_the_order_of_another_agent_are_not_ordered_twice() -> None:
    other = dataclasses.replace(THIRD, deadline=NOW + 50)
    outcome = carried_out(pool := MemoryPool(pool_of(FIRST, SECOND, other)))
    assert pool.orders == [(FIRST.run, DEADLINE)]
    assert outcome.acts[1].detail == "enough cores are free or on their way by now"


@pytest.mark.parametrize("stands", [True, False])
def test_nodes_that_are_not_to_close_any_more_are_not_emptied(stands: bool) -> None:
    before = pool_of(FIRST, deficit=0)
    closing = dataclasses.replace(before, closures=(Closure("upgrade", frozenset({"node1"}), NOW + 3600),))
    plan = make_plan(closing, NOW, SETTINGS)
    outcome = carried_out(pool := MemoryPool(closing if stands else before), plan=plan, before=closing)
    assert pool.runs() == [FIRST.run] * stands
    assert stands or outcome.acts[0].detail == "upgrade does not stand any more"


def test_nothing_is_decided_again() -> None:
    """A cycle decides once: what acts knows no decision that it could call."""
    for module in (act, second_look):
        assert "reclaim.decide" not in inspect.getsource(module)


def test_nobody_is_ordered_when_bob_has_left() -> None:
    pool = MemoryPool(pool_of(FIRST, SECOND, THIRD, deficit=0))
    assert carried_out(pool).exit_code == 0
    assert pool.orders == []


def test_one_failure_does_not_stop_the_others_and_the_exit_code_tells() -> None:
    pool, journal = refusing(BEFORE, {FIRST.run: ActionRefused("node1 refused the order")}), Memory()
    outcome = carried_out(pool, journal)
    assert pool.orders == [(SECOND.run, DEADLINE)]
    assert [line["outcome"] for line in journal.lines] == ["refused", "done"]
    assert journal.lines[0]["detail"] == "node1 refused the order"
    assert outcome.exit_code == 1


SIX = tuple(dataclasses.replace(pilot(n, report(8.0 - n / 10)), node=f"node{n % 4}") for n in range(1, 7))


def became(faults: Mapping[str, PoolError]) -> tuple[list[object], str]:
    """What becomes of six orders in turn, on the nodes 1, 2, 3, 0, 1, 2; and why no further one was given."""
    everybody = pool_of(*SIX, deficit=48)
    journal = Memory()
    outcome = carried_out(refusing(everybody, faults), journal, make_plan(everybody, NOW, SETTINGS), everybody)
    assert [order.pilot.run for order in make_plan(everybody, NOW, SETTINGS).orders] == [one.run for one in SIX]
    assert outcome.exit_code == 1
    return [line["outcome"] for line in journal.lines], outcome.halted


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (RightsRefused("Access/permission denied"), "denied"),
        (PoolUnreachable("squeue did not answer within 5 s"), "unreachable"),
        (OrderUnanswered("scontrol did not answer within 5 s"), "unanswered"),
    ],
)
def test_a_batch_system_that_refuses_or_does_not_answer_as_a_whole_is_sent_no_further_order(
    fault: PoolError, outcome: str
) -> None:
    assert became({SIX[1].run: fault}) == (["done", outcome], str(fault))


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (RightsRefused("node1 refused", "node1"), "denied"),
        (PoolUnreachable("node1 did not answer", "node1"), "unreachable"),
        (OrderUnanswered("node1 did not answer", "node1"), "unanswered"),
    ],
)
def test_a_node_that_refuses_or_does_not_answer_is_sent_no_further_order(fault: PoolError, outcome: str) -> None:
    """The fifth pilot is on the node of the first."""
    assert became({SIX[0].run: fault}) == ([outcome, "done", "done", "done", "skipped", "done"], "")


def test_where_every_node_refuses_three_are_enough() -> None:
    """An identity that nobody lets give orders does not go from node to node."""
    outcomes, halted = became({one.run: RightsRefused(f"{one.node} refused", one.node) for one in SIX})
    assert outcomes == ["denied"] * 3
    assert halted == "3 nodes refused and none took an order: node3 refused"


def test_where_one_node_takes_an_order_those_that_refuse_stop_no_other() -> None:
    """Three nodes that lack the drop-in are no reason to leave the fourth alone."""
    nodes = [dataclasses.replace(one, node=f"node{n}") for n, one in enumerate(SIX)]
    everybody = pool_of(*nodes, deficit=48)
    plan = make_plan(everybody, NOW, SETTINGS)
    pool = refusing(everybody, {one.run: RightsRefused("refused", one.node) for one in nodes[1:4]})
    outcome = carried_out(pool, plan=plan, before=everybody)
    assert [act.outcome for act in outcome.acts] == ["done", "denied", "denied", "denied", "done", "done"]
    assert outcome.halted == ""


@pytest.mark.parametrize(("deficit", "second"), [(16, "done"), (8, "skipped")])
def test_what_was_not_answered_may_come_so_nobody_is_ordered_for_the_same_cores(deficit: int, second: str) -> None:
    """Also when it is looked again after a minute: the first order waits so long, and is not seen."""
    other = dataclasses.replace(SECOND, node="node2")
    before = pool_of(FIRST, other, deficit=16)
    plan = make_plan(before, NOW, SETTINGS)
    seen = pool_of(FIRST, other, deficit=deficit)
    pool = refusing(seen, {FIRST.run: OrderUnanswered("node1 did not answer", "node1")})
    late = itertools.chain([NOW] * 5, itertools.repeat(NOW + 70))
    outcome = carry_out(plan, basis(before), pool, lambda: next(late), Memory())
    assert [act.outcome for act in outcome.acts] == ["unanswered", second]


def test_a_run_that_ended_on_the_way_is_no_fault() -> None:
    pool = refusing(BEFORE, {FIRST.run: RunEnded("it does not run any more")})
    outcome = carried_out(pool)
    assert ([act.outcome for act in outcome.acts], outcome.exit_code) == (["skipped", "done"], 0)


def test_nothing_is_done_when_the_pool_does_not_answer_again() -> None:
    """HOSTILE 54: the plan stands on an answer that can no longer be had."""
    pool, journal = MemoryPool(), Memory()
    with pytest.raises(PoolUnreachable):
        carried_out(pool, journal)
    assert (pool.orders, journal.lines) == ([], [])


def test_nothing_is_done_on_half_an_answer() -> None:
    pool = MemoryPool(dataclasses.replace(BEFORE, accounts=BEFORE.accounts[1:]))
    with pytest.raises(PoolUnreachable, match="incomplete answer"):
        carried_out(pool)
    assert pool.orders == []


def test_when_the_journal_is_full_no_further_order_is_given() -> None:
    pool = MemoryPool(BEFORE)
    with pytest.raises(DrainwiseError):
        carried_out(pool, Memory(room=0))
    assert pool.orders == [(FIRST.run, DEADLINE)]


def test_an_empty_plan_asks_the_pool_nothing() -> None:
    before = pool_of(FIRST, deficit=0)
    nothing = make_plan(before, NOW, SETTINGS)
    assert carried_out(MemoryPool(), plan=nothing, before=before).acts == ()


ORDERED = dataclasses.replace(FIRST, deadline=NOW + 4000)


def test_orders_that_take_minutes_are_not_given_on_what_was_seen_minutes_ago() -> None:
    """HOSTILE 54: a node that is deaf costs half a minute; bob has what he needs by then, or nobody can tell."""
    slow = [NOW]

    class Slow(MemoryPool):
        def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
            super().give_order(pilot, deadline, reason)
            slow[0] += LOOK_AGAIN + 1

    for second, faults in ((pool_of(SECOND, THIRD, deficit=0), ""), (None, "no answer")):
        slow[0] = NOW
        pool = Slow(BEFORE) if second is None else Slow(BEFORE, second)
        outcome = carry_out(PLAN, basis(), pool, lambda: slow[0], Memory())
        assert [run for run, _ in pool.orders] == [FIRST.run]
        assert (outcome.fault, len(outcome.acts)) == (faults, 1 if faults else 2)


@pytest.mark.parametrize(("lease_end", "late"), [(None, 30), (NOW + 70, 10), (NOW + 20, 0)])
def test_an_order_that_is_given_late_has_the_notice_that_the_site_promises(lease_end: int | None, late: int) -> None:
    """And no lease is made longer by it."""
    rules = dataclasses.replace(SETTINGS, notice=60, policy="youngest-first")
    first = dataclasses.replace(FIRST, lease_end=lease_end)
    before = pool_of(first, deficit=8)
    plan = make_plan(before, NOW, rules)
    [order] = plan.orders
    assert (order.kind, order.deadline) == ("kill", NOW + 60)
    pool, journal = MemoryPool(before), Memory()
    carry_out(plan, basis(before, rules), pool, lambda: NOW + 30, journal)
    assert pool.orders == [(first.run, NOW + 60 + late)]
    assert [line["deadline"] for line in journal.lines] == [NOW + 60 + late]


NOBODY_WAITS = pool_of(ORDERED, SECOND, THIRD, deficit=0)
RELEASING = make_plan(NOBODY_WAITS, NOW, SETTINGS)


def test_a_request_whose_reason_has_gone_is_withdrawn_once_and_written_down() -> None:
    pool, journal = MemoryPool(NOBODY_WAITS), Memory()
    outcome = carried_out(pool, journal, RELEASING, NOBODY_WAITS)
    assert (pool.runs("withdrawn"), pool.orders, outcome.exit_code) == ([FIRST.run], [], 0)
    [line] = journal.lines
    assert (line["event"], line["run"], line["outcome"]) == ("withdrawal", FIRST.run, "done")


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (pool_of(SECOND, THIRD, deficit=0), "has ended"),
        (pool_of(dataclasses.replace(ORDERED, cores=4), SECOND, THIRD, deficit=0), "has ended"),
        (pool_of(dataclasses.replace(ORDERED, deadline=NOW + 9), SECOND, THIRD, deficit=0), "another one by now"),
        (pool_of(FIRST, SECOND, THIRD, deficit=0), "another one by now"),
        (pool_of(ORDERED, SECOND, THIRD, deficit=8), "its cores are needed again"),
    ],
    ids=["run has ended", "fewer cores", "another order", "no order any more", "bob is back"],
)
def test_a_request_stays_when_the_second_look_shows_anything_else(second: Snapshot, why: str) -> None:
    """HOSTILE 50: never the next run, never somebody else's order, never while the cores are wanted."""
    pool = MemoryPool(second)
    outcome = carried_out(pool, plan=RELEASING, before=NOBODY_WAITS)
    assert pool.runs("withdrawn") == []
    assert [one.outcome for one in outcome.withdrawn] == ["skipped"] and why in outcome.withdrawn[0].detail


def test_who_is_not_over_its_quota_is_released_whoever_waits_by_now() -> None:
    before, after = (snapshot(ORDERED, SECOND, deficit=deficit, surplus=0) for deficit in (8, 16))
    plan = make_plan(before, NOW, SETTINGS)
    carried_out(pool := MemoryPool(after), plan=plan, before=before)
    assert pool.runs("withdrawn") == [FIRST.run]


@pytest.mark.parametrize(
    ("fault", "became"),
    [
        (ActionRefused("it retires for good"), "refused"),
        (RightsRefused("who are you?", "node1"), "denied"),
        (PoolUnreachable("node1 does not answer", "node1"), "unreachable"),
        (OrderUnanswered("node1 did not answer", "node1"), "unanswered"),
    ],
)
def test_a_request_that_cannot_be_withdrawn_is_told(fault: PoolError, became: str) -> None:
    """What is tried again later is not taken for what the batch system says cannot be."""
    outcome = carried_out(refusing(NOBODY_WAITS, {FIRST.run: fault}), plan=RELEASING, before=NOBODY_WAITS)
    assert [(one.outcome, one.detail) for one in outcome.withdrawn] == [(became, str(fault))]
    assert outcome.exit_code == 1


def test_before_each_act_it_is_asked_whether_to_go_on() -> None:
    pool = MemoryPool(BEFORE)
    ticks = itertools.count(NOW)
    outcome = carry_out(PLAN, basis(), pool, lambda: next(ticks), Memory(), stopping=lambda: bool(pool.orders))
    assert len(pool.orders) == len(outcome.acts) == 1


class KeepingPool(MemoryPool):
    """A pool that keeps rooms."""

    def keep_room(self, room: KeptRoom) -> None:
        self.called("keep_room")
        self.acts.append(("kept", room.place))


KEPT = KeptRoom("slot1@n", "n", 2, DEADLINE, Amounts(8), Amounts(8))


def with_kept(plan: Plan) -> Plan:
    users = [
        dataclasses.replace(one, orders=tuple(dataclasses.replace(order, kept=KEPT) for order in one.orders))
        for one in plan.users
    ]
    return dataclasses.replace(plan, users=tuple(users))


def details(done: CycleOutcome) -> set[str]:
    return {act.detail.partition("; ")[2] for act in done.acts}


def test_room_is_kept_once_before_the_first_of_its_orders() -> None:
    pool = KeepingPool(BEFORE, BEFORE)
    done = carried_out(pool, plan=with_kept(PLAN))
    assert [what for what, _ in pool.acts] == ["kept", "ordered", "ordered"]
    assert details(done) == {"the room is kept from smaller jobs"}


def test_orders_are_given_where_room_cannot_be_kept() -> None:
    pool = KeepingPool(BEFORE, BEFORE)
    pool.fail(ActionRefused("n does not take it"), "keep_room")
    done = carried_out(pool, plan=with_kept(PLAN))
    assert [what for what, _ in pool.acts] == ["ordered", "ordered"]
    assert details(done) == {"the room is not kept from smaller jobs: n does not take it"}
    assert done.exit_code == 0


def test_a_pool_that_keeps_no_rooms_is_not_asked_to() -> None:
    pool = MemoryPool(BEFORE, BEFORE)
    assert details(carried_out(pool, plan=with_kept(PLAN))) == {""}
    assert [what for what, _ in pool.acts] == ["ordered", "ordered"]


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize(("jobs", "places", "given"), [(2, 1, 2), (1, 1, 1), (1, 2, 2)])
def test_no_more_room_is_made_than_jobs_wait_by_the_second_look(
    jobs: int, places: int, given: int, is_slow: bool
) -> None:
    """Room for two jobs was planned, or for one on both nodes; all orders for one place make the same room.

    Also where it is looked again before the second order: room that the first one makes is not made twice.
    """
    half = Amounts(4, 8192)
    there = [dataclasses.replace(pilot(one), node=f"n{one}", place=f"n{one}", cores=8, holds=half) for one in (1, 2)]
    at = tuple(Place(f"n{one}", f"n{one}", "a", Amounts(), half) for one in (1, 2))

    def waits(number: int) -> Snapshot:
        kind = JobKind("bobs", "group_b", number, half, frozenset({"a"}), places)
        return dataclasses.replace(pool_of(*there, deficit=32), kinds=(kind,), places=at)

    before = waits(2 // places)
    plan = make_plan(before, NOW, SETTINGS)
    assert len(plan.orders) == 2
    pool = MemoryPool(*[waits(jobs)] * 3)
    now = itertools.count(NOW, LOOK_AGAIN // 3 if is_slow else 1)
    outcome = carry_out(plan, basis(before), pool, lambda: next(now), Memory())
    assert len(pool.orders) == given
    assert {act.detail for act in outcome.acts if act.outcome == "skipped"} <= {
        "enough cores are free or on their way by now"
    }


def test_the_cycles_own_order_counts_once_when_a_later_look_shows_it() -> None:
    """The second one is given a minute later: the first is on its way by then, and bob needs both."""
    ordered = dataclasses.replace(FIRST, deadline=DEADLINE)
    pool = MemoryPool(BEFORE, pool_of(ordered, SECOND, THIRD), pool_of(ordered, SECOND, THIRD))
    now = itertools.count(NOW, LOOK_AGAIN // 3)
    carry_out(PLAN, basis(), pool, lambda: next(now), Memory())
    assert pool.runs() == [FIRST.run, SECOND.run]

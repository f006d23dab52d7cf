"""What an administrator requests, and nodes that close: who gets an order, by when, and what it changes for others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.units import clock
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Closure, Piece, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.requests.request import AdminRequest

from .facts import NOW, SETTINGS, pilot, report, snapshot

SOON = NOW + 3600
POOL = snapshot(
    replace(pilot(1, report()), node="n1"),
    replace(pilot(2, report()), node="n1"),
    replace(pilot(3, report()), node="n2"),
    replace(pilot(4), node="n2"),
    deficit=0,
)
NODES = AdminRequest("r1", NOW, SOON, nodes=("n1",), reason="new disks")
CORES = AdminRequest("r2", NOW, SOON, cores=16)


def plan_for(*requests: AdminRequest, pool: Snapshot = POOL, history: History | None = None) -> Plan:
    return make_plan(pool, NOW, SETTINGS, replace(history or History(), requests=requests))


def ordered(plan: Plan) -> list[str]:
    return sorted(order.pilot.run for order in plan.orders)


def runs(*numbers: int) -> list[str]:
    return sorted(POOL.pilots[number - 1].run for number in numbers)


def test_a_node_that_closes_is_left_by_all_its_pilots_at_that_time() -> None:
    plan = plan_for(NODES)
    assert ordered(plan) == runs(1, 2)
    assert {order.deadline for order in plan.orders} == {SOON}
    assert {order.request for order in plan.orders} == {"r1"}
    for order in plan.orders:
        assert order.reason.startswith(f"n1 closes at {clock(SOON)} (request r1: ") and "new disks" in order.reason
    assert "2 pilots with 16 cores for r1" in plan.summary


def test_what_the_batch_system_plans_to_close_is_left_too() -> None:
    pool = replace(POOL, closures=(Closure("maintenance", frozenset({"n2"}), SOON, SOON + 99, "maintenance"),))
    plan = plan_for(pool=pool)
    assert ordered(plan) == runs(3, 4)
    assert {order.request for order in plan.orders} == {"maintenance"}


def test_a_pilot_that_is_gone_by_then_gets_no_order() -> None:
    first, second, *others = POOL.pilots
    ends = replace(POOL, pilots=(replace(first, lease_end=SOON), replace(second, deadline=SOON - 1), *others))
    assert ordered(plan_for(NODES, pool=ends)) == []
    late = replace(POOL, pilots=(first, replace(second, deadline=SOON + 1, lease_end=SOON + 1), *others))
    assert ordered(plan_for(NODES, pool=late)) == runs(1, 2)


def test_no_order_is_given_earlier_than_the_site_lets_it() -> None:
    assert ordered(plan_for(replace(NODES, by=NOW + SETTINGS.max_grace))) == runs(1, 2)
    far = plan_for(replace(NODES, by=NOW + SETTINGS.max_grace + 1))
    assert ordered(far) == []
    assert any(f"orders are given from {clock(NOW + 1)} on" in notice for notice in far.notices)


def test_cores_are_ordered_within_the_longest_time_ahead_and_not_afterwards() -> None:
    assert len(ordered(plan_for(replace(CORES, user="alice", by=NOW + SETTINGS.max_grace)))) == 2
    far = plan_for(replace(CORES, user="alice", by=NOW + SETTINGS.max_grace + 1))
    assert ordered(far) == [] and any(f"orders are given from {clock(NOW + 1)} on" in one for one in far.notices)
    over = plan_for(replace(CORES, user="alice", by=NOW))
    assert ordered(over) == [] and over.notices == ()


def test_of_a_request_that_has_all_its_cores_nothing_is_said() -> None:
    """Its user may have no pilots any more."""
    request = replace(CORES, user="carol")
    [said] = plan_for(request).notices
    assert "no user with pilots is called 'carol'" in said
    assert plan_for(request, history=History(requested={"gone": ("r2", 16)})).notices == ()


def test_what_started_while_a_node_was_being_closed_goes_too_and_what_starts_later_does_not() -> None:
    """Else an agent would order pilot after pilot, where nothing closes the node."""
    first, second, *others = POOL.pilots
    young = replace(POOL, pilots=(replace(first, started=NOW - 100), replace(second, started=NOW - 10), *others))
    assert ordered(plan_for(replace(NODES, by=NOW - 90), pool=young)) == runs(1, 2)
    assert ordered(plan_for(replace(NODES, by=NOW - 350), pool=young)) == runs(1)
    assert ordered(plan_for(replace(NODES, by=NOW - 500), pool=young)) == []
    ends = replace(young, pilots=(replace(first, deadline=NOW - 90), replace(second, leaving=True), *others))
    assert ordered(plan_for(replace(NODES, by=NOW - 90), pool=ends)) == [], "the batch system ends these"


def test_an_order_later_than_its_request_for_the_sites_notice_is_given_once_and_said() -> None:
    strict = replace(SETTINGS, notice=3600)
    history = History(requests=(replace(NODES, by=NOW + 60),))
    plan = make_plan(POOL, NOW, strict, history)
    assert {order.deadline for order in plan.orders} == {NOW + 3600}
    assert any("no order ends before " in notice for notice in plan.notices)
    deadlines = {order.pilot.run: order.deadline for order in plan.orders}
    after = replace(POOL, pilots=tuple(replace(one, deadline=deadlines.get(one.run)) for one in POOL.pilots))
    assert make_plan(after, NOW + 10, strict, history).orders == ()


def test_pilots_that_can_get_no_order_are_counted() -> None:
    first, *others = POOL.pilots
    deaf = replace(POOL, pilots=(replace(first, cannot="its node takes none"), *others))
    plan = plan_for(NODES, pool=deaf)
    assert ordered(plan) == runs(2)
    assert any("r1: 1 pilots there get no order now" in notice for notice in plan.notices)


def test_cores_on_request_come_from_one_user_or_account_alone() -> None:
    """Whoever is named need not be over quota; the least wasteful set that makes the cores."""
    assert len(ordered(plan_for(replace(CORES, user="alice")))) == 2
    assert len(ordered(plan_for(replace(CORES, account="group_a")))) == 2
    unknown = plan_for(replace(CORES, user="nobody"))
    assert ordered(unknown) == []
    assert any("no user with pilots is called 'nobody'" in notice for notice in unknown.notices)


def test_what_a_request_has_got_is_not_ordered_again() -> None:
    request = replace(CORES, user="alice")
    before = ordered(plan_for(request))
    half, whole = {before[0]: ("r2", 8)}, dict.fromkeys(before, ("r2", 8))
    rest = plan_for(request, history=History(requested=half))
    assert len(ordered(rest)) == 1
    assert before[0] not in ordered(rest)
    assert ordered(plan_for(request, history=History(requested=whole))) == []


def test_what_cannot_be_had_is_named() -> None:
    plan = plan_for(replace(CORES, cores=99, user="alice"))
    assert any("67 cores are missing" in notice for notice in plan.notices)


def test_an_order_for_a_request_is_withdrawn_only_when_the_request_is_cancelled() -> None:
    """Nobody waits for these cores; the request alone is the reason."""
    run = POOL.pilots[0].run
    going = replace(POOL, pilots=(replace(POOL.pilots[0], deadline=SOON, lease_end=SOON), *POOL.pilots[1:]))
    history = History(requested={run: ("r2", 16)})
    assert not plan_for(CORES, pool=going, history=history).withdrawals
    assert [one.pilot.run for one in plan_for(pool=going, history=history).withdrawals] == [run]


def test_where_only_requests_are_served_no_other_order_is_withdrawn() -> None:
    """One that somebody gave for those who wait, or by hand, is not the business of who serves requests alone."""
    first, second, *others = (replace(one, deadline=SOON, lease_end=SOON) for one in POOL.pilots)
    history = History(requested={first.run: ("r2", 16)})
    going = replace(POOL, pilots=(first, second, *others))
    found = [make_plan(going, NOW, SETTINGS, history, is_for_demand=demand) for demand in (True, False)]
    assert [one.pilot.run for one in found[1].withdrawals] == [first.run]
    assert second.run in {one.pilot.run for one in found[0].withdrawals}


def test_an_order_on_a_node_that_closes_is_not_withdrawn() -> None:
    going = replace(POOL, pilots=(replace(POOL.pilots[0], deadline=SOON, lease_end=SOON), *POOL.pilots[1:]))
    assert not plan_for(NODES, pool=going).withdrawals
    assert plan_for(pool=going).withdrawals


@given(st.integers(0, 4).map(lambda jobs: 8 * jobs))
def test_what_goes_for_a_request_serves_nobody_who_waits_and_makes_no_account_give_more_than_it_has_over(
    deficit: int,
) -> None:
    """The 16 cores on the node are taken from what alice holds beyond her quota; the rest of it goes for bob, then."""
    waits = snapshot(*POOL.pilots, deficit=deficit)
    plan = plan_for(NODES, pool=waits)
    for_those = [order for order in plan.orders if not order.request]
    assert sum(order.pilot.cores for order in for_those) == max(0, deficit - 16)
    assert not {order.pilot.run for order in for_those} & set(runs(1, 2))
    deadlines = {order.pilot.run: order.deadline for order in plan.orders}
    ordered_now = replace(waits, pilots=tuple(replace(one, deadline=deadlines.get(one.run)) for one in waits.pilots))
    after = plan_for(NODES, pool=ordered_now, history=History(requested=dict.fromkeys(runs(1, 2), ("r1", 8))))
    assert (after.orders, after.withdrawals) == ((), ()), "and so it stays"


def test_a_pilot_of_several_nodes_leaves_all_of_them_when_one_closes() -> None:
    """By the time of the one that closes first."""
    pieces = tuple(Piece(node, node, Amounts(4)) for node in ("n1", "n9"))
    pool = replace(POOL, pilots=(replace(POOL.pilots[0], node="n[1,9]", pieces=pieces), *POOL.pilots[2:]))
    later = replace(NODES, name="r9", nodes=("n9",), by=SOON + 600)
    plan = plan_for(later, NODES, pool=pool)
    assert [(order.pilot.run, order.deadline, order.request) for order in plan.orders] == [(*runs(1), SOON, "r1")]
    assert ordered(plan_for(later, pool=pool)) == runs(1)

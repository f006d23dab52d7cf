"""An order that has become the worse choice by far is withdrawn, and another pilot of the same user goes instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import PAUSE, History, PastOrder
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.quota import WhatIf
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, UnmetDemand
from drainwise.requests.request import AdminRequest

from .facts import NOW, SETTINGS, account, pilot, report, reports, snapshot

OPEN = dataclasses.replace(SETTINGS, policy="open-need", drain_only=True, waiting_cost=0.02)
DEADLINE = NOW + 3600


def late(number: int, *, user: str = "alice", cores: int = 8) -> Pilot:
    """An order stands for it; its last payload, on one core, was to end and now ends long after its deadline."""
    said = report(1.0, first_end=NOW + 90_000, last_end=NOW + 90_000, start=NOW - 9000)
    return pilot(number, said, cores=cores, user=user, deadline=DEADLINE)


def cheap(number: int, *, user: str = "alice", cores: int = 8) -> Pilot:
    """It leaves within a minute and wastes next to nothing."""
    said = report(float(cores), first_end=NOW + 60, last_end=NOW + 60, start=NOW - 60)
    return pilot(number, said, cores=cores, user=user)


def plan(seen: Snapshot, settings: ReclaimSettings = OPEN, history: History | None = None) -> Plan:
    return make_plan(seen, NOW, settings, history)


def told(of: Plan) -> tuple[list[str], list[str]]:
    return sorted(one.pilot.run for one in of.withdrawals), sorted(order.pilot.run for order in of.orders)


def test_a_late_pilot_goes_on_and_a_cheap_one_goes_in_its_place() -> None:
    found = plan(snapshot(late(1), cheap(2), pilot(3, report(2.0)), deficit=8, surplus=16))
    assert told(found) == ([late(1).run], [cheap(2).run])
    [withdrawal], [order] = found.withdrawals, found.orders
    assert withdrawal.instead == (order.pilot.run,) and order.instead_of == (withdrawal.pilot.run,)
    assert withdrawal.reason.startswith(
        f"another pilot costs less by far: {order.pilot.name} 0.229 core-h, this one 8.51 core-h"
    )
    assert f"in place of {withdrawal.pilot.name}, whose order would cost " in order.reason
    assert order.deadline <= DEADLINE
    assert found.summary.endswith("; 1 order is withdrawn, as others cost less by far")


def test_who_goes_instead_goes_for_those_for_whom_the_other_did() -> None:
    """For each of them no more than it has cores; whoever had no part in the order has none now."""
    gone = late(1)
    parts = {"group_b": 3.0, "group_c": 99.0}
    unmet = {name: UnmetDemand(name, {gone.run: AccountPart("n", 8, cores)}) for name, cores in parts.items()}
    unmet["group_d"] = UnmetDemand("group_d", {pilot(3).run: AccountPart("n", 8, 8.0)})
    seen = snapshot(gone, cheap(2), pilot(3, report(2.0)), deficit=8, surplus=16)
    instead = cheap(2)
    assert plan(seen, history=History(unmet=unmet)).parts == {
        name: {instead.run: AccountPart(instead.node, 8, cores)} for name, cores in {**parts, "group_c": 8.0}.items()
    }


def test_nobody_is_ended_without_its_least_time_to_take_anothers_place() -> None:
    """Who leaves by itself until then may."""
    long, begun = (
        pilot(number, report(8.0, start=NOW - age, first_end=NOW + 90_000, last_end=NOW + 90_000))
        for number, age in ((1, 9000), (2, 1))
    )
    site = dataclasses.replace(OPEN, min_grace=100)
    for other, left, orders in ((begun, 100, [begun.run]), (begun, 99, []), (cheap(2), 99, [cheap(2).run])):
        ordered = dataclasses.replace(long, deadline=NOW + left)
        assert told(plan(snapshot(ordered, other, deficit=8, surplus=16), site))[1] == orders


def test_nothing_is_replaced_in_a_cycle_with_other_orders() -> None:
    """For those who wait: what changes by them is seen first."""
    seen = snapshot(late(1), *map(cheap, (2, 3, 4)), deficit=16, surplus=32)
    assert told(plan(seen))[0] == [] and len(plan(seen).orders) == 1
    only = dataclasses.replace(seen, accounts=snapshot(late(1), *map(cheap, (2, 3, 4)), deficit=8, surplus=32).accounts)
    assert told(plan(only))[0] == [late(1).run]


def test_the_default_policy_replaces_nothing() -> None:
    seen = snapshot(late(1), cheap(2), deficit=8, surplus=16)
    assert told(plan(seen, dataclasses.replace(OPEN, policy="least-waste"))) == ([], [])


def test_an_order_that_is_a_little_worse_stands() -> None:
    ordered = dataclasses.replace(cheap(1), deadline=DEADLINE)
    assert told(plan(snapshot(ordered, dataclasses.replace(cheap(2)), deficit=8, surplus=16))) == ([], [])


def test_an_order_that_costs_next_to_nothing_stands_though_another_pilot_costs_nothing() -> None:
    idle = pilot(2, report(0.0, first_end=NOW, last_end=NOW, start=NOW, final=0.0, can_postpone=False))
    seen = snapshot(dataclasses.replace(cheap(1), deadline=DEADLINE), idle, deficit=8, surplus=16)
    assert told(plan(seen, dataclasses.replace(OPEN, waiting_cost=0.0))) == ([], [])


def test_an_order_that_is_late_within_its_margin_stands() -> None:
    """Its deadline is a quarter of an hour after the end that it had stated; it takes five minutes longer."""
    said = report(8.0, first_end=NOW + 1800, last_end=NOW + 1800, start=NOW - 9000)
    ordered = pilot(1, said, deadline=NOW + 1800 + 600)
    site = dataclasses.replace(OPEN, margin=900)
    other = pilot(2, report(8.0, first_end=NOW + 1500, last_end=NOW + 1500, start=NOW - 9000))
    assert told(plan(snapshot(ordered, other, deficit=8, surplus=16), site)) == ([], [])


def test_only_a_pilot_of_the_same_user_and_of_as_many_cores_goes_instead() -> None:
    for other in (cheap(2, user="ann"), cheap(2, cores=16), cheap(2, cores=4)):
        assert told(plan(snapshot(late(1), other, deficit=8, surplus=40))) == ([], [])


def test_who_was_released_gets_no_order_within_an_hour() -> None:
    released = cheap(2)
    history = History(withdrawn={released.run: NOW - PAUSE + 60})
    assert told(plan(snapshot(late(1), released, deficit=8, surplus=16), history=history)) == ([], [])
    one = plan(snapshot(released, pilot(3, report(2.0)), deficit=8, surplus=16), history=history)
    assert [order.pilot.run for order in one.orders] == [pilot(3).run]
    [spared] = [it for user in one.users for it in user.spared if it.candidate.pilot.run == released.run]
    assert "its order was withdrawn at" in spared.reason
    history = History(withdrawn={released.run: NOW - PAUSE})
    assert told(plan(snapshot(late(1), released, deficit=8, surplus=16), history=history))[1] == [released.run]


def test_a_request_takes_who_was_released() -> None:
    """For cores, for nodes, and in the plan for so many cores, which touches nothing."""
    released = cheap(2)
    seen = snapshot(released, deficit=0, surplus=0)
    history = History(withdrawn={released.run: NOW - 60})
    what_if = make_plan(seen, NOW, OPEN, history, WhatIf(8, "alice"))
    asked = (
        AdminRequest("r", NOW, DEADLINE, cores=8, user="alice"),
        AdminRequest("r", NOW, DEADLINE, nodes=(released.node,)),
    )
    plans = [what_if, *(plan(seen, history=dataclasses.replace(history, requests=(one,))) for one in asked)]
    assert [told(one)[1] for one in plans] == [[released.run]] * 3


def test_an_order_for_a_request_stands() -> None:
    one = late(1)
    history = History(requested={one.run: ("20261121-081640", 8)})
    found = plan(snapshot(one, cheap(2), deficit=8, surplus=16), history=history)
    assert cheap(2).run not in told(found)[1]


def test_a_limit_of_the_hour_holds_for_those_that_replace_others() -> None:
    history = History(orders=(PastOrder(NOW - 600, "alice", 16),))
    seen = snapshot(late(1), late(2), cheap(3), cheap(4), deficit=16, surplus=32)
    assert len(plan(seen, history=history).orders) == 2
    for most in (23, 24):
        bound = dataclasses.replace(OPEN, max_cores_per_user_hour=most)
        assert len(plan(seen, bound, history).orders) == (most - 16) // 8


def test_the_sites_cores_of_an_hour_hold_for_the_replacements_of_all_users() -> None:
    pilots = late(1), cheap(2), late(3, user="bea"), cheap(4, user="bea")
    seen = snapshot(*pilots, deficit=16, surplus=32)
    for most, orders in ((16, 2), (15, 1), (7, 0)):
        assert len(plan(seen, dataclasses.replace(OPEN, max_cores_hour=most)).orders) == orders


def test_what_nobody_needs_any_more_is_withdrawn_for_that_reason() -> None:
    [one] = plan(snapshot(late(1), cheap(2), deficit=0, surplus=16)).withdrawals
    assert one.reason.startswith("nobody waits") and not one.instead


some_pilots = st.lists(
    st.sampled_from([4, 8, 16]).flatmap(
        lambda cores: st.tuples(
            reports(cores),
            st.just(cores),
            st.sampled_from(["alice", "ann"]),
            st.none() | st.integers(NOW + 1, NOW + 7000),
        )
    ),
    max_size=8,
)


def made(these: Sequence[tuple[PilotReport | None, int, str, int | None]]) -> list[Pilot]:
    return [
        pilot(number, said, cores=cores, user=user, deadline=deadline)
        for number, (said, cores, user, deadline) in enumerate(these)
    ]


def cores_by_user(pilots: Sequence[Pilot], runs: Sequence[str]) -> Mapping[str, int]:
    found = {"alice": 0, "ann": 0}
    for one in pilots:
        found[one.user] += one.cores * (one.run in runs)
    return found


@given(some_pilots, st.integers(0, 5))
def test_no_claim_changes_how_many_cores_anybody_gives_back(
    these: list[tuple[PilotReport | None, int, str, int | None]], more: int
) -> None:
    """Whatever is replaced or waits: each user loses as many cores as without, and who has an order gets no other."""
    pilots = made(these)
    going = sum(one.cores for one in pilots if one.deadline is not None)
    seen = snapshot(*pilots, deficit=going + more, surplus=going + more)
    found, plain = plan(seen), plan(seen, dataclasses.replace(OPEN, policy="least-waste"))
    gone, new = told(found)
    others = {order.pilot.run: order for order in found.orders if not order.instead_of}
    assert all(one.deadline is None for one in pilots if one.run in new)
    swapped = [run for run in new if run not in others]
    assert cores_by_user(pilots, swapped) == cores_by_user(pilots, gone)
    held = [run for part in found.users for run in part.held]
    assert cores_by_user(pilots, [*others, *held]) == cores_by_user(pilots, told(plain)[1])


@given(some_pilots)
def test_what_was_given_instead_stands_when_nothing_has_changed(
    these: list[tuple[PilotReport | None, int, str, int | None]],
) -> None:
    pilots = made(these)
    going = sum(one.cores for one in pilots if one.deadline is not None)
    first = plan(snapshot(*pilots, deficit=going, surplus=going))
    gone, new = told(first)[0], {order.pilot.run: order.deadline for order in first.orders}
    after = [
        dataclasses.replace(one, deadline=None if one.run in gone else new.get(one.run, one.deadline)) for one in pilots
    ]
    history = History(withdrawn=dict.fromkeys(gone, NOW))
    again = plan(snapshot(*after, deficit=going, surplus=going), history=history)
    assert not set(told(again)[0]) & set(new)
    assert not set(told(again)[1]) & set(gone)


# ---- where jobs wait by kind ----


def on(one: Pilot, node: str, memory: int = 8192) -> Pilot:
    return dataclasses.replace(one, node=node, place=node, holds=Amounts(one.cores, memory))


def waiting(*pilots: Pilot, cores: int = 8, memory: int = 0, jobs: int = 1, classes: str = "plain") -> Snapshot:
    needs = Amounts(cores, memory)
    name = kind_name("group_b", needs, "")
    kind = JobKind(name, "group_b", jobs, needs, frozenset({classes}), example="17.0")
    places = tuple(
        Place(node, node, "fast" if node == "n9" else "plain", Amounts(), Amounts(16, 65536))
        for node in sorted({one.node for one in pilots})
    )
    held = sum(one.cores for one in pilots)
    accounts = (account("group_a", held, 0, priority=900.0), account("group_b", 0, 100, wanted=jobs * cores))
    return Snapshot(NOW, pilots, accounts, 0.0, {"alice": 900.0, "bob": 500.0}, kinds=(kind,), places=places)


def test_room_on_another_node_replaces_an_order() -> None:
    seen = waiting(on(late(1), "n1"), on(cheap(2), "n2"), on(pilot(3, report(2.0)), "n3"))
    found = plan(seen)
    assert told(found) == ([late(1).run], [cheap(2).run])
    [order] = found.orders
    assert order.room is not None and order.room.place == "n2" and "makes room on n2" in order.reason
    assert found.parts == {kind: {order.pilot.run: part} for kind, by in found.parts.items() for part in by.values()}


def test_an_order_to_a_pilot_that_retires_already_is_replaced() -> None:
    """HTCondor's slots retire as soon as they know of the order. What the batch system ends by itself is not ours."""
    retiring = dataclasses.replace(late(1), leaving=True, lease_end=DEADLINE)
    assert told(plan(snapshot(retiring, cheap(2), deficit=8, surplus=16))) == ([retiring.run], [cheap(2).run])
    assert told(plan(waiting(on(retiring, "n1"), on(cheap(2), "n2")))) == ([retiring.run], [cheap(2).run])
    ends = dataclasses.replace(retiring, deadline=None)
    assert told(plan(waiting(on(ends, "n1"), on(cheap(2), "n2")))) == ([], [])


def test_room_that_the_job_cannot_use_replaces_nothing() -> None:
    """The cheap pilot is on a node where the job may not run, or holds less memory than it needs, or a core less."""
    assert told(plan(waiting(on(late(1), "n1"), on(cheap(2), "n9")))) == ([], [])
    assert told(plan(waiting(on(late(1), "n1"), on(cheap(2), "n2", 4096), memory=8192))) == ([], [])
    assert told(plan(waiting(on(late(1), "n1"), on(cheap(2, cores=7), "n1")))) == ([], [])


def test_room_of_two_pilots_moves_as_a_whole() -> None:
    """bob's job needs the room of two pilots of 4 cores; both of another node cost less, one of a third does not do."""
    mine = [on(late(number, cores=4), "n1") for number in (1, 2)]
    theirs = [on(cheap(number, cores=4), "n2") for number in (3, 4)]
    found = plan(waiting(*mine, *theirs, on(cheap(5, cores=4), "n3")))
    assert told(found) == (sorted(one.run for one in mine), sorted(one.run for one in theirs))
    assert {order.instead_of for order in found.orders} == {tuple(sorted(one.run for one in mine))}
    for order in found.orders:
        until = order.deadline + OPEN.time_to_start
        assert order.kept == KeptRoom("n2", "n2", 2, until, Amounts(8), Amounts(8))
    dear = pilot(6, report(4.0, first_end=NOW + 90_000, last_end=NOW + 90_000, start=NOW - 20_000), cores=4)
    assert told(plan(waiting(*mine, on(cheap(5, cores=4), "n3"), on(dear, "n3")))) == ([], [])


def test_the_sites_cores_of_an_hour_hold_for_room_that_moves_for_several_users() -> None:
    """Alice's order is replaced and Ann's is, or one of both."""
    mine, hers = on(late(1), "n1"), on(late(2, user="ann"), "n2")
    seen = waiting(mine, hers, on(cheap(3), "n3"), on(cheap(4, user="ann"), "n4"), jobs=2)
    for cores, orders in ((16, 2), (15, 1), (7, 0)):
        found = plan(seen, dataclasses.replace(OPEN, max_cores=cores))
        assert (len(found.orders), len(found.withdrawals)) == (orders, orders)


def test_on_one_place_the_pilots_of_one_user_make_room_in_place_of_others() -> None:
    mine, hers = on(late(1), "n1"), on(late(2, user="ann"), "n2")
    both = on(cheap(3), "n3"), on(cheap(4, user="ann"), "n3")
    found = plan(waiting(mine, hers, *both, jobs=2))
    assert told(found) == ([mine.run], [both[0].run])


def test_the_room_of_a_whole_node_moves_as_a_whole() -> None:
    mine, theirs = [on(late(number), "n1") for number in (1, 2)], [on(cheap(number), "n2") for number in (3, 4)]
    seen = waiting(*mine, *theirs, cores=16)
    [kind] = seen.kinds or ()
    found = plan(dataclasses.replace(seen, kinds=(dataclasses.replace(kind, whole=True),)))
    assert told(found) == (sorted(one.run for one in mine), sorted(one.run for one in theirs))


def test_another_users_pilot_makes_no_room_instead() -> None:
    assert told(plan(waiting(on(late(1), "n1"), on(cheap(2, user="ann"), "n2")))) == ([], [])


@pytest.mark.parametrize(("node", "is_replaced"), [("n1", False), ("n4", True)])
def test_on_a_place_with_orders_to_anothers_pilots_none_is_replaced(node: str, is_replaced: bool) -> None:
    """Two jobs of 4 cores: the room of the second is made beside that of the first, or elsewhere."""
    mine, hers = on(late(1, cores=4), "n1"), on(late(2, user="ann", cores=4), node)
    found = plan(waiting(mine, hers, on(cheap(3, cores=4), "n2"), cores=4, jobs=2))
    assert told(found) == (([mine.run], [cheap(3).run]) if is_replaced else ([], []))


@pytest.mark.parametrize("least", ["open-need", "least-waste"])
def test_where_nothing_costs_less_by_far_nothing_changes(least: str) -> None:
    seen = waiting(on(dataclasses.replace(cheap(1), deadline=DEADLINE), "n1"), on(cheap(2), "n2"))
    assert told(plan(seen, dataclasses.replace(OPEN, policy=least))) == ([], [])


def test_of_the_orders_on_a_place_those_stand_that_go_first_until_they_make_the_room() -> None:
    """The one that goes last has lost its reason where the others do, also where it alone would do."""
    small, large = (on(dataclasses.replace(cheap(number, cores=cores)), "n1") for number, cores in ((1, 4), (2, 8)))
    for first, last, cores, gone in ((large, small, 8, [small.run]), (small, large, 8, []), (small, large, 12, [])):
        pilots = (dataclasses.replace(first, deadline=NOW + 600), dataclasses.replace(last, deadline=DEADLINE))
        assert told(plan(waiting(*pilots, cores=cores)))[0] == gone


room_rows = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from([4, 8]), st.sampled_from(["alice", "ann"]), st.integers(-2, 7), st.integers(1, 4)
    ),
    min_size=3,
    max_size=8,
)


@pytest.mark.daemons
@given(room_rows, st.sampled_from([4, 8]))
def test_where_jobs_wait_by_kind_no_claim_makes_a_user_give_back_more_for_what_is_replaced(
    these: list[tuple[bool, int, str, int, int]], cores: int
) -> None:
    """And the cores come back no later."""
    pilots, room = [], dict.fromkeys(range(1, 5), 0)
    for number, (is_late, size, user, hours, node) in enumerate(these):
        made = (late if is_late else cheap)(number, user=user, cores=size)
        pilots.append(on(dataclasses.replace(made, deadline=NOW + 900 * hours if hours > 0 else None), f"n{node}"))
        room[node] += size * (hours > 0)
    jobs = sum(one // cores for one in room.values())
    found = plan(waiting(*pilots, cores=cores, jobs=jobs) if jobs else snapshot(*pilots))
    swapped = [order for order in found.orders if order.instead_of]
    gone = [one.pilot.run for one in found.withdrawals if one.instead]
    before, after = cores_by_user(pilots, gone), cores_by_user(pilots, [order.pilot.run for order in swapped])
    assert all(after[user] <= before[user] for user in before)
    for order in swapped:
        assert order.cores_back <= max(one.deadline or 0 for one in pilots if one.run in order.instead_of)

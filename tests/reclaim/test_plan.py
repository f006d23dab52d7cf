"""What one cycle would do, and that it explains itself."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.errors import PoolUnreachable, UsageError
from drainwise.pilotad.report import PilotReport
from drainwise.pool import Snapshot
from drainwise.reclaim.plan import Plan, make_plan

from .facts import NOW, SETTINGS, pilot, principal, report, reports, snapshot


def planned(seen: Snapshot, **changes: object) -> Plan:
    return make_plan(seen, NOW, dataclasses.replace(SETTINGS, **changes))  # type: ignore[arg-type]


def asked(plan: Plan) -> list[str]:
    return [order.pilot.run for order in plan.orders]


def test_the_pilots_that_cost_least_are_asked_and_the_others_spared_each_with_a_reason() -> None:
    cheap, dear, silent = pilot(1, report(7.9)), pilot(2, report(1.0)), pilot(3)
    plan = planned(snapshot(cheap, dear, silent, deficit=8))
    [user] = plan.users
    [order] = user.orders
    assert (order.pilot, order.kind, order.deadline, order.waste) == (cheap, "leave", NOW + 7200, 100)
    assert (
        order.reason
        == "gone by itself in 33m20s, 0.028 core-h idle until then; in the least wasteful set for 8 cores, 0.028 core-h"
    )
    assert [(one.candidate.pilot, one.reason) for one in user.spared] == [
        (dear, "not needed; asking it would waste 1.94 core-h"),
        (silent, "not needed; asking it would waste 44.4 core-h"),
    ]
    assert plan.summary == "1 pilot gives back 8 of 8 cores at an expected waste of 0.028 core-h"


def test_pilots_that_are_on_their_way_are_neither_asked_nor_counted_again() -> None:
    on_its_way, leaving, running = pilot(1, deadline=NOW + 60), pilot(2, leaving=True), pilot(3)
    plan = planned(snapshot(on_its_way, leaving, running, deficit=24, surplus=24))
    assert asked(plan) == [running.run]
    assert [one.reason for one in plan.users[0].spared] == [
        "asked already to be gone by 2026-11-21 08:17:40Z",
        "the batch system ends it already",
    ]


def test_a_pilot_that_leaves_much_too_late_is_not_asked_either() -> None:
    """The batch system ends it for its own reasons; an order would only be in the way."""
    slow, running = pilot(1, report(8.0), leaving=True, lease_end=NOW + 90_000), pilot(2)
    assert asked(planned(snapshot(slow, running, deficit=8))) == [running.run]


@pytest.mark.parametrize(
    ("seen", "summary"),
    [
        (Snapshot(NOW, (), ()), "nobody under quota waits: nothing to give back"),
        (
            Snapshot(NOW, (), (principal("b", 0, 8, wanted=8),)),
            "nobody is over quota: nothing to give back",
        ),
        (snapshot(pilot(1), deficit=8, free=8), "enough cores are free or on their way out: nothing to give back"),
    ],
    ids=["empty", "no surplus", "free"],
)
def test_without_a_debt_nothing_is_planned_and_the_plan_says_why(seen: Snapshot, summary: str) -> None:
    plan = planned(seen)
    assert (plan.orders, plan.users, plan.summary) == ((), (), summary)


def test_half_a_snapshot_makes_no_plan() -> None:
    """HOSTILE 54."""
    with pytest.raises(PoolUnreachable):
        planned(Snapshot(NOW, (pilot(1),), ()))


def test_a_policy_that_does_not_exist_is_refused_although_nothing_is_to_be_done() -> None:
    with pytest.raises(UsageError):
        planned(Snapshot(NOW, (), ()), policy="fastest")


def test_nobody_falls_below_its_quota_by_giving_back() -> None:
    """alice is over by 12 and runs pilots of 8: giving back two would make her the one who is owed cores."""
    pilots = [pilot(n, report()) for n in range(5)]
    plan = planned(snapshot(*pilots, deficit=12))
    assert len(plan.orders) == 1
    assert plan.summary.endswith("; 4 cores are left over (limits of a cycle, or no pilot that fits)")


def test_the_worst_user_gives_back_first_and_the_next_only_what_is_missing() -> None:
    """Pilots are ranked within one user only: bea's cheap pilot does not help ann, whose priority is worse."""
    pilots = (
        pilot(1, report(1.0), user="ann"),
        pilot(2, report(1.0), user="ann"),
        pilot(3, report(8.0), user="bea"),
        pilot(4, report(8.0), user="bea"),
    )
    accounts = (principal("group_a", 32, 0), principal("group_b", 0, 32, wanted=24))
    seen = Snapshot(NOW, pilots, accounts, 0.0, {"ann": 900.0, "bea": 600.0})
    plan = planned(seen)
    assert [(user.user, user.cores, [order.pilot for order in user.orders]) for user in plan.users] == [
        ("ann", 24, [pilots[0], pilots[1]]),
        ("bea", 8, [pilots[2]]),
    ]


def test_a_cycle_asks_no_more_pilots_than_the_site_allows() -> None:
    pilots = [pilot(n, report(8.0 - n)) for n in range(4)]
    plan = planned(snapshot(*pilots, deficit=32), max_pilots=3)
    assert asked(plan) == [one.run for one in pilots[:3]], "the cheapest are asked first"
    assert plan.users[0].spared[0].reason == "left to the next cycle: one cycle asks 3 pilots at most"


def test_a_cycle_takes_no_more_cores_from_one_user_than_the_site_allows() -> None:
    """And what the limit leaves over is left to the next cycle, not put on another user."""
    mine, hers = [pilot(n, report()) for n in range(4)], [pilot(9, report(), user="bea")]
    seen = snapshot(*mine, *hers, deficit=32, surplus=40)
    plan = planned(dataclasses.replace(seen, user_priorities={"alice": 900.0, "bea": 1.0}), max_cores_per_user=20)
    assert [(user.user, user.cores_given, user.later) for user in plan.users] == [("alice", 16, 16)]


def test_a_pilot_that_has_hardly_begun_is_left_alone() -> None:
    """However cheap it is, also for a policy that would kill it first."""
    young, old = pilot(1, started=NOW - 59), pilot(2, started=NOW - 60)
    for policy in ("least-waste", "paper"):
        plan = planned(snapshot(young, old, deficit=8), policy=policy)
        assert asked(plan) == [old.run]
        assert plan.users[0].spared[0].reason == "left alone for the first 1m of its run"


def test_a_kill_is_due_after_the_sites_notice() -> None:
    [order] = planned(snapshot(pilot(1), deficit=8), policy="paper", notice=5).orders
    assert (order.kind, order.deadline) == ("kill", NOW + 5)


Claims = list[tuple[PilotReport | None, PilotReport | None]]
claims_of = st.lists(st.tuples(reports(), reports()), min_size=1, max_size=7)


def two_pools(claims: Claims, deficit: int, sizes: tuple[int, ...]) -> tuple[Snapshot, Snapshot]:
    """The same pool twice; alice's pilots say one thing, then another. carol's say the same both times."""

    def pool(side: int) -> Snapshot:
        hers = [pilot(n, pair[side], cores=sizes[n % len(sizes)]) for n, pair in enumerate(claims)]
        others = [pilot(100 + n, report(float(n)), user="carol") for n in range(4)]
        return snapshot(*hers, *others, deficit=deficit)

    return pool(0), pool(1)


def given_back(plan: Plan, user: str) -> int:
    return sum(order.pilot.cores for order in plan.orders if order.pilot.user == user)


@pytest.mark.parametrize("policy", ["least-waste", "paper"])
@settings(max_examples=30, deadline=None)
@given(claims=claims_of, pilots=st.integers(0, 12))
def test_cores_given_back_never_depend_on_claims(policy: str, claims: Claims, pilots: int) -> None:
    """SPEC §2, HOSTILE 38 and 40: what alice's pilots say decides which of them go, not how many of her cores."""
    one, other = (planned(seen, policy=policy) for seen in two_pools(claims, 8 * pilots, (8,)))
    assert given_back(one, "alice") == given_back(other, "alice") == min(8 * pilots, 8 * len(claims))


@pytest.mark.parametrize("policy", ["least-waste", "paper"])
@settings(max_examples=30, deadline=None)
@given(claims=claims_of, deficit=st.integers(0, 90))
def test_nobody_elses_pilots_depend_on_alices_claims(policy: str, claims: Claims, deficit: int) -> None:
    """Also with pilots of many sizes, where her own choice may free a few cores more or less."""
    one, other = (planned(seen, policy=policy) for seen in two_pools(claims, deficit, (1, 2, 8, 24)))
    for plan in (one, other):
        assert sum(order.pilot.cores for order in plan.orders) <= deficit
    assert [order.pilot for order in one.orders if order.pilot.user == "carol"] == [
        order.pilot for order in other.orders if order.pilot.user == "carol"
    ]


@settings(max_examples=30, deadline=None)
@given(claims=claims_of, deficit=st.integers(0, 60))
def test_no_more_users_give_back_than_needed(claims: Claims, deficit: int) -> None:
    """carol, whose priority is better, is asked only when all of alice's pilots do not suffice."""
    seen, _ = two_pools(claims, deficit, (8,))
    plan = planned(seen)
    if given_back(plan, "carol"):
        assert given_back(plan, "alice") == 8 * len(claims)


def test_the_pilots_of_those_under_quota_are_never_asked() -> None:
    mine, his = pilot(1, report()), pilot(2, report(8.0), user="bob", principal="group_b")
    accounts = (principal("group_a", 8, 0), principal("group_b", 8, 16, wanted=8))
    assert asked(planned(Snapshot(NOW, (mine, his), accounts))) == [mine.run]

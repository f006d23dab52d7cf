"""What one cycle would do, and that it explains itself."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise.facts.units import clock
from drainwise.pilotad.report import PilotReport
from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import parse_billing
from drainwise.pool.facts import Snapshot
from drainwise.pool.notices import notices_of
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History, NodeFault, PastOrder, TrustFigures
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.prices import BY_WASTE, POLICIES
from drainwise.reclaim.quota import WhatIf
from reached_asserts import judged

from .facts import NOW, SETTINGS, account, believed, pilot, report, reports, snapshot


def planned(seen: Snapshot, **changes: object) -> Plan:
    return make_plan(seen, NOW, dataclasses.replace(SETTINGS, **changes))  # type: ignore[arg-type]


def ordered(plan: Plan) -> list[str]:
    return [order.pilot.run for order in plan.orders]


def test_the_pilots_that_cost_least_are_ordered_and_the_others_spared_each_with_a_reason() -> None:
    cheap, dear, silent = pilot(1, report(7.9)), pilot(2, report(1.0, last_end=NOW + 9000, start=NOW - 5000)), pilot(3)
    plan = planned(snapshot(cheap, dear, silent, deficit=8))
    [user] = plan.users
    [order] = user.orders
    assert (order.pilot, order.kind, order.deadline, order.waste) == (cheap, "leave", NOW + 2900, 200 + 3081)
    assert (
        order.reason == "leaves by itself in 33m20s: 0.056 core-h idle until then,"
        " 0.856 core-h for the chance that it does not leave; in the least wasteful set"
    )
    assert [(one.candidate.pilot, one.reason) for one in user.spared] == [
        (dear, "not needed; with an order: killed: 1.39 core-h of running payloads lost"),
        (silent, "not needed; with an order: it reports nothing; 8 cores x 5h33m run time = 44.4 core-h, killed"),
    ]
    assert plan.summary == "1 pilot gives back 8 of 8 cores at an expected waste of 0.911 core-h"


def test_pilots_that_are_on_their_way_are_neither_ordered_nor_counted_again() -> None:
    on_its_way, leaving, running = pilot(1, deadline=NOW + 60), pilot(2, leaving=True), pilot(3)
    plan = planned(snapshot(on_its_way, leaving, running, deficit=24, surplus=24))
    assert ordered(plan) == [running.run]
    assert [one.reason for one in plan.users[0].spared] == [
        "already ordered to end by 2026-11-21 08:17:40Z",
        "the batch system ends it already",
    ]


def test_a_pilot_that_leaves_much_too_late_is_not_ordered_either() -> None:
    """The batch system ends it for its own reasons; an order would only be in the way."""
    slow, running = pilot(1, report(8.0), leaving=True, lease_end=NOW + 90_000), pilot(2)
    assert ordered(planned(snapshot(slow, running, deficit=8))) == [running.run]


@pytest.mark.parametrize(
    ("seen", "summary"),
    [
        (Snapshot(NOW, (), ()), "nobody under quota waits: nothing to give back"),
        (
            Snapshot(NOW, (), (account("b", 0, 8, wanted=8),)),
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
    assert plan.summary.endswith("; 4 cores are missing (limits of a cycle, or no pilot that fits)")


def test_the_worst_user_gives_back_first_and_the_next_only_what_is_missing() -> None:
    """Pilots are ranked within one user only: bea's cheap pilot does not help ann, whose priority is worse."""
    pilots = (
        pilot(1, report(1.0), user="ann"),
        pilot(2, report(1.0), user="ann"),
        pilot(3, report(8.0), user="bea"),
        pilot(4, report(8.0), user="bea"),
    )
    accounts = (account("group_a", 32, 0), account("group_b", 0, 32, wanted=24))
    seen = Snapshot(NOW, pilots, accounts, 0.0, {"ann": 900.0, "bea": 600.0})
    plan = planned(seen)
    assert [(user.user, user.cores, [order.pilot for order in user.orders]) for user in plan.users] == [
        ("ann", 24, [pilots[0], pilots[1]]),
        ("bea", 8, [pilots[2]]),
    ]


def test_a_cycle_takes_no_more_cores_from_one_user_than_the_site_allows() -> None:
    """And what the limit leaves over is left to the next cycle, not put on another user."""
    mine, hers = [pilot(n, report()) for n in range(4)], [pilot(9, report(), user="bea")]
    seen = snapshot(*mine, *hers, deficit=32, surplus=40)
    seen = dataclasses.replace(seen, user_priorities={"alice": 900.0, "bea": 1.0})
    keys = {
        "max_cores_per_user": "max_cores_per_user_per_cycle",
        "max_cores_per_user_hour": "max_cores_per_user_per_hour",
        "max_cores": "max_cores_per_cycle",
    }
    for limit, key in keys.items():
        [alice] = planned(seen, **{limit: 20}).users
        assert (alice.user, alice.cores_given, alice.later) == ("alice", 16, 16), limit
        assert f"[reclaim] {key} allows 20 cores now" in alice.spared[0].reason and alice.limited_by == key


def test_who_gets_no_order_as_others_have_all_of_a_cycle_is_told_which_limit_it_was() -> None:
    pilots = [pilot(n, report(), user=user) for n, user in enumerate(("alice", "alice", "bea", "bea"))]
    seen = dataclasses.replace(snapshot(*pilots, deficit=32), user_priorities={"alice": 900.0, "bea": 1.0})
    alice, bea = planned(seen, max_cores=16).users
    assert (alice.cores_given, bea.cores_given) == (16, 0)
    assert bea.limited_by == "max_cores_per_cycle" and "allows 0 cores now" in bea.spared[0].reason


def test_a_user_under_two_accounts_has_one_limit() -> None:
    pilots = tuple(pilot(n, report(), account=f"group_{'ac'[n % 2]}") for n in range(6))
    accounts = (account("group_a", 24, 0), account("group_c", 24, 0), account("group_b", 0, 48, wanted=48))
    plan = planned(Snapshot(NOW, pilots, accounts), max_cores_per_user=32)
    assert [user.cores_given for user in plan.users] == [24, 8]


def test_what_was_taken_within_the_hour_counts() -> None:
    pilots = [pilot(n, report()) for n in range(4)]
    earlier = (PastOrder(NOW - 3599, "alice", 8), PastOrder(NOW - 3600, "alice", 100), PastOrder(NOW - 10, "bea", 100))
    plan = make_plan(
        snapshot(*pilots, deficit=32), NOW, dataclasses.replace(SETTINGS, max_cores_per_user_hour=24), History(earlier)
    )
    assert (plan.users[0].cores_given, plan.users[0].later) == (16, 16)


def test_where_an_order_was_refused_another_pilot_goes_until_it_is_tried_again() -> None:
    """A node that takes no orders must not hold up whoever waits for cores."""
    cheap, dear = pilot(1, report(7.9)), pilot(2, report(1.0, last_end=NOW + 9000, start=NOW - 5000))
    seen = snapshot(cheap, dear, deficit=8)
    assert ordered(make_plan(seen, NOW, SETTINGS, History(failed={cheap.run: NOW - 600}))) == [cheap.run]
    plan = make_plan(seen, NOW, SETTINGS, History(failed={cheap.run: NOW - 599}))
    assert ordered(plan) == [dear.run]
    assert plan.users[0].spared[0].reason.endswith(" was refused; not tried again for 10m")


@pytest.mark.parametrize(
    ("fault", "heard", "asks"),
    [
        (NodeFault(NOW - 60, 1, denied=True), NOW, "dear"),
        (NodeFault(NOW - 600, 1, denied=True), NOW, "cheap"),
        (NodeFault(NOW - 1199, 2, denied=True), NOW, "dear"),
        (NodeFault(NOW - 1200, 2, denied=True), NOW, "cheap"),
        (NodeFault(NOW - 19_199, 90, denied=True), NOW, "dear"),
        (NodeFault(NOW - 19_200, 90, denied=True), NOW, "cheap"),
        (NodeFault(NOW - 60, 1, denied=False), NOW - 60, "dear"),
        (NodeFault(NOW - 60, 1, denied=False), None, "dear"),
        (NodeFault(NOW - 60, 1, denied=False), NOW - 59, "cheap"),
        (NodeFault(NOW - 60, 2, denied=False), NOW, "dear"),
        (NodeFault(NOW - 600, 2, denied=False), NOW - 700, "cheap"),
    ],
)
def test_a_node_that_took_no_order_is_left_alone_for_a_while(fault: NodeFault, heard: int | None, asks: str) -> None:
    """One that did not answer once is asked again as soon as it is heard of."""
    cheap, dear = pilot(1, report(7.9)), pilot(2, report(1.0, last_end=NOW + 9000, start=NOW - 5000))
    cheap = dataclasses.replace(cheap, node="node7", heard=heard)
    plan = make_plan(snapshot(cheap, dear, deficit=8), NOW, SETTINGS, History(nodes={"node7": fault}))
    assert ordered(plan) == [{"cheap": cheap.run, "dear": dear.run}[asks]]
    refuses = "1 node refuses the agent's orders: node7; `drainwise check` tells why"
    assert plan.notices == ((refuses,) if fault.denied and asks == "dear" else ())


def test_an_order_that_may_still_be_carried_out_counts_as_on_its_way() -> None:
    """Nobody else is asked for its cores, and it is not asked again; a deadline that shows says more."""
    cheap, dear = pilot(1, report(7.9)), pilot(2, report(1.0, last_end=NOW + 9000))
    doubt = History(unanswered={cheap.run: NOW + 900})
    plan = make_plan(snapshot(cheap, dear, deficit=8), NOW, SETTINGS, doubt)
    assert (ordered(plan), plan.balance.leaving) == ([], cheap.cores)
    plan = make_plan(snapshot(cheap, dear, deficit=16), NOW, SETTINGS, doubt)
    assert ordered(plan) == [dear.run]
    assert [one.reason for one in plan.users[0].spared] == [
        f"an order to end by {clock(NOW + 900)} was not answered and may still be carried out"
    ]
    stands = dataclasses.replace(cheap, deadline=NOW + 800)
    assert make_plan(snapshot(stands, dear, deficit=8), NOW, SETTINGS, doubt).balance.leaving == cheap.cores


def test_cores_in_pieces_too_small_for_the_waiting_jobs_are_not_passed_off_as_help() -> None:
    """bob's jobs have 8 cores; four cores on each of two nodes help nobody, on one node they do."""
    apart = [dataclasses.replace(pilot(n, report(), cores=4), node=f"node{n}") for n in range(2)]
    together = [dataclasses.replace(one, node="node1") for one in apart]
    for pilots, usable, words in (
        (apart, 0, "; 8 of them lie in pieces too small for the jobs that wait"),
        (together, 8, ""),
    ):
        accounts = (account("group_a", 8, 0), account("group_b", 0, 8, wanted=8))
        plan = planned(Snapshot(NOW, tuple(pilots), accounts))
        assert (len(plan.orders), plan.usable) == (2, usable)
        assert plan.summary.partition("core-h")[2] == words


def test_a_question_is_answered_whatever_is_owed_and_without_limits() -> None:
    pilots = [pilot(n, report(8.0 - n / 2)) for n in range(4)]
    seen = dataclasses.replace(snapshot(*pilots, deficit=0, surplus=16), taken=NOW)
    site = dataclasses.replace(SETTINGS, max_cores=8, max_cores_per_user=8)
    assert make_plan(seen, NOW, site).orders == ()
    plan = make_plan(seen, NOW, site, what_if=WhatIf(24))
    assert ordered(plan) == [one.run for one in pilots[:2]], "no more than is held beyond the quota"
    assert plan.summary.endswith("; 8 cores are missing (limits of a cycle, or no pilot that fits)")
    plan = make_plan(seen, NOW, site, what_if=WhatIf(24, "alice"))
    assert ordered(plan) == [one.run for one in pilots[:3]], "of a user who is named, whatever it holds"
    with pytest.raises(UsageError, match="no user with pilots is called 'bob'; there is alice"):
        make_plan(seen, NOW, site, what_if=WhatIf(24, "bob"))


def test_a_pilot_that_has_hardly_begun_is_left_alone() -> None:
    """However cheap it is, also for a policy that would kill it first."""
    young, old = pilot(1, started=NOW - 59), pilot(2, started=NOW - 60)
    for policy in POLICIES:
        plan = planned(snapshot(young, old, deficit=8), policy=policy)
        assert ordered(plan) == [old.run]
        assert plan.users[0].spared[0].reason == "left alone for the first 1m of its run"


def test_a_kill_is_due_after_the_sites_notice() -> None:
    [order] = planned(snapshot(pilot(1), deficit=8), policy="paper", notice=5).orders
    assert (order.kind, order.deadline) == ("kill", NOW + 5)


Claims = list[tuple[int, PilotReport | None, PilotReport | None]]


def claims_of(*sizes: int) -> st.SearchStrategy[Claims]:
    """Cores of each pilot, what it says, and what it says as well."""
    rows = [st.tuples(st.just(cores), reports(cores), reports(cores)) for cores in sizes]
    return st.lists(st.one_of(rows), min_size=1, max_size=7)


def two_pools(claims: Claims, deficit: int, surplus: int | None = None) -> tuple[Snapshot, Snapshot]:
    """The same pool twice; alice's pilots say one thing, then another. carol's say the same both times."""

    def pool(side: int) -> Snapshot:
        hers = [pilot(n, said[side], cores=cores) for n, (cores, *said) in enumerate(claims)]
        others = [pilot(100 + n, report(float(n)), user="carol") for n in range(4)]
        judged("a believed report of hers", believed(*hers) > 0, at_least=0.3)
        return snapshot(*hers, *others, deficit=deficit, surplus=surplus)

    return pool(0), pool(1)


def given_back(plan: Plan, user: str) -> int:
    """Now, and later where a policy waits for a cheaper moment."""
    hers = [part for part in plan.users if part.user == user]
    later = sum(one.cores for part in hers for one in part.open.pilots if one.run in part.held)
    return later + sum(order.pilot.cores for order in plan.orders if order.pilot.user == user)


@pytest.mark.parametrize("policy", list(POLICIES))
@given(claims=claims_of(1, 2, 8, 24), deficit=st.integers(0, 90), limit=st.integers(1, 60))
def test_no_claim_changes_how_many_cores_anybody_loses_nor_anybody_elses_pilots(
    policy: str, claims: Claims, deficit: int, limit: int
) -> None:
    """SPEC §2, HOSTILE 36 to 40: whatever alice's pilots say decides which of them go, and nothing else at all.

    Also with pilots of many sizes, and where a limit of the cycle cuts what is taken.
    """
    one, other = (
        planned(seen, policy=policy, max_cores=2 * limit, max_cores_per_user=limit)
        for seen in two_pools(claims, deficit)
    )
    for user in ("alice", "carol"):
        assert given_back(one, user) == given_back(other, user)
    assert sum(order.pilot.cores for order in one.orders) <= min(deficit, 2 * limit)
    assert [order.pilot for order in one.orders if order.pilot.user == "carol"] == [
        order.pilot for order in other.orders if order.pilot.user == "carol"
    ]
    assert one.withdrawals == other.withdrawals == ()


DEAR, CHEAP = report(8.0, uncommitted=400_000), report(12.0, first_end=NOW + 50, last_end=NOW + 100)


@pytest.mark.parametrize("policy", list(BY_WASTE))
@given(claims=claims_of(1, 2, 8, 24), deficit=st.integers(0, 90), extra=st.sampled_from((None, 0, 5)))
@example([(8, DEAR, DEAR), (8, DEAR, DEAR), (12, CHEAP, CHEAP)], 8, None)  # few others show cores beyond those owed
def test_claims_cost_their_own_user_its_extra_cores_at_most_and_others_none(
    policy: str, claims: Claims, deficit: int, extra: int | None
) -> None:
    """Though all that the account holds may go."""
    pools = two_pools(claims, deficit, surplus=sum(cores for cores, *_ in claims) + 32)
    facts = two_pools([(cores, None, None) for cores, *_ in claims], deficit, surplus=10**6)[0]
    least = given_back(planned(facts, policy=policy, extra_cores=0), "alice")
    most = least + (max([cores for cores, *_ in claims] + [least // 4]) if extra is None else extra)
    one, other = (planned(seen, policy=policy, extra_cores=extra) for seen in pools)
    for plan in (one, other):
        assert min(least, deficit) <= given_back(plan, "alice") <= most * (least > 0)
        judged("extra cores", any(order.extra for order in plan.orders), at_least=0.005)
    assert [order.pilot for order in one.orders if order.pilot.user == "carol"] == [
        order.pilot for order in other.orders if order.pilot.user == "carol"
    ]


@given(
    sizes=st.lists(st.sampled_from((1, 2, 4, 8, 12)), min_size=1, max_size=9),
    factor=st.floats(0, 1e6),
    deficit=st.integers(0, 60),
)
def test_scaling_a_users_claims_changes_nothing_for_anybody(sizes: list[int], factor: float, deficit: int) -> None:
    """Every claimed waste and every claimed time, by any factor."""

    def pool(scale: float) -> Snapshot:
        hers = [
            pilot(
                n,
                report(
                    cores / 2,
                    first_end=NOW + int(min(scale * 500, 1e9)),
                    last_end=NOW + int(min(scale * 900, 1e9)),
                    uncommitted=scale * 300 * n,
                    final=scale * 100 * n,
                ),
                cores=cores,
            )
            for n, cores in enumerate(sizes)
        ]
        others = [pilot(100 + n, report(float(n)), user="carol") for n in range(4)]
        return snapshot(*hers, *others, deficit=deficit)

    honest, scaled = planned(pool(1.0)), planned(pool(factor))
    assert given_back(honest, "alice") == given_back(scaled, "alice")
    assert [order.pilot.run for order in honest.orders if order.pilot.user == "carol"] == [
        order.pilot.run for order in scaled.orders if order.pilot.user == "carol"
    ]


def test_distrust_moves_no_core() -> None:
    """A user whose pilots promised wrongly loses other pilots, not more of them."""
    pilots = [pilot(n, report(float(n)), cores=(4, 8, 12)[n % 3]) for n in range(9)]
    seen = snapshot(*pilots, deficit=20)
    history = History(trust={"alice": TrustFigures(9, 100, 90_000, 89_900, 100_000)})
    trusted, doubted = planned(seen), make_plan(seen, NOW, SETTINGS, history)
    assert given_back(trusted, "alice") == given_back(doubted, "alice") == 20
    assert "claims moved by 90%" in doubted.orders[0].reason


@given(claims=claims_of(8), deficit=st.integers(0, 60))
def test_no_more_users_give_back_than_needed(claims: Claims, deficit: int) -> None:
    """carol, whose priority is better, is asked only when all of alice's pilots do not suffice."""
    seen, _ = two_pools(claims, deficit)
    plan = planned(seen)
    if given_back(plan, "carol"):
        assert given_back(plan, "alice") == 8 * len(claims)


def test_the_pilots_of_those_under_quota_are_never_ordered() -> None:
    mine, his = pilot(1, report()), pilot(2, report(8.0), user="bob", account="group_b")
    accounts = (account("group_a", 8, 0), account("group_b", 8, 16, wanted=8))
    assert ordered(planned(Snapshot(NOW, (mine, his), accounts))) == [mine.run]


def test_a_pilot_that_can_get_no_order_is_spared_with_the_reason_and_another_one_goes() -> None:
    cheap = pilot(1, report(0.1, start=NOW), cannot="its node takes no orders yet")
    plan = make_plan(snapshot(cheap, pilot(2, report()), deficit=8), NOW, SETTINGS)
    assert [order.pilot.name for order in plan.orders] == ["slot1_2@node1"]
    [spared] = plan.users[0].spared
    assert spared.reason == "cannot be given an order: its node takes no orders yet"
    assert plan.notices == ("1 pilot (8 cores) cannot be given an order: its node takes no orders yet",)


def test_the_reason_with_the_most_cores_comes_after_the_notices_of_the_batch_system() -> None:
    pilots = (pilot(1, cannot="a"), pilot(2, cannot="b", cores=4), pilot(3, cannot="b", cores=8), pilot(4))
    seen = dataclasses.replace(snapshot(*pilots), notices=("slot1@n9 is left out: Cpus = 1e308",))
    assert notices_of(seen) == (
        "slot1@n9 is left out: Cpus = 1e308",
        "2 pilots (12 cores) cannot be given an order: b",
        "1 pilot (8 cores) cannot be given an order: a",
    )


def test_however_many_notices_there_are_twenty_are_shown() -> None:
    seen = dataclasses.replace(snapshot(pilot(1)), notices=tuple(f"notice {number}" for number in range(100)))
    assert notices_of(seen) == (*(f"notice {number}" for number in range(20)), "80 more notices")


def test_a_pilot_whose_claim_would_end_it_at_once_is_not_ordered() -> None:
    """Its claim was given more vacate time than any deadline lies ahead: it would have SIGTERM before it is told."""
    site = dataclasses.replace(SETTINGS, grace=600, horizon=600, vacate=30, order_latency=60)
    cheap = pilot(1, report(0.1, start=NOW), vacate=540)
    plan = make_plan(snapshot(cheap, pilot(2, report()), deficit=8), NOW, site)
    assert [order.pilot.name for order in plan.orders] == ["slot1_2@node1"]
    [spared] = plan.users[0].spared
    assert spared.reason.startswith("its claim lets it be ended 9m before a deadline")
    [order] = make_plan(snapshot(dataclasses.replace(cheap, vacate=539), pilot(2), deficit=8), NOW, site).orders
    assert order.pilot.name == "slot1_1@node1", "one second less, and it can be told"


def test_nodes_with_pilots_that_can_get_no_order_are_counted_once() -> None:
    pilots = (pilot(1, cannot="a"), pilot(2, cannot="a"), pilot(3))
    assert make_plan(snapshot(*pilots), NOW, SETTINGS).closed_nodes == 1
    assert make_plan(snapshot(pilot(3)), NOW, SETTINGS).closed_nodes == 0


def test_a_pilot_with_gpus_costs_what_the_site_bills_for_them() -> None:
    """By cores alone it is the cheaper one to end; how many cores its user loses is the same."""
    idle = dataclasses.replace(pilot(1, started=NOW - 3600), holds=Amounts(8, gpus=4))
    busy = dataclasses.replace(pilot(2, started=NOW - 7200), holds=Amounts(8))
    seen, billing = snapshot(idle, busy), parse_billing("CPU=1,GRES/gpu=16")
    assert ordered(planned(seen)) == [idle.run]
    plan = planned(seen, billing=billing)
    assert ordered(plan) == [busy.run]
    assert plan.orders[0].waste == 8 * 7200, "the waste is told in core-seconds"
    shown = as_json(plan)
    assert (shown["expected_billed"], shown["unit"]) == (8 * 7200, "billing-h")
    dear = make_plan(snapshot(idle), NOW, dataclasses.replace(SETTINGS, billing=billing))
    assert dear.orders[0].candidate.in_unit(dear.orders[0].waste) == "72.0 billing-h"
    assert as_json(dear)["expected_billed"] == 8 * 3600 * 9
    assert not {"expected_billed", "unit"} & as_json(planned(seen)).keys()


@pytest.mark.parametrize(
    ("limit", "earlier", "orders"),
    [("max_billing_user_hour", 9.0, 0), ("max_billing_user_hour", 1.0, 1), ("max_billing_hour", 9.0, 0)],
)
def test_what_is_billed_bounds_what_an_hour_takes(limit: str, earlier: float, orders: int) -> None:
    """A pilot with 8 cores and 4 GPUs is 72, and so was one of before with 9 for each core."""
    billing, most = parse_billing("CPU=1,GRES/gpu=16"), 100
    run = dataclasses.replace(pilot(1), holds=Amounts(8, gpus=4))
    site = dataclasses.replace(SETTINGS, billing=billing, **{limit: most})  # type: ignore[arg-type]
    past = History((PastOrder(NOW - 60, "alice", 8, billed=earlier), PastOrder(NOW - 3700, "alice", 99, billed=9.0)))
    assert len(make_plan(snapshot(run), NOW, site, past).orders) == orders

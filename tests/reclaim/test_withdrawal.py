"""Requests whose reason has gone are withdrawn, and no others."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.scope_rules import ScopeRules
from drainwise.pilotad.report import PilotReport
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Withdrawal
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import AdminRequest
from reached_asserts import judged

from .facts import NOW, SETTINGS, account, believed, pilot, report, reports, snapshot

DEADLINE = NOW + 600


def ordered(number: int, said: PilotReport | None = None, *, cores: int = 8, user: str = "alice") -> Pilot:
    return pilot(number, said, cores=cores, user=user, deadline=DEADLINE)


def withdrawn(seen: Snapshot) -> tuple[Withdrawal, ...]:
    return make_plan(seen, NOW, SETTINGS).withdrawals


def runs(seen: Snapshot) -> list[str]:
    return [one.pilot.run for one in withdrawn(seen)]


def test_when_bob_has_left_every_request_is_withdrawn() -> None:
    pilots = [ordered(n, report()) for n in range(2)]
    found = withdrawn(snapshot(*pilots, pilot(3), deficit=0, surplus=24))
    assert [one.pilot for one in found] == pilots
    assert found[0].saved == 4960, "what idles until the deadline, and what is cut then"
    assert found[0].reason == "nobody waits for these cores any more; going on saves 1.38 core-h"


def test_as_long_as_bob_waits_no_request_is_withdrawn() -> None:
    assert runs(snapshot(ordered(1), ordered(2), deficit=16)) == []
    assert runs(snapshot(ordered(1), ordered(2), deficit=9)) == [], "he needs a part of both"


def test_of_several_the_one_whose_going_on_saves_most() -> None:
    cheap, dear = ordered(1, report(7.9)), ordered(2, report(1.0))
    assert runs(snapshot(cheap, dear, deficit=8, surplus=16)) == [dear.run]


def test_cores_that_became_free_elsewhere_are_a_reason_gone() -> None:
    assert len(runs(snapshot(ordered(1), ordered(2), deficit=16, free=8))) == 1


def test_an_order_that_was_not_answered_takes_back_none_that_stands() -> None:
    """It may not be carried out, and then the one that was withdrawn would be missing."""
    stands, doubtful = ordered(1), pilot(2)
    history = History(unanswered={doubtful.run: DEADLINE})
    assert make_plan(snapshot(stands, doubtful, deficit=8, surplus=16), NOW, SETTINGS, history).withdrawals == ()
    [gone] = make_plan(snapshot(stands, doubtful, deficit=0, surplus=16), NOW, SETTINGS, history).withdrawals
    assert gone.pilot == stands


def test_a_quota_that_was_raised_is_a_reason_gone() -> None:
    """bob still waits, but not for alice's cores: the next cycle looks at who is over quota now."""
    accounts = (account("group_a", 16, 16), account("group_b", 0, 16, wanted=16, per_job=1))
    found = withdrawn(Snapshot(NOW, (ordered(1), ordered(2)), accounts))
    assert [one.reason.partition(";")[0] for one in found] == ["group_a is not over quota"] * 2


def test_the_best_priority_is_released_first() -> None:
    pilots = (ordered(1, user="ann"), ordered(2, user="bea"))
    seen = dataclasses.replace(snapshot(*pilots, deficit=8, surplus=16), user_priorities={"ann": 900.0, "bea": 1.0})
    assert runs(seen) == [pilots[1].run]


def test_what_the_batch_system_ends_or_has_ended_is_not_ours_to_take_back() -> None:
    ending, overdue = pilot(1, leaving=True), dataclasses.replace(ordered(2), deadline=NOW)
    assert runs(snapshot(ending, overdue, deficit=0, surplus=16)) == []


rows = st.lists(
    st.sampled_from((1, 2, 4, 8, 12)).flatmap(
        lambda cores: st.tuples(st.tuples(reports(cores), reports(cores)), st.just(cores), st.booleans())
    ),
    max_size=8,
)


@pytest.mark.daemons
@given(rows, st.integers(0, 40), st.integers(0, 20), st.integers(0, 60))
def test_what_is_withdrawn_is_not_asked_for_again(
    pilots: list[tuple[tuple[PilotReport | None, PilotReport | None], int, bool]], deficit: int, free: int, surplus: int
) -> None:
    """No flapping: after the requests are gone, the same pool asks nobody. And claims result no core more or less."""
    seen = [
        snapshot(
            *(
                pilot(n, row[0][side], cores=row[1], deadline=DEADLINE if row[2] else None)
                for n, row in enumerate(pilots)
            ),
            deficit=deficit,
            free=float(free),
            surplus=surplus,
        )
        for side in (0, 1)
    ]
    judged("a believed report", believed(*seen[0].pilots) > 0, at_least=0.3)
    chosen = {one.pilot.run for one in withdrawn(seen[0])}
    assert sum(one.pilot.cores for one in withdrawn(seen[0])) == sum(one.pilot.cores for one in withdrawn(seen[1]))
    if chosen:
        after = tuple(dataclasses.replace(one, deadline=None) if one.run in chosen else one for one in seen[0].pilots)
        assert make_plan(dataclasses.replace(seen[0], pilots=after), NOW, SETTINGS).orders == ()


def exempting(row: str) -> ReclaimSettings:
    return dataclasses.replace(SETTINGS, scope=ScopeRules(exempt=row))


def test_a_job_that_the_site_exempts_now_gets_its_lease_back_whoever_waits() -> None:
    """bob still waits for both; the order of the other user's pilot stands."""
    exempt, other = ordered(1, user="alice"), ordered(2, user="ann")
    plan = make_plan(snapshot(exempt, other, deficit=16), NOW, exempting("user=alice"))
    [gone] = plan.withdrawals
    assert gone.pilot.run == exempt.run
    assert gone.reason.startswith("out of scope by [reclaim] exempt = user=alice; going on saves ")


def test_an_exempted_job_is_no_reason_to_withdraw_what_others_must_give() -> None:
    """8 of 16 cores are spare: they are those of the exempted job."""
    exempt, other = ordered(1, report(7.9), user="alice"), ordered(2, report(1.0), user="ann")
    plan = make_plan(snapshot(exempt, other, deficit=8, surplus=16), NOW, exempting("user=alice"))
    assert [one.pilot.run for one in plan.withdrawals] == [exempt.run]


def test_exempting_all_users_withdraws_all_orders_also_below_needs_by_kind() -> None:
    """It is how a site takes back what it has ordered."""
    pilots = [ordered(1, user="alice"), ordered(2, user="ann"), pilot(3, user="ann")]
    by_kind = dataclasses.replace(
        snapshot(*pilots, deficit=16),
        kinds=(JobKind("k", "group_b", 2, Amounts(8, 0), frozenset({"x"})),),
        places=(Place("n1", "n1", "x", Amounts(0, 0), Amounts(24, 0)),),
    )
    for seen in (by_kind, snapshot(*pilots, deficit=16)):
        plan = make_plan(seen, NOW, exempting("user=*"))
        assert {one.pilot.run for one in plan.withdrawals} == {one.run for one in pilots[:2]}
        assert not plan.orders


def test_an_exempted_job_is_withdrawn_from_a_request_that_stands_too() -> None:
    """The site file is younger than the request; what others were ordered for it stands."""
    exempt, other = ordered(1, user="alice"), ordered(2, user="ann")
    request = AdminRequest("r1", NOW - 60, DEADLINE, cores=16)
    history = History(requests=(request,), requested={one.run: ("r1", DEADLINE) for one in (exempt, other)})
    for is_for_demand in (True, False):
        seen, settings = snapshot(exempt, other, deficit=0, surplus=16), exempting("user=alice")
        plan = make_plan(seen, NOW, settings, history, is_for_demand=is_for_demand)
        assert [one.pilot.run for one in plan.withdrawals] == [exempt.run]
    assert not make_plan(seen, NOW, SETTINGS, history).withdrawals


def test_what_was_ordered_for_a_cancelled_request_stands_on_a_node_that_closes() -> None:
    """Its cores are for nobody who waits: the node's own request goes on needing its end."""
    leaves = dataclasses.replace(ordered(1), node="n1")
    closing = AdminRequest("r2", NOW - 60, DEADLINE, nodes=("n1",))
    history = History(requests=(closing,), requested={leaves.run: ("r1", DEADLINE)})
    assert make_plan(snapshot(leaves, deficit=0, surplus=16), NOW, SETTINGS, history).withdrawals == ()

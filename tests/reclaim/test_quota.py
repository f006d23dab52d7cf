"""Who has to give back how many cores: the batch system's figures alone."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.report import PilotReport
from drainwise.pool.clocks import CLOCKS_DIFFER
from drainwise.pool.facts import Snapshot
from drainwise.pool.free_cores import whole_cores
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.quota import (
    Balance,
    on_its_way,
    owed,
    require_whole,
    weigh,
    with_far_ends,
    with_turns,
)
from reached_asserts import judged

from .facts import NOW, SETTINGS, account, believed, pilot, reports, snapshot

HORIZON = 7200


def balance(seen: Snapshot) -> Balance:
    return weigh(seen, NOW, HORIZON)


def test_the_deficit_is_the_demand_of_those_under_quota_that_is_not_free() -> None:
    pilots = [pilot(number) for number in range(9)]
    assert balance(snapshot(*pilots, deficit=24, surplus=40)).deficit == 24
    assert balance(snapshot(*pilots, deficit=24, surplus=40, free=16)).deficit == 8
    assert balance(snapshot(*pilots, deficit=24, surplus=40, free=24)).deficit == 0


def test_nobody_gives_back_more_than_is_held_beyond_the_quota() -> None:
    pilots = [pilot(number) for number in range(9)]
    assert balance(snapshot(*pilots, deficit=64, surplus=16)).deficit == 16


def test_a_principal_without_demand_is_not_owed_anything() -> None:
    """Being under quota alone takes nothing from anybody."""
    seen = Snapshot(NOW, (), (account("idle", 0, 36), account("busy", 72, 36)))
    assert balance(seen).deficit == 0


def test_waiting_over_ones_quota_takes_nothing_from_anybody() -> None:
    seen = Snapshot(NOW, (), (account("greedy", 40, 36, wanted=100), account("busy", 72, 36)))
    assert balance(seen).demand == 0


def test_demand_counts_in_whole_jobs() -> None:
    """36 cores are owed, jobs have 8: the fifth could not start, so its 4 cores are not taken from anybody."""
    assert owed(account("b", 0, 36, wanted=72, per_job=8)) == 32
    assert owed(account("b", 30, 36, wanted=72, per_job=8)) == 0
    assert owed(account("b", 0, 36, wanted=72, per_job=1)) == 36


def test_parts_of_a_core_are_not_taken() -> None:
    seen = Snapshot(NOW, (), (account("a", 72, 36.5), account("b", 0, 35.9, wanted=80, per_job=0.5)))
    assert balance(seen).deficit == 35


@pytest.mark.parametrize("float_sum", [0.1 * 3 * 10, 2.9999999999])
def test_rounding_of_floats_costs_no_core(float_sum: float) -> None:
    assert whole_cores(float_sum) == 3


def test_cores_on_their_way_out_are_counted_first() -> None:
    """The paper: if enough are draining, pick nothing. Here two of three times 8 cores are on their way."""
    pilots = [pilot(1, deadline=NOW + 100), pilot(2, leaving=True), pilot(3), pilot(4)]
    seen = balance(snapshot(*pilots, deficit=24, surplus=32))
    assert (seen.leaving, seen.deficit) == (16, 8)
    assert balance(snapshot(*pilots, deficit=16, surplus=32)).deficit == 0


@pytest.mark.parametrize("facts", [{}, {"deadline": NOW + 100}, {"leaving": True}])
def test_what_goes_for_a_request_is_less_to_give_back_and_nothing_for_those_who_wait(facts: dict[str, Any]) -> None:
    """Whether it has its order already or not: of 32 cores over her quota alice gives 24 for bob, and not fewer."""
    pilots = [dataclasses.replace(pilot(1), reserved=True, **facts), *(pilot(number) for number in (2, 3, 4))]
    seen = balance(snapshot(*pilots, deficit=24, surplus=32))
    assert (seen.leaving, seen.deficit, seen.below_share) == (0, 24, 24)
    assert balance(snapshot(*pilots, deficit=32, surplus=32)).deficit == 24


def test_a_pilot_that_was_ordered_is_never_counted_twice() -> None:
    """As long as its deadline is within the horizon: a lease that somebody made end later frees nothing in time."""
    assert on_its_way(pilot(1, deadline=NOW + HORIZON), NOW, HORIZON)
    assert on_its_way(pilot(1, deadline=NOW - 10), NOW, HORIZON)
    assert not on_its_way(pilot(1, deadline=NOW + HORIZON + 1), NOW, HORIZON)


def test_a_far_end_may_get_a_nearer_one() -> None:
    """It is an ordinary pilot to those who wait; one that goes for a request keeps its deadline."""
    far, near = pilot(1, deadline=NOW + HORIZON + 1), pilot(2, deadline=NOW + HORIZON)
    reserved = replace(far, run="ce#3.0#1@1", reserved=True)
    seen = with_far_ends(snapshot(far, near, reserved), NOW, HORIZON)
    assert [one.deadline for one in seen.pilots] == [None, NOW + HORIZON, NOW + HORIZON + 1]
    assert with_far_ends(snapshot(near), NOW, HORIZON) == snapshot(near)


def test_what_goes_for_a_request_later_is_surplus_now() -> None:
    """A maintenance in ten hours keeps nobody from giving cores back now."""
    closing = [replace(pilot(n), reserved=True, deadline=NOW + 5 * HORIZON) for n in (1, 2)]
    assert balance(snapshot(*closing, pilot(3), deficit=8, surplus=16)).deficit == 8
    soon = [replace(one, deadline=NOW + 5) for one in closing]
    assert balance(snapshot(*soon, pilot(3), deficit=8, surplus=16)).deficit == 0


def test_a_pilot_that_leaves_too_late_is_no_help() -> None:
    """A node that an admin drains gives its jobs days: their cores do not come back within the horizon."""
    assert on_its_way(pilot(1, leaving=True), NOW, HORIZON)
    assert on_its_way(pilot(1, leaving=True, lease_end=NOW + HORIZON), NOW, HORIZON)
    assert not on_its_way(pilot(1, leaving=True, lease_end=NOW + HORIZON + 1), NOW, HORIZON)


def test_surplus_that_is_on_its_way_is_not_taken_again() -> None:
    """alice is over by 16 and 16 are leaving: bob's further demand is nobody's debt any more."""
    pilots = [pilot(1, deadline=NOW + 5), pilot(2, leaving=True), pilot(3)]
    assert balance(snapshot(*pilots, deficit=64, surplus=16)).deficit == 0


def test_the_worst_priority_gives_back_first() -> None:
    """Accounts, and users within an account; a larger number is a worse priority."""
    pilots = (
        pilot(1, user="ann", account="mild"),
        pilot(2, user="bea", account="bad"),
        pilot(3, user="zoe", account="bad"),
        pilot(4, user="cleo", account="bad"),
    )
    accounts = (
        account("mild", 8, 0, priority=500),
        account("bad", 24, 0, priority=900),
        account("b", 0, 24, wanted=24),
    )
    seen = Snapshot(NOW, pilots, accounts, 0.0, {"ann": 500, "bea": 700, "cleo": 600, "zoe": 800})
    assert [(one.account, one.users) for one in with_turns(balance(seen), seen, History(), NOW).over] == [
        ("bad", ("zoe", "bea", "cleo")),
        ("mild", ("ann",)),
    ]


def test_a_user_of_whom_no_priority_is_known_has_the_best() -> None:
    pilots = pilot(1, user="ann", account="a"), pilot(2, user="bea", account="a")
    seen = Snapshot(NOW, pilots, (account("a", 16, 0), account("b", 0, 16, wanted=16)), 0.0, {"ann": 0.5})
    [over] = with_turns(balance(seen), seen, History(), NOW).over
    assert over.users == ("ann", "bea")


@given(st.lists(st.tuples(reports(), reports()), min_size=1, max_size=8), st.integers(0, 12))
def test_no_claim_changes_what_is_owed(claims: list[tuple[PilotReport | None, PilotReport | None]], jobs: int) -> None:
    """The same pool, its pilots saying one thing or another: the same balance (HOSTILE 38, 40)."""
    judged("a believed report", believed(*(pilot(1, pair[0]) for pair in claims)) > 0, at_least=0.3)
    one, other = (
        balance(snapshot(*(pilot(n, pair[side]) for n, pair in enumerate(claims)), deficit=8 * jobs)) for side in (0, 1)
    )
    assert one == other


@pytest.mark.parametrize(
    "broken",
    [
        Snapshot(NOW, (pilot(1),), (account("other", 8, 0),)),
        Snapshot(NOW, (), (account("a", 1, 1), account("a", 2, 2))),
        Snapshot(NOW, (), (account("a", math.nan, 1),)),
        Snapshot(NOW, (), (account("a", 8, math.inf),)),
        Snapshot(NOW, (), (account("a", 8, -1),)),
        Snapshot(NOW, (), (account("a", 8, 1e300),)),
        Snapshot(NOW, (), (account("a", 8, 1, priority=-1),)),
        Snapshot(NOW, (), (account("a", 8, 1, priority=math.inf),)),
        Snapshot(NOW, (), (account("a", 8, 1, wanted=-1),)),
        Snapshot(NOW, (), (account("a", 8, 1, per_job=math.nan),)),
        Snapshot(NOW, (), (), free_cores=-1.0),
        Snapshot(NOW, (), (), free_cores=math.nan),
        snapshot(pilot(1, cores=2**31)),
        snapshot(pilot(1, cores=2**17 + 1)),
        snapshot(pilot(1), pilot(1)),
        snapshot(pilot(1, cores=0)),
        snapshot(dataclasses.replace(pilot(1), started=NOW + 3600)),
    ],
    ids=[
        "unknown account",
        "account twice",
        "nan",
        "inf",
        "negative",
        "huge",
        "negative priority",
        "endless priority",
        "negative demand",
        "job nan",
        "free negative",
        "free nan",
        "huge pilot",
        "large pilot",
        "run twice",
        "no cores",
        "future",
    ],
)
def test_half_an_answer_decides_nothing(broken: Snapshot) -> None:
    """HOSTILE 54: what cannot be a whole and true answer is refused, whoever wrote it."""
    with pytest.raises(PoolUnreachable, match="incomplete answer"):
        require_whole(broken)
    with pytest.raises(PoolUnreachable, match="incomplete answer"):
        make_plan(broken, NOW, SETTINGS)


def test_an_answer_may_be_odd_and_whole() -> None:
    """Clocks that differ a little, a run as large as any that cannot be ordered, an account that nothing is owed."""
    beyond = replace(pilot(1, cores=2**20), cannot="it is no pilot", started=NOW + CLOCKS_DIFFER)
    require_whole(Snapshot(NOW, (beyond,), (account(beyond.account, 0, 0, priority=0, wanted=0, per_job=0),)))
    require_whole(snapshot(pilot(1, cores=2**17)))


def test_an_empty_pool_owes_nothing() -> None:
    assert balance(Snapshot(NOW, (), ())).deficit == 0

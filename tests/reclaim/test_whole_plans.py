"""What is promised of the choice holds for whole plans on whole pools: several accounts, users, sizes and limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.decide.open_until import LAST_MOMENTS
from drainwise.reclaim.plan import Order, Plan, UserPlan
from drainwise.reclaim.prices import POLICIES, prices_of
from drainwise.reclaim.settings import OPEN_NEED

from .facts import NOW, SETTINGS, account, but, pilot, reports

pytestmark = pytest.mark.daemons  # hundreds of whole plans take their time

WHOSE = {"alice": "group_a", "anna": "group_a", "carol": "group_c"}

MIXED = (1, 2, 3, 4, 8, 12, 24)


def runs(sizes: Sequence[int]) -> st.SearchStrategy[tuple[str, int, int, PilotReport | None]]:
    """Whose run it is, its cores, its age, and what it says."""
    return st.tuples(st.sampled_from(sizes), st.integers(100, 90_000)).flatmap(
        lambda it: st.tuples(
            st.sampled_from(sorted(WHOSE)), st.just(it[0]), st.just(it[1]), reports(it[0], NOW - it[1])
        )
    )


@st.composite
def pools(draw: st.DrawFn, sizes: Sequence[int] = MIXED) -> Snapshot:
    """Two accounts over their quotas, with three users between them, and one that waits."""
    pilots: list[Pilot] = []
    for number, (user, cores, age, said) in enumerate(draw(st.lists(runs(sizes), min_size=1, max_size=14))):
        pilots.append(pilot(number, said, cores=cores, user=user, account=WHOSE[user], started=NOW - age))
    held = {group: sum(one.cores for one in pilots if one.account == group) for group in ("group_a", "group_c")}
    wanted = draw(st.integers(0, 120))
    accounts = (
        account("group_a", held["group_a"], draw(st.integers(0, held["group_a"])), priority=900.0),
        account("group_c", held["group_c"], draw(st.integers(0, held["group_c"])), priority=700.0),
        account("group_b", 0, wanted, wanted=wanted, per_job=1.0),
    )
    priorities = {"alice": 900.0, "anna": 800.0, "carol": 700.0, "bob": 500.0}
    return Snapshot(NOW, tuple(pilots), accounts, float(draw(st.integers(0, 8))), priorities)


limits = st.fixed_dictionaries(
    {
        "drain_only": st.booleans(),
        "notice": st.sampled_from((0, 120)),
        "max_cores": st.sampled_from((20, 10_000)),
        "max_cores_per_user": st.sampled_from((12, 10_000)),
    }
)


def cores_by_user(plan: Plan) -> dict[tuple[str, str], int]:
    return {(part.account, part.user): part.cores_given for part in plan.users}


def expected(orders: Sequence[Order]) -> float:
    """What these orders should waste; who leaves by the paper's rule, but without the margin, counts as cut."""
    ways = [({way.kind: way.waste for way in one.candidate.options}, one) for one in orders]
    return sum(known.get(one.kind, one.candidate.drained.waste) for known, one in ways)


def preferred_like_others(one: Pilot) -> Pilot:
    """Return a pilot without PRIORITY_FACTOR, which is worth up to ten minutes a core to the choice and is no waste."""
    report = None if one.report is None else but(one.report, priority_factor=None)
    return dataclasses.replace(one, report=report)


def least_by_solver(part: UserPlan) -> float:
    """The least price of any of a user's pilots that may be asked and make the cores that the plan takes from it."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    price = prices_of(part.open.figures, SETTINGS)
    found = milp(
        price,
        constraints=LinearConstraint(part.open.sizes[None, :], part.cores_given, part.cores_given),
        integrality=np.ones(len(price)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert found.success
    return float(found.fun)


@given(seen=pools(), site=limits)
def test_every_policy_takes_the_same_cores_of_everybody_and_none_wastes_less(
    seen: Snapshot, site: dict[str, int]
) -> None:
    """The waste of least-waste is at most every other policy's on the same snapshot, user by user and in all.

    Where reports cost no core, and users prefer none of their pilots.
    """
    seen = dataclasses.replace(seen, pilots=tuple(preferred_like_others(one) for one in seen.pilots))
    bounds = dataclasses.replace(SETTINGS, min_age=0, extra_cores=0, **site)  # type: ignore[arg-type]
    plans = {name: make_plan(seen, NOW, dataclasses.replace(bounds, policy=name)) for name in POLICIES}
    least, waiting = plans["least-waste"], cores_by_user(plans.pop(OPEN_NEED))
    assert all(cores <= cores_by_user(least)[user] for user, cores in waiting.items()), "a dear kill may wait"
    for name, plan in plans.items():
        assert cores_by_user(plan) == cores_by_user(least), name
        for theirs, ours in zip(plan.users, least.users):
            assert expected(theirs.orders) >= expected(ours.orders), name


@given(seen=pools(), drain_only=st.booleans())
def test_a_plan_costs_what_an_integer_solver_finds(seen: Snapshot, drain_only: bool) -> None:
    plan = make_plan(seen, NOW, dataclasses.replace(SETTINGS, min_age=0, drain_only=drain_only))
    for part in plan.users:
        if part.orders:
            price = dict(zip((one.run for one in part.open.pilots), prices_of(part.open.figures, SETTINGS).tolist()))
            given = sum(price[order.pilot.run] for order in part.orders)
            assert given == pytest.approx(least_by_solver(part), abs=1e-3)


@given(seen=pools(sizes=(1,)))
def test_every_policy_frees_the_whole_deficit_where_sizes_do_not_forbid_it(seen: Snapshot) -> None:
    """With pilots of one core each there is always a set that does, and nobody loses what is its own.

    A need that stays open takes all that is missing in its last moments.
    """
    for name in POLICIES:
        bounds = dataclasses.replace(SETTINGS, min_age=0, policy=name)
        plan = make_plan(
            seen, NOW, dataclasses.replace(bounds, horizon=int(LAST_MOMENTS)) if name == OPEN_NEED else bounds
        )
        assert sum(order.pilot.cores for order in plan.orders) == plan.balance.deficit, name
        for over in plan.balance.over:
            assert sum(part.cores_given for part in plan.users if part.account == over.account) <= over.cores

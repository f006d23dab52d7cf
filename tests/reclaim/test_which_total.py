"""How many cores go is a matter of facts, but for what a user's own reports may cost it: its extra cores.

With none a pilot larger than the need stays whatever it claims.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.quota import WhatIf

from .facts import NOW, SETTINGS, account, pilot, report

HOUR = 3600
NO_EXTRA = replace(SETTINGS, extra_cores=0)
IDLE = report(0.0, first_end=NOW, last_end=NOW, start=NOW - 60, final=0.0)
BUSY = report(8.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 2 * HOUR)
FULL = report(128.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 2 * HOUR)


def pool(large: PilotReport | None, small: PilotReport | None, owed: float = 0.0, wanted: float = 120.0) -> Snapshot:
    """alice runs a pilot of 128 cores and 15 of 8; bob, who has none, waits for `wanted`."""
    pilots = (pilot(0, large, cores=128), *(pilot(number, small) for number in range(1, 16)))
    accounts = (account("group_a", 248, owed, priority=900.0), account("group_b", 0, 248 - owed, wanted, 1.0, 8.0))
    return Snapshot(NOW, pilots, accounts, 0.0, {"alice": 900.0})


def cores_of(plan: Plan) -> list[int]:
    return [order.pilot.cores for order in plan.orders]


def test_an_idle_pilot_of_128_goes_in_place_of_120_busy_cores() -> None:
    """By what its own user says: 8 cores more than facts take, which its order tells."""
    plan = make_plan(pool(IDLE, BUSY), NOW, SETTINGS)
    [order] = plan.orders
    assert (order.pilot.cores, order.extra, order.waste) == (128, 8, 0)
    assert cores_of(make_plan(pool(FULL, IDLE), NOW, SETTINGS)) == [8] * 15


def test_without_extra_cores_120_are_120_though_one_idle_pilot_of_128_would_waste_nothing() -> None:
    """What the idle one says may not decide: said by nobody, or by a busy one, it would be another number of cores."""
    for site in (NO_EXTRA, replace(SETTINGS, extra_cores=7), replace(SETTINGS, max_cores_per_user=127)):
        plan = make_plan(pool(IDLE, BUSY), NOW, site)
        assert cores_of(plan) == [8] * 15
        assert plan.waste > 200 * HOUR
    assert cores_of(make_plan(pool(IDLE, BUSY, 128.0), NOW, SETTINGS)) == [8] * 15, "only 120 are beyond the quota"


def test_a_request_for_its_cores_takes_the_idle_one() -> None:
    plan = make_plan(pool(IDLE, BUSY), NOW, SETTINGS, what_if=WhatIf(128, "alice"))
    assert cores_of(plan) == [128]
    assert plan.waste == 0


def test_of_13_cores_beyond_the_quota_one_pilot_of_8_goes() -> None:
    """A second one would leave the account 3 cores below what it is owed."""
    pilots = tuple(pilot(number, IDLE) for number in range(6))
    accounts = (account("group_a", 48, 35, priority=900.0), account("group_b", 0, 13, 13, 1.0))
    assert cores_of(make_plan(Snapshot(NOW, pilots, accounts, 0.0, {"alice": 900.0}), NOW, SETTINGS)) == [8]


said = st.sampled_from(
    (IDLE, BUSY, FULL, None, report(3.0), report(0.0, first_end=NOW, last_end=NOW, can_postpone=False))
)


@given(said, said, st.sampled_from((0.0, 100.0, 128.0)), st.integers(1, 248), st.sampled_from((0, 20, None)))
def test_claims_cost_their_user_no_more_than_its_extra_cores(
    large: PilotReport | None, small: PilotReport | None, owed: float, wanted: int, extra: int | None
) -> None:
    """Without any they change no number of cores; else no fewer go than by facts, and no more than are beyond quota."""
    site = replace(SETTINGS, extra_cores=extra)
    said, facts = (
        sum(cores_of(make_plan(pool(*one, owed, float(wanted)), NOW, site))) for one in ((large, small), (None, None))
    )
    assert facts <= said <= min(248 - owed, facts + (128 if extra is None else extra))

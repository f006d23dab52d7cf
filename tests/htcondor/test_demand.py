"""What waits and could start if cores were free: what an access point says, less what its ads show to be held up."""

from __future__ import annotations

import pytest

from drainwise.htcondor.demand.demand import Demand, DemandLimits, demand_of
from drainwise.htcondor.pool.shares import Accountant, AccountingRecord

BOB = "bob@pool.test"


def waits(jobs: object, weight: object, name: str = BOB, **more: object) -> dict[str, object]:
    return {"Name": name, "ScheddName": "ce1", "IdleJobs": jobs, "WeightedIdleJobs": weight, "RunningJobs": 0, **more}


def schedd(most: object, running: object) -> dict[str, object]:
    return {"Name": "ce1", "MaxJobsRunning": most, "ShadowsRunning": running}


def asked(
    *ads: dict[str, object],
    schedds: tuple[dict[str, object], ...] = (),
    account: tuple[AccountingRecord, ...] = (),
    largest: int | None = 24,
) -> Demand:
    return demand_of(ads, schedds, DemandLimits({}, 1.0, largest, Accountant(account).rooms()))


def test_what_waits_is_jobs_and_cores() -> None:
    assert asked(waits(3, 24)) == Demand({BOB: (3, 24)}, ())


def test_jobs_larger_than_every_slot_are_no_demand() -> None:
    """Three jobs of 64 cores, seen on 23.9.6 and 25.14.1 as IdleJobs 3, WeightedIdleJobs 192."""
    found = asked(waits(3, 192), waits(2, 16, name="alice@pool.test"))
    assert found.waiting == {"alice@pool.test": (2, 16)}
    [notice] = found.notices
    assert notice == (
        "of what bob@pool.test waits for not all is counted: its jobs ask for 64 cores on average,"
        " and the largest slot has 24"
    )
    assert asked(waits(3, 192), largest=None).waiting == {BOB: (3, 192)}


@pytest.mark.parametrize(("running", "counted"), [(6, 0.0), (9, 0.0), (4, 2.0), (3, 3.0), (0, 3.0)])
def test_a_schedd_that_may_run_no_more_jobs_wants_no_cores(running: int, counted: float) -> None:
    """MAX_JOBS_RUNNING = 6 and three jobs of 8 cores that wait there."""
    found = asked(waits(3, 24), schedds=(schedd(6, running),))
    assert found.waiting == {BOB: (counted, counted * 8)}
    assert bool(found.notices) == (counted < 3)


@pytest.mark.parametrize("odd", [schedd(None, 6), schedd("6", 7), schedd(-1, 7), {"Name": "ce2", "MaxJobsRunning": 0}])
def test_a_schedd_that_does_not_say_its_limit_has_none(odd: dict[str, object]) -> None:
    assert asked(waits(3, 24), schedds=(odd,)) == Demand({BOB: (3, 24)}, ())


@pytest.mark.parametrize(("used", "cores"), [(6, 0), (16, 0), (0, 2), (1, 1)])
def test_a_submitter_at_its_ceiling_wants_no_cores(used: float, cores: float) -> None:
    """condor_userprio -setceil; the accountant's ad shows it as `Ceiling`."""
    account = AccountingRecord(BOB, False, 0.0, 500.0, 1000.0, used, used, ceiling=2)
    found = asked(waits(10, 10), account=(account,))
    assert found.waiting == {BOB: (cores, cores)}
    assert "ceiling" in found.notices[0]


def test_jobs_of_the_parallel_universe_are_named() -> None:
    """Their submitter ad says 0 while they wait: nobody can say that nobody waits."""
    [notice] = asked(waits(0, 0, name="DedicatedScheduler@ce1")).notices
    assert "parallel universe" in notice


@pytest.mark.parametrize("value", [1e308, float("inf"), float("nan"), -1, "3", True, 2**63, []])
@pytest.mark.parametrize("name", ["IdleJobs", "WeightedIdleJobs", "RunningJobs"])
def test_an_odd_submitter_is_left_out_and_named(name: str, value: object) -> None:
    found = asked({**waits(3, 24), name: value}, waits(1, 1, name="carol"))
    assert found.waiting == {"carol": (1, 1)}
    assert f"says {name} = " in found.notices[0]
    assert found.notices[0].isprintable()


def test_less_than_one_job_is_none() -> None:
    """IdleJobs = 5e-324: a division by it would be infinite."""
    assert asked(waits(5e-324, 24)).waiting == {}


def test_many_submitters_are_one_sentence() -> None:
    ads = [waits(1, 64, name=f"user{number:03}") for number in range(500)]
    [notice] = asked(*ads).notices
    assert "user000, user001, user002 and 497 more wait" in notice

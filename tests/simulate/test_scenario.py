"""Inputs of a simulation: jobs that fit, sizes as asked for, moments; what each outcome means."""

from __future__ import annotations

from drainwise_simulate.demand_burst import CUT_SHORT, TOO_LONG, TOO_WIDE, fitting, moments
from drainwise_simulate.outcome import CoreSeconds, Outcome
from drainwise_simulate.scenario import Scenario

from .made_up import job
from .small import wait_for


def test_the_mix_shares_the_cores() -> None:
    """Half of 128 cores in pilots of 8, half in pilots of 32: the smallest first, and one at least of each size."""
    assert Scenario(cores=128, mix=((32, 0.5), (8, 0.5))).pilots == (8,) * 8 + (32, 32)
    assert Scenario(cores=8, mix=((64, 1.0),)).pilots == (64,)


def test_jobs_that_cannot_run_are_counted_by_their_reason() -> None:
    """Too wide, too long, and those that ran for longer than they had asked, which end at their limit."""
    jobs = [job(1, 0, 10, 9), job(2, 0, 10, 1, 10_000.0), job(3, 0, 90, 1, 60.0), job(4, 0, 10)]
    able, odd = fitting(jobs, Scenario(cores=8, lease=5000.0))
    assert odd == {TOO_WIDE: 1, TOO_LONG: 1, CUT_SHORT: 1}
    assert [(one.number, one.run) for one in able] == [(3, 60.0), (4, 10)]


def test_bursts_come_after_the_quiet_time_in_their_order() -> None:
    """One in each equal part of the rest, others in another replication, the same again for the same seed."""
    jobs, scenario = [job(1, 0, 1), job(2, 10_000, 1)], Scenario(quiet=0.5, moments=5)
    found = moments(jobs, scenario, 0)
    assert all(5000 + 1000 * place <= moment <= 6000 + 1000 * place for place, moment in enumerate(found))
    assert found == moments(jobs, scenario, 0) != moments(jobs, scenario, 1)
    assert moments([], scenario, 0) == []


def outcome(waits: tuple[tuple[float, int], ...]) -> Outcome:
    """32 of 128 cores, at a waste of two core-hours for each."""
    account = CoreSeconds(useful=1.0, killed=2.0, draining=3.0, idle=4.0, total=10.5)
    return Outcome("p", 0, 0, 1, 5.0, 128, 32, 32, 4, 2, 150_000.0, 80_400.0, 9.0, 3, waits, account)


def test_waits_are_for_a_share_of_the_cores() -> None:
    """Half of the cores are there when the second pilot is gone, all when the last one is."""
    one = outcome(((0.0, 8), (60.0, 8), (900.0, 16)))
    assert [wait_for(one, share) for share in (0.0, 0.25, 0.5, 0.51, 1.0)] == [0.0, 0.0, 60.0, 900.0, 900.0]
    assert wait_for(outcome(((5.0, 8),)), 1.0) == float("inf")


def test_waste_is_what_was_killed_and_what_idled() -> None:
    """In core-seconds."""
    one = outcome(())
    assert one.waste == 230_400.0

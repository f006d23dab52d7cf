"""Inputs of a simulation: what is odd is refused in words, and sizes are as asked for."""

from __future__ import annotations

from typing import Any

import pytest

from drainwise.facts.errors import UsageError
from drainwise.simulate.demand_burst import CUT_SHORT, TOO_LONG, TOO_WIDE, fitting, moments
from drainwise.simulate.outcome import CoreSeconds, Outcome
from drainwise.simulate.scenario import Scenario

from .made_up import job


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"estimates": "hope"}, "estimates = 'hope': expected one of requests, scouts, exact"),
        ({"while_draining": "x"}, "while_draining"),
        ({"cores": 0}, "cores = 0"),
        ({"moments": 0}, "moments = 0"),
        ({"reclaimed": 1.5}, "reclaimed = 1.5: expected a share"),
        ({"reclaimed": 0.0}, "reclaimed = 0.0"),
        ({"liars": -0.1}, "liars = -0.1"),
        ({"error": float("nan")}, "error = nan"),
        ({"lease": 0.0}, "lease = 0.0"),
        ({"mix": ()}, "mix"),
        ({"shrinking": 2.0}, "shrinking = 2.0"),
        ({"chunk": 0}, "chunk = 0"),
        ({"mix": ((0, 1.0),)}, "mix"),
        ({"period": 0.5}, "period = 0.5"),
    ],
)
def test_what_is_odd_is_named(wrong: dict[str, Any], said: str) -> None:
    """The error names field and value."""
    with pytest.raises(UsageError, match=said):
        Scenario(**wrong)


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
    assert [one.wait_for(share) for share in (0.0, 0.25, 0.5, 0.51, 1.0)] == [0.0, 0.0, 60.0, 900.0, 900.0]
    assert outcome(((5.0, 8),)).wait_for(1.0) == float("inf")


def test_waste_is_what_was_killed_and_what_idled() -> None:
    """In core-seconds."""
    one = outcome(())
    assert one.waste == 230_400.0

"""The metrics are right as numbers, as arrays and as the ClassAd expressions that every reader evaluates."""

from __future__ import annotations

import random
from collections.abc import Mapping

import classad2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts import waste

CORES, NOW = 8, 1795249000
RUN = "central.pool.test#1.0#1795149000"
EXAMPLE = {
    "PilotHeartbeat": NOW,
    "PilotUsedCpu": 6.0,
    "PilotLastJobStart": 1795247961,
    "PilotFirstExpJobEnd": 1795256000,
    "PilotLastExpJobEnd": 1795262000,
    "PilotLastMaxJobEnd": 1795290000,
    "PilotAddUncomTime": 28800.0,
    "PilotAddFinalExpWaste": 60000.0,
}
times = st.integers(1_700_000_000, 1_900_000_000)
cores = st.integers(1, 128)
amounts = st.integers(-(10**9), 10**9)


def test_worked_example() -> None:
    """The specification's worked example: remaining 13000 (max 41000), draining 74000 and kill 35034 core-seconds."""
    assert waste.remaining(1795262000, NOW) == 13000
    assert waste.remaining(1795290000, NOW) == 41000
    assert waste.draining_waste(CORES, 6, 1795256000, 60000, NOW) == 74000
    assert waste.kill_waste(28800, 6, 1795247961, NOW) == 35034


@given(cores, amounts, times, times, times, amounts)
def test_kill_waste_is_bounded_by_the_batch_system(
    allocated: int, used: int, last_start: int, job_start: int, now: int, uncommitted: int
) -> None:
    """Whatever a pilot says, its kill waste lies between nothing and all cores busy since its start."""
    found = waste.bounded_kill_waste(allocated, uncommitted, used, last_start, job_start, now)
    assert 0 <= found <= max(0, allocated * (now - job_start))


@given(cores, amounts, times, times, times, amounts)
def test_draining_waste_is_bounded_by_the_lease(
    allocated: int, used: int, first_end: int, lease_end: int, now: int, final: int
) -> None:
    """Whatever a pilot says, its draining waste lies between nothing and all cores idle to the end of the lease."""
    found = waste.bounded_draining_waste(allocated, used, first_end, final, now, lease_end)
    assert 0 <= found <= max(0, allocated * (lease_end - now))


@given(cores, st.integers(0, 128), times, st.integers(0, 10**9), times)
def test_an_overrun_counts_as_ending_now(allocated: int, used: int, first_end: int, final: int, now: int) -> None:
    """A first expected end in the past adds no idle time and takes none away."""
    found = waste.bounded_draining_waste(allocated, min(used, allocated), min(first_end, now), final, now)
    assert found == final


def test_arrays_give_what_numbers_give() -> None:
    """A thousand pilots at once have the same metrics as one by one."""
    dice = np.random.default_rng(7)
    allocated = dice.integers(1, 65, 1000)
    used, final = dice.integers(-10, 80, 1000), dice.integers(-(10**6), 10**6, 1000)
    ends, starts, leases = (NOW + dice.integers(-90_000, 90_000, 1000) for _ in range(3))
    draining = waste.bounded_draining_waste(allocated, used, ends, final, NOW, leases)
    killing = waste.bounded_kill_waste(allocated, final, used, ends, starts, NOW)
    leaving = waste.bounded_remaining(ends, NOW, leases)
    for at in range(1000):
        one = [int(column[at]) for column in (allocated, used, ends, final, leases, starts)]
        assert draining[at] == waste.bounded_draining_waste(one[0], one[1], one[2], one[3], NOW, one[4])
        assert killing[at] == waste.bounded_kill_waste(one[0], one[3], one[1], one[2], one[5], NOW)
        assert leaving[at] == waste.bounded_remaining(one[2], NOW, one[4])


def evaluate(attributes: Mapping[str, object], now: int = NOW) -> dict[str, object]:
    """The live expressions over a slot's ad by the real ClassAd library, with its clock set to `now`."""
    run = {"GlobalJobId": RUN, "PilotReportedBy": f"{RUN}@{attributes['JobStart']}", **attributes}
    ad = classad2.ClassAd({name: value for name, value in run.items() if value is not None})
    for name, text in waste.classad_expressions(3600).items():
        ad[name] = classad2.ExprTree(text.replace("time()", str(now)))
    return {name: ad.eval(name) for name in waste.classad_expressions(3600)}


def test_expressions_of_the_worked_example() -> None:
    """The published expressions give the worked example's figures."""
    slot = {**EXAMPLE, "Cpus": CORES, "JobStart": NOW - 100_000}
    assert evaluate(slot) == {
        "PilotRemaining": 13000,
        "PilotRemainingMax": 41000,
        "PilotDrainingWaste": 74000.0,
        "PilotKillWaste": 35034.0,
    }


@pytest.mark.parametrize(
    "more",
    [{"PilotReportedBy": None}, {"GlobalJobId": "s#1.0#90"}, {"JobStart": NOW - 50}, {"GlobalJobId": None}],
    ids=["no run is named", "of another job", "of an earlier start", "between jobs"],
)
def test_expressions_believe_no_report_of_another_run(more: Mapping[str, object]) -> None:
    """Whatever it states, and however fresh it is."""
    start = NOW - 100_000
    found = evaluate({**EXAMPLE, "Cpus": CORES, "JobStart": start, "PilotReportedBy": f"{RUN}@{start}", **more})
    started = more.get("JobStart", start)
    assert isinstance(started, int)
    assert found.pop("PilotKillWaste") == CORES * (NOW - started)
    assert set(found.values()) == {classad2.Value.Undefined}


def test_expressions_equal_the_functions_on_random_ads() -> None:
    """On 1,000 random ads, sound and absurd, the real ClassAd library finds the numbers of the Python functions."""
    dice = random.Random(20261121)
    for _ in range(1000):
        near = [NOW + dice.randint(-200_000, 200_000) for _ in range(5)]
        allocated, used = dice.randint(1, 64), dice.choice([dice.uniform(-2, 70), float(dice.randint(0, 64))])
        uncommitted, final = dice.uniform(-1e6, 1e7), dice.uniform(-1e6, 1e7)
        lease = near[4] if dice.random() < 0.7 else None
        found = evaluate(
            {
                "Cpus": allocated,
                "JobStart": near[0],
                "PilotLeaseEnd": lease,
                "PilotHeartbeat": NOW - dice.randint(-10, 3600),
                "PilotUsedCpu": used,
                "PilotLastJobStart": near[1],
                "PilotFirstExpJobEnd": near[2],
                "PilotLastExpJobEnd": near[3],
                "PilotLastMaxJobEnd": near[2],
                "PilotAddUncomTime": uncommitted,
                "PilotAddFinalExpWaste": final,
            }
        )
        assert found["PilotRemaining"] == waste.bounded_remaining(near[3], NOW, lease)
        assert found["PilotRemainingMax"] == waste.bounded_remaining(near[2], NOW, lease)
        assert found["PilotDrainingWaste"] == pytest.approx(
            waste.bounded_draining_waste(allocated, used, near[2], final, NOW, lease), abs=1e-3
        )
        assert found["PilotKillWaste"] == pytest.approx(
            waste.bounded_kill_waste(allocated, uncommitted, used, near[1], near[0], NOW), abs=1e-3
        )


@pytest.mark.parametrize("unknown", ["PilotUsedCpu", "PilotLastJobStart", "PilotAddUncomTime"])
def test_unknown_is_not_zero_for_the_kill_waste(unknown: str) -> None:
    """A missing part of the kill waste gives the batch system's own figure, never a cheaper pilot."""
    slot = {**EXAMPLE, "Cpus": CORES, "JobStart": NOW - 100_000, unknown: None}
    assert evaluate(slot)["PilotKillWaste"] == CORES * 100_000


@pytest.mark.parametrize("unknown", ["PilotUsedCpu", "PilotFirstExpJobEnd", "PilotAddFinalExpWaste"])
def test_unknown_is_not_zero_for_the_draining_waste(unknown: str) -> None:
    """A missing part of the draining waste makes it undefined."""
    slot = {**EXAMPLE, "Cpus": CORES, "JobStart": NOW - 100_000, unknown: None}
    assert evaluate(slot)["PilotDrainingWaste"] == classad2.Value.Undefined


@pytest.mark.parametrize("heartbeat", [None, NOW - 3601])
def test_a_stale_report_loses_its_protection(heartbeat: int | None) -> None:
    """Without a fresh heartbeat only the batch system's own figure remains."""
    slot = {**EXAMPLE, "Cpus": CORES, "JobStart": NOW - 500, "PilotHeartbeat": heartbeat}
    undefined = classad2.Value.Undefined
    assert evaluate(slot) == {
        "PilotRemaining": undefined,
        "PilotRemainingMax": undefined,
        "PilotDrainingWaste": undefined,
        "PilotKillWaste": CORES * 500,
    }

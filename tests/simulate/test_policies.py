"""What batch systems do that the agent does not, and what pilots believe."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.plan import Need
from drainwise_simulate.policies.choosers import BASELINES
from drainwise_simulate.policies.named import POLICIES, require_known
from drainwise_simulate.scenario import EXACT, REQUESTS, SCOUTS, Scenario, site_settings
from drainwise_simulate.sim_pilot import SimPilot
from drainwise_simulate.workload import SimulatedEstimates, payloads_of

from .made_up import job

NOW = 1_000_000


def among(*pilots: tuple[int, int, int]) -> Candidates:
    """Pilots of (cores, age, lease left in s) that report nothing."""
    found = [
        Pilot(str(row), str(row), "node", "a", "a", cores, NOW - age, NOW + left)
        for row, (cores, age, left) in enumerate(pilots)
    ]
    return candidates_of(found, NOW, site_settings(horizon=7200))


def test_htcondors_badput_is_the_whole_run_and_the_time_given() -> None:
    """Of pilots that are as large the youngest goes first; a small old one before a large young one."""
    some = among((8, 5000, 90_000), (8, 100, 90_000), (1, 9000, 90_000), (8, 9000, 90_000))
    chosen = BASELINES["condor-graceful"].choose(some, Need(9, 9))
    assert [one.candidate.pilot.run for one in chosen] == ["2", "1"]
    assert [one.option.waste for one in chosen] == [9000 + 7200, 8 * (100 + 7200)]


@pytest.mark.parametrize("name", ["condor-graceful", "youngest-drained", "drain-all"])
def test_baselines_drain_until_the_horizon_or_the_end_of_the_lease(name: str) -> None:
    """Nobody is ended before, and the total is the same for all."""
    some = among((8, 5000, 90_000), (8, 100, 600), (8, 700, 90_000))
    chosen = BASELINES[name].choose(some, Need(24, 24))
    assert {one.candidate.pilot.run: one.option.deadline - NOW for one in chosen} == {"0": 7200, "1": 600, "2": 7200}


def test_drained_by_age_takes_the_youngest() -> None:
    """Whatever their size."""
    some = among((8, 5000, 90_000), (8, 100, 90_000))
    assert BASELINES["youngest-drained"].choose(some, Need(8, 8))[0].candidate.pilot.run == "1"


def chosen_by(name: str, some: list[Pilot], cores: int, now: int = NOW) -> list[str]:
    """The runs of the pilots that are chosen, in their order."""
    chosen = BASELINES[name].choose(candidates_of(some, now, site_settings(horizon=7200)), Need(cores, cores))
    assert {one.option.kind for one in chosen} == {"kill"}
    return [one.candidate.pilot.run for one in chosen]


def test_those_that_kill_by_age_and_by_payload() -> None:
    """oldest-first knows nothing but run times, nebraska nothing but the youngest payload that is believed."""
    ages = {"told": NOW - 5000, "silent": NOW - 9000, "stale": NOW - 3000, "old": NOW - 20_000}
    said = {
        "told": report_of(NOW - 60, NOW - 4000),
        "silent": None,
        "stale": report_of(NOW - 4000, NOW - 2900),
        "old": report_of(NOW - 60, NOW - 12_000),
    }
    some = [Pilot(name, name, "node", "a", "a", 8, ages[name], None, said[name]) for name in ages]
    assert chosen_by("oldest-first", some, 32) == ["old", "silent", "told", "stale"]
    assert chosen_by("nebraska", some, 32) == ["stale", "told", "silent", "old"]


def test_the_lot_falls_the_same_way_whenever_the_same_snapshot_is_looked_at() -> None:
    some = [Pilot(str(row), str(row), "node", "a", "a", 8, NOW - 500, None) for row in range(12)]
    assert chosen_by("random", some, 48) == chosen_by("random", some, 48)
    assert len({chosen_by("random", some, 8, NOW + second)[0] for second in range(20)}) > 1


def report_of(heartbeat: int, start: int) -> PilotReport:
    """Of a pilot whose payload began then."""
    return PilotReport(
        heartbeat,
        used_cpu=8.0,
        last_job_start=start,
        first_exp_job_end=NOW + 1000,
        last_exp_job_end=NOW + 1000,
        add_uncom_time=0.0,
        add_final_exp_waste=0.0,
    )


def test_policies_are_known_by_name() -> None:
    """All names of the comparison, and no other."""
    for name in POLICIES:
        require_known(name)
    with pytest.raises(UsageError, match="there are least-waste"):
        require_known("youngest")


def test_what_payloads_say_follows_the_estimates() -> None:
    """The request, or the truth; off by a factor of its own for each payload, and never beyond the request."""
    jobs = [job(number, 0, 100, 1, 1000.0) for number in range(50)]
    for estimates, expected in ((REQUESTS, 1000.0), (SCOUTS, 1000.0), (EXACT, 100.0)):
        payloads, factors = payloads_of(jobs, Scenario(estimates=estimates), 0)
        assert {(one.expected, one.maximum) for one in payloads} == {(expected, 1000.0)}
        assert set(factors) == {1.0}
    payloads, factors = payloads_of(jobs, Scenario(estimates=EXACT, error=1.0), 0)
    assert len({one.expected for one in payloads}) > 25
    assert max(one.expected for one in payloads) <= 1000.0
    assert payloads_of(jobs, Scenario(estimates=EXACT, error=1.0), 0) == (payloads, factors)
    assert payloads_of(jobs, Scenario(estimates=EXACT, error=1.0), 1)[1] != factors


def test_scouts_learn_from_what_ended_and_from_what_runs() -> None:
    """Nothing at first; then its like, and later when many of these run on."""
    jobs = [job(number, 0, 100, 1, 100_000.0) for number in range(20)]
    scouts = SimulatedEstimates(jobs, [1.0] * 20)
    assert scouts.run_time("0", 1, 0.0, 0.0) is None
    for turn in range(9):
        scouts.learn(turn, 100.0)
    early = scouts.run_time("15", 1, 0.0, 0.0)
    own = scouts.copy()
    own.watch((turn, 5000.0) for turn in range(9, 20))
    late = own.run_time("15", 1, 0.0, 0.0)
    assert early is not None
    assert late is not None
    assert early < 130
    assert late > 5000
    assert scouts.run_time("15", 1, 0.0, 0.0) == early


def test_liars_claim_all_and_silent_pilots_nothing() -> None:
    """A liar's claims are within what its lease allows, so that nobody can tell them from the truth."""
    lease, settings = Lease(8, 1000.0, 9000.0), PilotSettings(margin=0.0)
    liar, silent = SimPilot(0, 0, lease, liar=True), SimPilot(1, 0, lease, silent=True)
    said = liar.report(None, settings, 2000.0)
    assert silent.report(None, settings, 2000.0) is None
    assert said is not None
    assert (said.used_cpu, said.first_exp_job_end, said.last_exp_job_end) == (8.0, 9000, 9000)
    assert said.add_uncom_time == 8 * 1000.0

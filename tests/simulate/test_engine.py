"""A comparison: one state for all policies, the same outcome for the same seed, and figures that are the formulas'."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given

from drainwise.facts.errors import UsageError
from drainwise.facts.waste import draining_waste, kill_waste, remaining
from drainwise.reclaim.prices import BY_WASTE
from drainwise.reclaim.prices import POLICIES as AGENT
from drainwise_simulate.demand_burst import Burst, decide, fitting, moments, snapshot_of, truth_of
from drainwise_simulate.engine import begin, run_all
from drainwise_simulate.outcome import Outcome
from drainwise_simulate.policies.clairvoyant import waste_when_ended
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE
from drainwise_simulate.policies.named import ONE_SHOT, POLICIES
from drainwise_simulate.scenario import EXACT, REQUESTS, SCOUTS, Scenario, site_settings
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import job, scenarios, traces
from .small import unexplained, wait_for


@pytest.mark.daemons
@given(jobs=traces(), scenario=scenarios)
def test_every_core_second_is_accounted_for(jobs: list[TraceJob], scenario: Scenario) -> None:
    """Under every policy: total = useful + killed + draining + idle, and the decision's part is within it."""
    assume(fitting(jobs, scenario)[0])
    for one in run_all(jobs, scenario):
        assert abs(unexplained(one.core_seconds)) <= 1e-6 * max(1.0, one.core_seconds.total)
        assert 0 <= one.killed <= one.core_seconds.killed + 1e-6
        assert 0 <= one.drained <= one.core_seconds.draining + 1e-6
        assert one.given <= one.asked <= one.held
        assert sum(cores for _, cores in one.waits) == one.given or one.policy == "kueue"
        assert one.restarted or not one.killed, "what is destroyed starts again"


def exactly(scenario: Scenario) -> Scenario:
    """The scenario with nothing in the way of the truth."""
    return replace(scenario, estimates=EXACT, error=0.0, stuck=0.0, liars=0.0, silent=0.0)


@given(jobs=traces(), scenario=scenarios)
def test_the_formulas_are_what_happens_when_estimates_are_exact(jobs: list[TraceJob], scenario: Scenario) -> None:
    """At every decision, for every pilot: the three metrics of its report are what the engine would realise."""
    scenario = exactly(scenario)
    able = fitting(jobs, scenario)[0]
    site = begin(able, scenario)
    for moment in moments(able, scenario, 0):
        site.advance(BEGIN + moment)
        snapshot, truth = snapshot_of(site, Burst(0, 0, moment, scenario)), truth_of(site)
        now = snapshot.taken
        for pilot in snapshot.pilots:
            said, payloads = pilot.report, truth[pilot.run]
            assert said is not None
            last = max((end for *_, end in payloads), default=now)
            drain = draining_waste(pilot.cores, said.used_cpu, said.first_exp_job_end, said.add_final_exp_waste, now)
            kill = kill_waste(said.add_uncom_time, said.used_cpu, said.last_job_start, now)
            assert drain == pytest.approx(waste_when_ended(pilot.cores, payloads, now, last), abs=1e-3)
            assert kill == pytest.approx(waste_when_ended(pilot.cores, payloads, now, now), abs=1e-3)
            assert remaining(said.last_exp_job_end, now) == max(last, now) - now


@given(jobs=traces(), scenario=scenarios)
def test_what_is_predicted_comes_true_when_estimates_are_exact(jobs: list[TraceJob], scenario: Scenario) -> None:
    """Of every plan that kills pilots or lets them leave; one that cuts between knows nine figures, not all ends.

    Times are whole seconds, and a pilot that saves when it is asked to is expected to be done a second before its end.
    """
    scenario = exactly(scenario)
    assume(fitting(jobs, scenario)[0])
    saves = scenario.checkpoints is not None and scenario.checkpoints.on_demand
    late = max(cores for cores, _ in scenario.mix) if saves else 0  # core-seconds of a pilot
    for one in run_all(jobs, scenario, [name for name in AGENT if name not in BY_WASTE]):
        assert one.predicted == pytest.approx(one.waste, abs=one.pilots * (1 + late) + 1e-3)


def busy_site(count: int = 250) -> list[TraceJob]:
    """More jobs than the site has cores for, of all ages."""
    return [
        job(
            number,
            60 * number,
            600 + 7919 * number % 9000,
            (1, 1, 2, 4)[number % 4],
            10_000.0 + 1000 * (number % 3),
            f"u{number % 3}",
        )
        for number in range(count)
    ]


BUSY = Scenario(cores=64, moments=3, lease=90_000.0)


@pytest.mark.daemons
def test_the_same_seed_has_the_same_outcome() -> None:
    """Outcomes depend on the arguments alone, and on the seed and the replication."""
    jobs, once = busy_site(), replace(BUSY, moments=1)
    first = run_all(jobs, once, POLICIES)
    assert first == run_all(jobs, once, POLICIES)
    alone = run_all(jobs, once, ("least-waste",))
    assert alone != run_all(jobs, once, ("least-waste",), replication=1)
    assert alone != run_all(jobs, replace(once, seed=2), ("least-waste",))


@pytest.fixture(scope="module")
def together() -> tuple[Outcome, ...]:
    """What becomes of the busy site under all policies."""
    return tuple(run_all(busy_site(), BUSY, POLICIES))


@pytest.mark.daemons
def test_a_policy_alone_fares_as_beside_others(together: tuple[Outcome, ...]) -> None:
    """Branches do not touch each other or the course of the trace."""
    jobs = busy_site()
    for policy in ("least-waste", "youngest-first", CLAIRVOYANT, "wait-then-kill"):
        assert run_all(jobs, BUSY, (policy,)) == tuple(one for one in together if one.policy == policy)


def test_all_policies_give_the_same_cores_from_the_same_state(together: tuple[Outcome, ...]) -> None:
    """They differ in which pilots go, not in how many cores."""
    assert len(together) == BUSY.moments * len(POLICIES)
    for number in range(BUSY.moments):
        of_burst = [one for one in together if one.burst == number]
        assert len({(one.moment, one.held, one.asked, one.given) for one in of_burst}) == 1
        assert of_burst[0].given > 0


def test_killing_is_at_once_and_draining_takes_its_time(together: tuple[Outcome, ...]) -> None:
    """Cores of a killed pilot are there at once; those of a drained one until the horizon at the latest."""
    for one in (one for one in together if one.policy in ONE_SHOT):
        assert wait_for(one, 1.0) <= 7200 + (900 if one.policy == SITE_LEAST_WASTE else 60)
        if one.policy == "youngest-first":
            assert (wait_for(one, 1.0), one.drained, one.ended_at_once) == (0.0, 0.0, one.pilots)
        if one.policy == "drain-all":
            assert one.ended_at_once == 0


@pytest.mark.parametrize("policy", ["least-waste", "paper"])
def test_who_knows_the_truth_wastes_less_than_who_estimates(policy: str) -> None:
    """On a full site, over all bursts; of what its like took and what was asked for neither is always better."""
    waste = {}
    for estimates in (EXACT, SCOUTS, REQUESTS):
        outcomes = run_all(busy_site(), replace(BUSY, estimates=estimates, moments=8), (policy,))
        waste[estimates] = sum(one.waste for one in outcomes)
    assert waste[EXACT] < min(waste[SCOUTS], waste[REQUESTS])


def test_liars_and_silent_pilots_only_change_which_pilots_go() -> None:
    """How many cores are given does not depend on what pilots say."""
    jobs = busy_site()
    plain = [one.given for one in run_all(jobs, BUSY, ("least-waste",))]
    for odd in (replace(BUSY, liars=1.0), replace(BUSY, silent=1.0), replace(BUSY, liars=0.3, silent=0.3)):
        assert [one.given for one in run_all(jobs, odd, ("least-waste",))] == plain


def test_progress_is_told_from_begin_to_end() -> None:
    """The share only grows, and ends at 1."""
    told: list[float] = []
    run_all(busy_site(), BUSY, ("paper", "random"), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_an_unknown_policy_is_named() -> None:
    """The error lists those there are."""
    with pytest.raises(UsageError, match=r"no policy is called 'best'; there are least-waste, .*clairvoyant"):
        run_all(busy_site(10), BUSY, ("best",))


def test_every_burst_is_decided_by_the_agents_own_plan() -> None:
    """The balance is the agent's: the asked cores are the deficit, and no pilot is asked twice."""
    jobs = fitting(busy_site(), BUSY)[0]
    site = begin(jobs, BUSY)
    [moment, *_] = moments(jobs, BUSY, 0)
    site.advance(BEGIN + moment)
    burst = Burst(0, 0, moment, replace(BUSY, site=site_settings(600)))
    snapshot = snapshot_of(site, burst)
    for policy in ONE_SHOT:
        decided = decide(site, snapshot, burst, policy)
        assert decided.asked == round(decided.held * BUSY.reclaimed)
        assert len({one.run for one in decided.orders}) == len(decided.orders)
        assert all(one.run in site.pilots for one in decided.orders)

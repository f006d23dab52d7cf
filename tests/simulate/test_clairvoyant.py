"""Who knows the true ends is never beaten, and what it counts on comes true."""

from __future__ import annotations

from itertools import combinations
from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.plan import Need
from drainwise_simulate.demand_burst import Burst, fitting, moments, snapshot_of, truth_of
from drainwise_simulate.engine import begin, run_all
from drainwise_simulate.policies.clairvoyant import Clairvoyant, Truth, best_end, waste_when_ended
from drainwise_simulate.policies.exact_totals import total_to_give
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE
from drainwise_simulate.policies.named import ONE_SHOT
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import scenarios, traces

NOW = 1000.0
workloads = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1000), st.integers(1000, 3000)), max_size=5).map(
    lambda rows: [(cores, float(start), float(end)) for cores, start, end in rows]
)


def second_by_second(cores: int, payloads: list[Truth], deadline: int) -> float:
    """Waste by counting what every core does in every second until the pilot is gone."""
    last = max((end for *_, end in payloads), default=NOW)
    gone = int(min(deadline, max(last, NOW)))
    idle = sum(cores - sum(width for width, _, end in payloads if end > second) for second in range(int(NOW), gone))
    return idle + sum(width * (gone - start) for width, start, end in payloads if end > gone)


@given(payloads=workloads, deadline=st.integers(1000, 3500))
def test_waste_is_what_counting_finds(payloads: list[Truth], deadline: int) -> None:
    """Idle until the pilot is gone, and lost then: the same as second by second."""
    assert waste_when_ended(16, payloads, NOW, deadline) == second_by_second(16, payloads, deadline)


@given(payloads=workloads, earliest=st.integers(1000, 1500), length=st.integers(0, 2000))
def test_no_other_moment_is_better(payloads: list[Truth], earliest: int, length: int) -> None:
    """Of all seconds between the bounds none has less waste than the one that is found, which lies between them."""
    waste, end = best_end(16, payloads, NOW, earliest, earliest + length)
    assert earliest <= end <= earliest + length
    assert waste == min(
        waste_when_ended(16, payloads, NOW, second) for second in range(earliest, earliest + length + 1)
    )


@pytest.mark.daemons
@given(jobs=traces(), scenario=scenarios)
def test_it_is_never_beaten(jobs: list[TraceJob], scenario: Scenario) -> None:
    """No policy wastes less in truth, at any decision, however good or bad the estimates are.

    `kueue` alone ends pilots one after the other until there is enough: of fewer or more cores than others give back.
    """
    assume(fitting(jobs, scenario)[0])
    outcomes = run_all(jobs, scenario, [name for name in ONE_SHOT if name != SITE_LEAST_WASTE])
    best = {one.burst: one for one in outcomes if one.policy == CLAIRVOYANT}
    for one in outcomes:
        if one.policy == "kueue":
            continue
        assert one.given == best[one.burst].given
        assert best[one.burst].waste <= one.waste + 1e-6 * max(1.0, one.waste)


@given(jobs=traces(), scenario=scenarios)
def test_what_it_predicts_comes_true(jobs: list[TraceJob], scenario: Scenario) -> None:
    """Its prediction is the waste, to the core-second for each pilot."""
    for one in run_all(jobs, scenario, (CLAIRVOYANT,)):
        assert one.predicted == pytest.approx(one.waste, abs=one.pilots + 1e-3)


@given(jobs=traces(most=25), scenario=scenarios)
def test_its_set_is_the_best_of_all_sets(jobs: list[TraceJob], scenario: Scenario) -> None:
    """Of all sets of pilots with the same cores, each ended at its best moment, none wastes less."""
    able = fitting(jobs, scenario)[0]
    site = begin(able, scenario)
    for moment in moments(able, scenario, 0):
        site.advance(BEGIN + moment)
        burst = Burst(0, 0, moment, scenario)
        snapshot, truth = snapshot_of(site, burst), truth_of(site)
        if not 1 <= len(snapshot.pilots) <= 8:
            continue
        among = candidates_of(snapshot.pilots, snapshot.taken, scenario.site)
        cores = int(sum(pilot.cores for pilot in snapshot.pilots) * scenario.reclaimed)
        total, latest = total_to_give(among.sizes, cores, cores), snapshot.taken + 7200
        chosen = Clairvoyant(truth, latest).choose(among, Need(cores, cores))
        least = min(
            (
                sum(
                    round(
                        best_end(
                            one.cores,
                            truth[one.run],
                            snapshot.taken,
                            snapshot.taken,
                            min(latest, one.lease_end or inf),
                        )[0]
                    )
                    for one in some
                )
                for count in range(len(among) + 1)
                for some in combinations(among.pilots, count)
                if sum(one.cores for one in some) == total
            ),
        )
        assert sum(choice.candidate.pilot.cores for choice in chosen) == total
        assert sum(choice.option.waste for choice in chosen) == least

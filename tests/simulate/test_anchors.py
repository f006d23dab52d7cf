"""The policies that are held beside the agent's: hand-computed small cases, and what the clairvoyants promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.plan import Need
from drainwise_simulate.demand_burst import Burst, Decided, decide, fitting, snapshot_of
from drainwise_simulate.engine import begin, run_all
from drainwise_simulate.policies.choosers import BASELINES, LEAST_KILL, Chosen, covering
from drainwise_simulate.policies.clairvoyant import best_end
from drainwise_simulate.policies.foresight import best_way
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE
from drainwise_simulate.policies.named import STEPWISE
from drainwise_simulate.policies.stepwise import Foreseen
from drainwise_simulate.scenario import EXACT, Scenario, site_settings
from drainwise_simulate.site import Site
from drainwise_simulate.stepping import follow_steps
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import job, scenarios, traces

NOW = 1_000_000
WAITING = "clairvoyant-waiting"
HOUR = 3600


def among(*pilots: tuple[int, int, int]) -> Candidates:
    """Pilots of (cores, age, lease left in s) that report nothing."""
    found = [
        Pilot(str(row), str(row), "node", "a", "a", cores, NOW - age, NOW + left)
        for row, (cores, age, left) in enumerate(pilots)
    ]
    return candidates_of(found, NOW, site_settings(horizon=7200))


def runs(chosen: tuple[Chosen, ...]) -> list[str]:
    """The runs in their order."""
    return [one.candidate.pilot.run for one in chosen]


def test_least_kill_counts_for_each_core() -> None:
    """64 cores of an hour lose more in all than 8 of two, and half as much for each core that comes back."""
    some = among((64, 3600, 90_000), *[(8, 7200, 90_000)] * 8)
    assert runs(LEAST_KILL.choose(some, Need(64, 64))) == ["0"]


def test_lsf_spares_who_is_near_the_end() -> None:
    """The youngest goes, but not the one whose lease ends within two hours, until nobody else is left."""
    some = among((8, 100, 7200), (8, 900, 7201), (8, 500, 90_000))
    assert runs(BASELINES["lsf"].choose(some, Need(8, 8))) == ["2"]
    assert runs(BASELINES["lsf"].choose(some, Need(16, 16))) == ["2", "1"]
    assert runs(BASELINES["lsf"].choose(some, Need(24, 24))) == ["2", "1", "0"]
    assert {one.option.kind for one in BASELINES["lsf"].choose(some, Need(24, 24))} == {"kill"}


def test_kueue_gives_back_who_is_not_needed() -> None:
    """The 8 cores that came last are taken first; with the 64 after them they are not needed."""
    some = among((8, 100, 90_000), (16, 200, 90_000), (64, 300, 90_000), (8, 400, 90_000))
    assert runs(BASELINES["kueue"].choose(some, Need(64, 64))) == ["2"]
    assert runs(BASELINES["kueue"].choose(some, Need(70, 70))) == ["0", "2"]
    assert runs(BASELINES["kueue"].choose(some, Need(97, 97))) == []


@given(sizes=st.lists(st.integers(1, 20), max_size=12), cores=st.integers(0, 80))
def test_what_covers_is_needed(sizes: list[int], cores: int) -> None:
    """It covers the need, and no pilot of it could be left out."""
    places = covering(np.array(sizes, dtype=np.int64), cores)
    given_back = sum(sizes[place] for place in places)
    if not cores or sum(sizes) < cores:
        assert not places
    else:
        assert given_back >= cores
        assert all(given_back - sizes[place] < cores for place in places)


def site_of(jobs: list[TraceJob], scenario: Scenario, minute: int) -> tuple[Site, Burst]:
    """The site at a minute of the trace."""
    site = begin(jobs, scenario)
    site.advance(BEGIN + 60 * minute)
    return site, Burst(0, 0, 60 * minute, scenario)


def stepped(name: str, jobs: list[TraceJob], scenario: Scenario, minute: int, wanted: int) -> tuple[Site, Decided]:
    """Play a policy on the site at a minute of the trace."""
    site, burst = site_of(jobs, scenario, minute)
    return site, follow_steps(site, burst, STEPWISE[name], wanted)


FOUR = [job(0, 0, HOUR, 8), job(1, 60, 9 * HOUR, 8), job(2, 120, 9 * HOUR, 8), job(3, 180, 9 * HOUR, 8)]
PLACE = Scenario(cores=32, lease=400_000.0, reclaimed=0.5, site=site_settings(2 * HOUR))


def test_wait_then_kill_waits_and_kills_the_rest() -> None:
    """Of two pilots one comes by itself after an hour; at the end of the horizon the youngest payload is destroyed."""
    site, found = stepped("wait-then-kill", FOUR, PLACE, 10, 16)
    assert (found.given, found.alone) == (16, 8)
    assert site.gone == [(BEGIN + 61 * 60, 8), (BEGIN + 130 * 60, 8)]
    assert site.destroyed == found.predicted == 8 * 127 * 60


def test_yarn_takes_a_fifth_in_each_round() -> None:
    """Ten pilots are wanted: two (a fifth of 80, a tenth of all) of the youngest first, killed 15 s later."""
    jobs = [job(number, 60 * number, 90_000, 8) for number in range(20)]
    scenario = Scenario(cores=160, lease=400_000.0, site=site_settings(2 * HOUR))
    site, found = stepped("yarn", jobs, scenario, 30, 80)
    begun = BEGIN + 1800
    assert [one.given - begun for one in found.orders] == sorted(
        (one.given - begun for one in found.orders), reverse=True
    ), "the youngest, with the largest number, first"
    assert site.gone[:4] == [(begun + 15, 8), (begun + 15, 8), (begun + 30, 8), (begun + 30, 8)]
    assert {one.run for one in found.orders if one.given == begun} == {18, 19}
    assert found.given == 80 and not site.drained


def test_the_clairvoyant_that_may_wait_orders_when_two_payloads_end_together() -> None:
    """At minute 10 four cores would idle from minute 20 to 60; what they run then ends when the others end."""
    jobs = [
        job(0, 0, HOUR, 4),
        job(1, 0, 1200, 4),
        job(2, 60, 9 * HOUR, 8),
        job(3, 120, 2400, 4),
        job(4, 180, 9 * HOUR, 8, 11 * HOUR),
    ]
    scenario = Scenario(cores=16, lease=400_000.0, site=site_settings(2 * HOUR))
    before, burst = site_of(jobs, replace(scenario, reclaimed=0.5), 10)
    assert decide(before, snapshot_of(before, burst), burst, CLAIRVOYANT).predicted == 8 * 540, "the other is killed"
    site, found = stepped(WAITING, jobs, scenario, 10, 8)
    assert (found.given, found.predicted, site.destroyed, site.drained) == (8, 0, 0.0, 0.0)
    [order] = found.orders
    assert BEGIN + 1200 <= order.given <= BEGIN + HOUR == order.deadline


@given(jobs=traces(), scenario=scenarios)
def test_who_may_wait_never_wastes_more_than_the_best_one_shot_choice(jobs: list[TraceJob], scenario: Scenario) -> None:
    """It never gives less back; it gives more where a pilot of a fitting size comes later."""
    assume(fitting(jobs, scenario)[0])
    for once, waiting in zip(*[iter(run_all(jobs, scenario, (CLAIRVOYANT, WAITING)))] * 2):
        assert waiting.given >= once.given
        if waiting.given == once.given:
            assert waiting.waste <= once.waste + 1e-6 * max(1.0, once.waste)


def test_the_clairvoyant_that_may_wait_counts_what_ends_by_itself() -> None:
    """12 cores are wanted, and one pilot of 8 ends by itself: no order could give the other 4, so none is given."""
    site, found = stepped(WAITING, FOUR, PLACE, 10, 12)
    assert (found.given, found.alone, found.orders, site.destroyed, site.drained) == (8, 8, (), 0.0, 0.0)


@given(
    payloads=st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 1000), st.integers(0, 2000)).map(
            lambda row: (row[0], float(row[1]), float(max(1001, row[1] + row[2])))
        ),
        max_size=5,
    ),
    length=st.integers(0, 2000),
)
def test_the_best_way_at_once_is_the_clairvoyants(payloads: list[tuple[int, float, float]], length: int) -> None:
    """The same waste and the same end as the search over all of them."""
    way = best_way(16, Foreseen(payloads, None), range(1000, 1001), 1000 + length, 9999)
    waste, end = best_end(16, payloads, 1000, 1000, 1000 + length)
    assert way.waste == pytest.approx(waste) and way.begin == 1000
    assert way.end == end or not payloads


def test_an_open_need_of_a_site_that_sets_nothing_waits_for_pilots_that_end_by_themselves() -> None:
    """A pilot lives for 5000 s. One ends in time for the need; within 15 minutes none does, so one is ended."""
    jobs = [job(number, 2500 * number, 5000, 8, 96_000) for number in range(20)]
    scenario = Scenario(cores=16, reclaimed=0.5, lease=100_000.0, estimates="requests", site=site_settings(2 * HOUR))
    site, found = stepped("site-default", jobs, scenario, 660, 8)
    assert (found.given, found.alone, found.orders, site.destroyed) == (8, 8, (), 0.0)
    site, burst = site_of(jobs, scenario, 660)
    assert decide(site, snapshot_of(site, burst), burst, SITE_LEAST_WASTE).orders
    _, found = stepped("site-default", jobs, replace(scenario, site=site_settings(1500)), 650, 8)
    [order] = found.orders
    assert 0 <= order.given - BEGIN - 650 * 60 <= 1500 - 600 and order.deadline == order.given + 300


def test_the_site_default_drains_and_gets_a_margin() -> None:
    """Nobody is killed at once but 5 minutes later, and who leaves by itself has 15 minutes more than it says."""
    site, burst = site_of(FOUR, Scenario(cores=32, lease=400_000.0, reclaimed=0.5, estimates=EXACT), 10)
    snapshot = snapshot_of(site, burst)
    free, default = (decide(site, snapshot, burst, name) for name in ("least-waste", SITE_LEAST_WASTE))
    assert [one.kill for one in free.orders] == [False, True]
    assert [one.deadline - snapshot.taken for one in free.orders] == [50 * 60 + 60, 0]
    assert [one.deadline - snapshot.taken for one in default.orders] == [50 * 60 + 900, 300]
    assert default.given == free.given == 16

"""The site as it goes: no payload is lost or run twice, and every core-second is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.settings import HOLES, WHILE_DRAINING
from drainwise_simulate.demand_burst import fitting
from drainwise_simulate.engine import begin, core_seconds_of
from drainwise_simulate.scenario import EXACT, Scenario
from drainwise_simulate.site import ENDED, FAILED, Site
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import job, scenarios, traces
from .small import unexplained

NEVER = 10.0**12


def census(site: Site) -> Counter[int]:
    """Where every payload is that has come: it waits, runs, or is done."""
    running = [int(name) for pilot in site.pilots.values() for name in pilot.workload.running]
    return Counter(site.waiting.turns() + running + [turn for turn, done in enumerate(site.done) if done])


def require_conserved(site: Site) -> None:
    """Nobody is missing or there twice, no core runs two payloads, and no core-second is unexplained."""
    assert census(site) == Counter(range(site.arrived))
    assert len(site.waiting) == len(site.waiting.turns())
    for pilot in site.pilots.values():
        assert 0 <= pilot.workload.used <= pilot.cores <= pilot.lease.cores
        assert 0 <= pilot.returned <= pilot.asked < pilot.lease.cores
    account = core_seconds_of(site)
    assert abs(unexplained(account)) <= 1e-6 * max(1.0, account.total)
    assert min(account.useful, account.killed, account.draining, account.idle) >= 0


def played(jobs: Sequence[TraceJob], scenario: Scenario, until: float = NEVER) -> Site:
    """The site at `until`, s since the beginning of the trace; by default when nothing is left to happen."""
    site = begin(fitting(jobs, scenario)[0], scenario)
    if until < NEVER:
        site.advance(BEGIN + until)
    else:
        while site.step():
            pass
    return site


@given(jobs=traces(), scenario=scenarios, until=st.integers(0, 60_000))
def test_conservation_at_any_moment(jobs: list[TraceJob], scenario: Scenario, until: int) -> None:
    """Whenever it is stopped, every payload is in one place and every core-second is useful, idle or lost."""
    require_conserved(played(jobs, scenario, until))


@given(jobs=traces(), scenario=scenarios)
def test_every_payload_runs_once_to_its_end(jobs: list[TraceJob], scenario: Scenario) -> None:
    """Without reclaiming all payloads end, and what was useful is what they needed; only those that hung are lost."""
    site, able = played(jobs, scenario), fitting(jobs, scenario)[0]
    require_conserved(site)
    assert not site.pilots
    assert len(site.waiting) == 0
    assert site.stopped == 0
    assert all(site.done)
    needed = [one.cores * one.run for one, done in zip(able, site.done) if done == ENDED]
    hung = [one.cores * one.requested for one, done in zip(able, site.done) if done == FAILED]
    assert abs(site.useful - sum(needed)) < 1e-3
    assert abs(site.lost - sum(hung)) < 1e-3
    assert scenario.stuck or not hung


@given(
    jobs=traces(),
    scenario=scenarios,
    until=st.integers(0, 30_000),
    orders=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8000)), max_size=6),
    draining=st.sampled_from(WHILE_DRAINING),
)
def test_conservation_whatever_is_ordered(
    jobs: list[TraceJob], scenario: Scenario, until: int, orders: list[tuple[int, int]], draining: str
) -> None:
    """Pilots that are killed or asked to leave give back their payloads, which then run again to their end."""
    site = played(jobs, replace(scenario, while_draining=draining), until)
    asked = 0
    for run, seconds in orders:
        if run in site.pilots and run not in site.ordered:
            asked += site.pilots[run].lease.cores
            site.give_order(run, int(site.now) + seconds)
            require_conserved(site)
    other = site.copy()
    while site.ordered and site.step():
        require_conserved(site)
    assert not site.ordered
    assert sum(cores for _, cores in site.gone) == asked
    assert all(moment <= BEGIN + until + 8000 for moment, _ in site.gone)
    # A copy goes on by itself, and as the first did.
    while other.ordered and other.step():
        pass
    assert (other.gone, other.lost, other.drained, census(other)) == (site.gone, site.lost, site.drained, census(site))


def test_a_copy_does_not_disturb_its_original() -> None:
    """What is ordered in a copy happens there alone."""
    site = played([job(1, 0, 1000, 8), job(2, 5, 900, 8)], Scenario(cores=16, quiet=0.0, stuck=0.0), 100)
    before = (len(site.pilots), site.lost, census(site))
    other = site.copy()
    for run in list(other.pilots):
        other.give_order(run, int(other.now))
    assert not other.pilots
    assert len(other.waiting) == 2
    assert (len(site.pilots), site.lost, census(site)) == before


def lone_pilot(draining: str) -> tuple[Site, int]:
    """A pilot of 8 cores after 100 s: 7 cores are busy until 1000 s, one job of 10 s waits for two cores."""
    jobs = [job(1, 0, 1000, 7), job(2, 50, 10, 2), job(3, 200, 10, 1, 20.0)]
    scenario = Scenario(cores=8, lease=100_000.0, estimates=EXACT, while_draining=draining)
    site = played(jobs, scenario, 100)
    [run] = site.pilots
    return site, run


def test_a_pilot_that_drains_starts_nothing_or_fills_holes() -> None:
    """What comes while it drains starts only where holes are filled and its end comes before the last one's."""
    ends = {}
    for draining in ("nothing", HOLES):
        site, run = lone_pilot(draining)
        site.give_order(run, BEGIN + 5000)
        while site.ordered and site.step():
            pass
        ends[draining] = (site.gone, site.drained)
    assert ends["nothing"] == ([(BEGIN + 1000.0, 8)], 900.0)
    assert ends[HOLES] == ([(BEGIN + 1000.0, 8)], 890.0)


def test_a_pilot_is_ended_at_its_deadline() -> None:
    """What runs still is lost then, and waits again."""
    site, run = lone_pilot("nothing")
    site.give_order(run, BEGIN + 400)
    while site.ordered and site.step():
        pass
    assert site.gone == [(BEGIN + 400.0, 8)]
    assert (site.destroyed, site.drained, site.stopped) == (7 * 400.0, 300.0, 1)
    assert sorted(site.waiting.turns()) == [0, 1, 2]


def test_pilots_without_work_leave() -> None:
    """A pilot that has had nothing to do for its idle limit gives its place up; a new one comes with new work."""
    jobs = [job(1, 0, 10), job(2, 5000, 10)]
    for seed in range(20):
        site = played(jobs, Scenario(cores=8, seed=seed), 4000)
        assert not site.pilots
        assert site.done[0] in (0, ENDED)
    while site.step():
        pass
    assert site.idle == site.held - 20.0

"""The other group's own jobs as the demand: quotas are kept, places come and go, and nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given

from drainwise.facts.errors import UsageError
from drainwise_simulate.arrivals import Arrivals, parted
from drainwise_simulate.demand_burst import Burst, fitting
from drainwise_simulate.engine import begin, run_all
from drainwise_simulate.policies.named import ONE_SHOT
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import job, scenarios, traces
from .small import unexplained, wait_for
from .test_site import require_conserved


def two_users(count: int = 500) -> list[TraceJob]:
    """u holds the site; w comes every now and then for eight cores."""
    mine = [job(number, 60 * number, 2000 + 977 * number % 7000, 1 + number % 3) for number in range(count)]
    theirs = [job(1000 + number, 9000 + 1500 * number, 900, 8, user="w") for number in range(6)]
    return sorted(mine + theirs, key=lambda one: one.submit)


SITE = Scenario(cores=64, arrivals="w", lease=60_000.0, quiet=0.3)


@pytest.mark.daemons
def test_arriving_jobs_get_their_quota() -> None:
    """All their jobs start, and none waits for longer than the horizon, a look of the agent, and the job before it."""
    for one in run_all(two_users(), SITE, ONE_SHOT):
        assert len(one.waits) == one.asked / 8 > 0
        assert max(seconds for seconds, _ in one.waits) <= 7200 + 60 + 60
        assert one.given >= 8
        assert abs(unexplained(one.core_seconds)) < 1e-3


def test_killing_serves_sooner_than_draining() -> None:
    """Who kills pays with payloads, who drains with waiting."""
    killed, drained = run_all(two_users(), SITE, ("youngest-first", "drain-all"))
    assert wait_for(killed, 1.0) <= 60 < wait_for(drained, 1.0)
    assert killed.drained == 0 < drained.drained


@given(jobs=traces(), scenario=scenarios)
def test_nothing_is_lost_and_no_more_is_held_than_owed(jobs: list[TraceJob], scenario: Scenario) -> None:
    """At the end every payload is in one place, and no core of a place is used by two."""
    scenario = replace(scenario, arrivals="a", period=600.0)
    mine, theirs = parted(fitting(jobs, scenario)[0], "a")
    assume(mine and theirs)
    site = begin(mine, scenario)
    arrivals = Arrivals(site, theirs, Burst(0, 0, 1000, scenario), "least-waste")
    site.advance(BEGIN + 1000)
    for until in (5000, 20_000, 60_000):
        arrivals.play(BEGIN + until)
        require_conserved(site)
        places = [pilot.place for pilot in site.pilots.values()]
        assert len(places) == len(set(places)) <= len(site.workload.sizes)
    assert len(arrivals.waits) <= sum(one.submit >= 1000 for one in theirs)


def test_arrivals_that_are_not_there_are_named() -> None:
    """A group of the trace beside others is needed."""
    with pytest.raises(UsageError, match="arrivals = 'x'"):
        run_all(two_users(), replace(SITE, arrivals="x"), ("paper",))


def test_a_policy_that_decides_over_time_is_not_played_with_arrivals() -> None:
    """It would need a demand that stays as it is."""
    with pytest.raises(UsageError, match="wait-then-kill decides over time"):
        run_all(two_users(), SITE, ("wait-then-kill",))


def test_groups_count_before_users() -> None:
    """Where there are several groups, arrivals are one of them."""
    jobs = [job(1, 0, 1)._replace(group="g1", user="a"), job(2, 0, 1)._replace(group="g2", user="g1")]
    assert parted(jobs, "g1") == ([jobs[1]], [jobs[0]])
    assert parted([one._replace(group="g") for one in jobs], "g1")[1][0].number == 2

"""A stepwise policy: what it sees, what its orders do, and what pilots that end by themselves give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given

from drainwise.facts.errors import UsageError
from drainwise_simulate.demand_burst import Burst, Decided, fitting, moments, snapshot_of
from drainwise_simulate.engine import begin
from drainwise_simulate.policies.named import STEPWISE
from drainwise_simulate.policies.stepwise import StepDecision, StepOrder, StepView
from drainwise_simulate.scenario import Scenario, site_settings
from drainwise_simulate.site import Site
from drainwise_simulate.stepping import follow_steps, future_of
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

from .made_up import job, scenarios, traces
from .test_site import require_conserved

HOUR = 3600


class Script:
    """A policy that does what a function says, and remembers what it saw."""

    def __init__(self, rule: Callable[[StepView], StepDecision]) -> None:
        self.rule, self.seen = rule, list[StepView]()

    def step(self, view: StepView) -> StepDecision:
        """See `StepwisePolicy`."""
        self.seen.append(view)
        return self.rule(view)


def at(minutes: int) -> int:
    """UNIX s so long after the beginning of the trace."""
    return BEGIN + 60 * minutes


def two_pilots(*more: TraceJob) -> tuple[Site, Burst]:
    """Two 8-core pilots at minute 10: run 0 ends by itself at minute 60, run 1 runs for 10 hours."""
    jobs = [job(0, 0, HOUR, 8), job(1, 1, 10 * HOUR, 8), *more]
    scenario = Scenario(cores=16, lease=400_000.0, reclaimed=0.5, site=site_settings(2 * HOUR))
    site = begin(jobs, scenario)
    site.advance(at(10))
    return site, Burst(0, 0, 600, scenario)


def play(rule: Callable[[StepView], StepDecision], *more: TraceJob) -> tuple[Site, Decided, Script]:
    """Play a rule on the two pilots, of which 8 cores are wanted."""
    site, burst = two_pilots(*more)
    script = Script(rule)
    return site, follow_steps(site, burst, script, 8), script


def test_who_does_nothing_gets_what_ends_by_itself() -> None:
    """Run 0 ends at minute 60 and serves; nothing is wasted, and nobody is asked after that."""
    site, found, script = play(lambda _: StepDecision())
    assert (found.given, found.alone, found.orders, site.destroyed) == (8, 8, (), 0.0)
    assert site.gone == [(at(61), 8)], "it looks for another payload for a minute"
    assert [view.now for view in script.seen] == [at(10) + 300 * step for step in range(len(script.seen))]
    assert script.seen[-1].now == at(65) and script.seen[-1].back == 8 and script.seen[-1].open == 0


def test_a_pilot_that_holds_more_than_is_wanted_does_not_serve() -> None:
    """Its cores are the holder's again: whole pilots come back, as for every policy."""
    site, burst = two_pilots()
    found = follow_steps(site, burst, Script(lambda _: StepDecision()), 4)
    assert (found.given, found.alone) == (0, 0)


def test_an_order_is_carried_out_and_counted() -> None:
    """Killed at once at minute 10: 8 cores × 10 minutes are lost."""
    site, found, script = play(lambda view: StepDecision((StepOrder("000000000", view.now, 4800),)))
    assert (found.given, found.alone, found.predicted) == (8, 0, 4800)
    assert site.destroyed == 8 * 600 and len(script.seen) == 1


def test_a_withdrawn_order_lets_the_pilot_go_on() -> None:
    """Run 1 is to drain until the end of the horizon; when run 0 has ended by itself it is let go on."""

    def rule(view: StepView) -> StepDecision:
        if not view.earlier:
            return StepDecision((StepOrder("000000001", view.due, 99),))
        going = [one.run for one in view.snapshot().pilots if one.deadline is not None]
        return StepDecision(withdrawn=tuple(going)) if not view.open else StepDecision()

    site, found, _ = play(rule)
    assert (found.given, found.alone, found.withdrawn, found.predicted, found.orders) == (8, 8, 1, 0, ())
    site.advance(at(601))
    assert site.destroyed == 0.0 and site.useful == 8 * 11 * HOUR


def test_a_pilot_whose_order_is_withdrawn_fills_up_again() -> None:
    """While it drains 7 of its cores idle; that stays counted, and the waiting payload starts after it."""
    jobs = [job(0, 0, 10 * HOUR), job(1, 660, 5 * HOUR, 7)]
    scenario = Scenario(cores=8, lease=400_000.0, reclaimed=1.0, site=site_settings(2 * HOUR))
    site = begin(jobs, scenario)
    site.advance(at(10))

    def rule(view: StepView) -> StepDecision:
        if view.now == view.begun:
            return StepDecision((StepOrder("000000000", view.due, 0),))
        return StepDecision(withdrawn=("000000000",)) if view.now == view.begun + 600 else StepDecision()

    follow_steps(site, Burst(0, 0, 600, scenario), Script(rule), 8)
    pilot = site.pilots[0]
    assert pilot.drained == 7 * 600
    assert pilot.workload.running["1"].start == at(20)


def test_the_view_shows_orders_and_the_accounts() -> None:
    """A pilot with an order has its deadline; the demand wants what it does not have yet."""
    site, burst = two_pilots(job(2, 2, HOUR, 8, 12 * HOUR))

    def rule(view: StepView) -> StepDecision:
        snapshot = view.snapshot()
        holder, claimant = snapshot.accounts
        assert (holder.cores_in_use, holder.cores_owed) == (16, 8)
        assert (claimant.cores_in_use, claimant.cores_wanted) == (0, 8)
        assert [one.deadline for one in snapshot.pilots] == [None, None if not view.earlier else at(130)]
        assert view.left(snapshot.pilots) == (8 if not view.earlier else 0)
        if view.earlier:
            assert view.earlier == ((at(10), first),)
            return StepDecision((StepOrder("000000001", view.now, 9),))
        return first

    first = StepDecision((StepOrder("000000001", at(130), 9),), again=at(17))
    script = Script(rule)
    follow_steps(site, burst, script, 8)
    assert [view.now for view in script.seen] == [at(10), at(17)]


def test_the_future_is_what_comes_when_nobody_orders_anything() -> None:
    """What runs, what starts later on the same cores, and when a pilot ends by itself."""
    site, _ = two_pilots(job(2, 2, HOUR, 8, 12 * HOUR))
    found = future_of(site, at(150))
    assert found["000000000"].payloads == [(8, BEGIN, at(60)), (8, at(60), at(120))]
    assert found["000000000"].gone == at(121) and found["000000001"].gone is None
    assert site.now == at(10) and len(site.pilots) == 2


@pytest.mark.parametrize(
    "step",
    [
        StepDecision((StepOrder("000000007", at(200), 0),)),
        StepDecision(withdrawn=("000000000",)),
        StepDecision((StepOrder("000000000", at(9), 0),)),
    ],
)
def test_what_nobody_can_order_is_named(step: StepDecision) -> None:
    """A run that is not there, an order that was never given, a deadline that is over."""
    with pytest.raises(UsageError, match="run 00000000"):
        play(lambda _: step)


def test_a_pilot_that_is_asked_returns_each_chunk_as_its_payloads_end() -> None:
    """Payloads of 2 cores end at minutes 20, 30 and 40, one of 2 runs on: 4 cores together come back at 30.

    What waits starts in none of the cores that are asked for; the cores that were not asked for are filled again.
    """
    jobs = [job(number, 0, 60 * minutes, 2) for number, minutes in enumerate((20, 30, 40, 500))]
    jobs += [job(4 + number, 60, 60 * 600, 2) for number in range(4)]
    scenario = Scenario(cores=8, lease=400_000.0, shrinking=1.0, chunk=4, site=site_settings(2 * HOUR))
    site = begin(jobs, scenario)
    site.advance(at(10))
    script = Script(lambda view: StepDecision(returns={"000000000": view.open} if view.open else {}))
    found = follow_steps(site, Burst(0, 0, 600, scenario), script, 4)
    assert (found.given, found.returned, found.orders, site.destroyed) == (4, 4, (), 0.0)
    assert site.gone == [(at(30), 4)]
    [pilot] = site.pilots.values()
    assert (pilot.cores, pilot.returned, pilot.workload.used) == (4, 4, 4)
    assert pilot.drained == 2 * 600, "two cores idled from minute 20 to minute 30"
    require_conserved(site)


def test_cores_that_are_asked_for_no_more_are_used_again() -> None:
    """The wish ends before anything came back: what idled for it is filled at once."""
    jobs = [job(0, 0, 60 * 20, 4), job(1, 0, 60 * 500, 4), job(2, 60, 60 * 600, 4)]
    scenario = Scenario(cores=8, lease=400_000.0, shrinking=1.0, chunk=8, site=site_settings(2 * HOUR))
    site = begin(jobs, scenario)
    site.advance(at(10))
    script = Script(lambda view: StepDecision(returns={"000000000": 7} if view.now < at(40) else {}))
    found = follow_steps(site, Burst(0, 0, 600, scenario), script, 8)
    [pilot] = site.pilots.values()
    assert (found.given, found.returned, pilot.returned, pilot.workload.used) == (0, 0, 0, 8)
    assert pilot.drained == 4 * 20 * 60
    require_conserved(site)


@pytest.mark.daemons
@pytest.mark.parametrize("name", sorted(STEPWISE))
@given(jobs=traces(), scenario=scenarios)
def test_nothing_is_lost_on_the_way(name: str, jobs: list[TraceJob], scenario: Scenario) -> None:
    """Never more than is wanted comes back, no ordered pilot stays, and every payload is in one place."""
    able = fitting(jobs, scenario)[0]
    assume(able)
    site = begin(able, scenario)
    for number, moment in enumerate(moments(able, scenario, 0)):
        site.advance(BEGIN + moment)
        burst = Burst(0, number, moment, scenario)
        snapshot_of(site, burst)
        held = sum(pilot.lease.cores for pilot in site.pilots.values())
        own, wanted = site.copy(site.estimates and site.estimates.copy()), round(held * scenario.reclaimed)
        found = follow_steps(own, burst, STEPWISE[name], wanted)
        assert 0 <= found.alone <= found.given <= wanted
        assert sum(cores for _, cores in own.gone) == found.given
        assert not own.ordered
        require_conserved(own)

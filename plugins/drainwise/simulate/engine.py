"""The comparison of one replication: the trace is played once, and at each burst goes on once for every policy.

All policies decide on the same snapshot of the same state, so what differs afterwards is their doing alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drainwise.facts.errors import UsageError
from drainwise.pool.facts import Snapshot
from drainwise.simulate.arrivals import Arrivals, parted
from drainwise.simulate.demand_burst import Burst, decide, fitting, moments, snapshot_of
from drainwise.simulate.outcome import CoreSeconds, Outcome
from drainwise.simulate.policies import POLICIES, require_known
from drainwise.simulate.scenario import SCOUTS, Scenario
from drainwise.simulate.site import Site
from drainwise.simulate.trace import TraceJob
from drainwise.simulate.workload import BEGIN, SimulatedEstimates, workload_of


def simulate(jobs: Sequence[TraceJob], scenario: Scenario, policy: str, replication: int = 0) -> tuple[Outcome, ...]:
    """Return the outcome of each burst under one policy; see `run_all`."""
    return run_all(jobs, scenario, (policy,), replication)


def run_all(
    jobs: Sequence[TraceJob],
    scenario: Scenario,
    policies: Sequence[str] = POLICIES,
    replication: int = 0,
    progress: Callable[[float], None] | None = None,
) -> tuple[Outcome, ...]:
    """Return one outcome for each burst and policy, burst by burst; with `arrivals` one for each policy. It is the same
    for the same arguments.

    jobs: of the trace, by their arrival. replication: other bursts and other lots by the same seed. progress: receives
    the share that is done, from 0 to 1. Raises UsageError for an unknown policy, and when no job can run.
    """
    for policy in policies:
        require_known(policy)
    able, _ = fitting(jobs, scenario)
    if scenario.arrivals:
        return _with_arrivals(able, scenario, policies, replication, progress)
    site = begin(able, scenario, replication)
    bursts = moments(able, scenario, replication)
    outcomes: list[Outcome] = []
    for number, moment in enumerate(bursts):
        site.advance(BEGIN + moment)
        burst = Burst(replication, number, moment, scenario)
        snapshot = snapshot_of(site, burst)
        for policy in policies:
            outcomes.append(_outcome(site.copy(), snapshot, burst, policy))
            if progress is not None:
                progress(len(outcomes) / (len(bursts) * len(policies)))
    return tuple(outcomes)


def _with_arrivals(
    jobs: Sequence[TraceJob],
    scenario: Scenario,
    policies: Sequence[str],
    replication: int,
    progress: Callable[[float], None] | None,
) -> tuple[Outcome, ...]:
    """Return one outcome for each policy: of all decisions from the quiet time's end to the last job's arrival."""
    mine, theirs = parted(jobs, scenario.arrivals)
    if not (mine and theirs):
        raise UsageError(f"arrivals = {scenario.arrivals!a}: expected a group (or user) of the trace beside others")
    site = begin(mine, scenario, replication)
    burst = Burst(replication, 0, int(scenario.quiet * jobs[-1].submit), scenario)
    site.advance(BEGIN + burst.moment)
    outcomes = []
    for number, policy in enumerate(policies, 1):
        own = site.copy(None if site.estimates is None else site.estimates.copy())
        arrivals = Arrivals(own, theirs, burst, policy)
        held = sum(pilot.lease.cores for pilot in own.pilots.values())
        arrivals.play(BEGIN + jobs[-1].submit)
        outcomes.append(_of_arrivals(arrivals, burst, policy, held))
        if progress is not None:
            progress(number / len(policies))
    return tuple(outcomes)


def _of_arrivals(arrivals: Arrivals, burst: Burst, policy: str, held: int) -> Outcome:
    site, orders = arrivals.site, [order for decided in arrivals.orders for order in decided.orders]
    core_seconds = core_seconds_of(site)
    return Outcome(
        policy=policy,
        replication=burst.replication,
        burst=burst.number,
        seed=burst.scenario.seed,
        moment=float(burst.moment),
        held=held,
        asked=arrivals.asked,
        given=sum(decided.given for decided in arrivals.orders),
        pilots=len(orders),
        ended_at_once=sum(order.kill for order in orders),
        killed=site.destroyed,
        drained=core_seconds.draining,
        predicted=float(sum(decided.predicted for decided in arrivals.orders)),
        restarted=site.stopped,
        waits=tuple(sorted(arrivals.waits)),
        core_seconds=core_seconds,
    )


def begin(jobs: Sequence[TraceJob], scenario: Scenario, replication: int = 0) -> Site:
    """Return the site before the first of these jobs comes. They all must be able to run (see `demand.fitting`)."""
    workload = workload_of(jobs, scenario, replication)
    return Site(workload, SimulatedEstimates(jobs, workload.factors) if scenario.estimates == SCOUTS else None)


def _outcome(site: Site, snapshot: Snapshot, burst: Burst, policy: str) -> Outcome:
    """Give the policy's orders and follow them until the last ordered pilot is gone."""
    decided = decide(site, snapshot, burst, policy)
    stopped, destroyed, drained = site.stopped, site.destroyed, site.drained
    for order in decided.orders:
        site.give_order(order.run, order.deadline)
    while site.ordered and site.step():
        pass
    killed, idle, restarted = site.destroyed - destroyed, site.drained - drained, site.stopped - stopped
    site.advance(max(site.now, BEGIN + burst.moment + burst.scenario.follow))
    return Outcome(
        policy=policy,
        replication=burst.replication,
        burst=burst.number,
        seed=burst.scenario.seed,
        moment=float(burst.moment),
        held=decided.held,
        asked=decided.asked,
        given=decided.given,
        pilots=len(decided.orders),
        ended_at_once=sum(order.kill for order in decided.orders),
        killed=killed,
        drained=idle,
        predicted=float(decided.predicted),
        restarted=restarted,
        waits=tuple((moment - BEGIN - burst.moment, cores) for moment, cores in site.gone),
        core_seconds=core_seconds_of(site),
    )


def core_seconds_of(site: Site) -> CoreSeconds:
    """Return all core-seconds of the pilots from the trace's beginning until now; what runs still counts as useful."""
    pilots = site.pilots.values()
    for pilot in pilots:
        pilot.settle(site.now)
    return CoreSeconds(
        useful=site.useful + site.running_time(),
        killed=site.lost,
        draining=site.drained + sum(pilot.drained for pilot in pilots),
        idle=site.idle + sum(pilot.idle for pilot in pilots),
        total=site.held + sum(pilot.lease.cores * (site.now - pilot.lease.start) for pilot in pilots),
    )

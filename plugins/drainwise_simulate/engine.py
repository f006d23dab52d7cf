"""The comparison of one replication: the trace is played once, and at each burst goes on once for every policy.

All policies decide on the same snapshot of the same state, so what differs afterwards is their doing alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drainwise.facts.errors import UsageError
from drainwise.pool.facts import Snapshot
from drainwise_simulate.arrivals import Arrivals, parted
from drainwise_simulate.demand_burst import Burst, Decided, decide, fitting, moments, snapshot_of
from drainwise_simulate.outcome import CoreSeconds, Outcome
from drainwise_simulate.policies.named import POLICIES, STEPWISE, require_known
from drainwise_simulate.scenario import SCOUTS, Scenario
from drainwise_simulate.site import Site
from drainwise_simulate.stepping import drained, follow_steps
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN, SimulatedEstimates, workload_of


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
        if scenario.arrivals and policy in STEPWISE:
            raise UsageError(f"{policy} decides over time, and is not played with arrivals")
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
            outcomes.append(outcome_of(site, snapshot, burst, policy))
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
        before, arrivals = _Before(own), Arrivals(own, theirs, burst, policy)
        held = sum(pilot.lease.cores for pilot in own.pilots.values())
        arrivals.play(BEGIN + jobs[-1].submit)
        outcomes.append(before.outcome(own, burst, policy, arrivals.decided(held), sorted(arrivals.waits)))
        if progress is not None:
            progress(number / len(policies))
    return tuple(outcomes)


def begin(jobs: Sequence[TraceJob], scenario: Scenario, replication: int = 0) -> Site:
    """Return the site before the first of these jobs comes. They all must be able to run (see `demand.fitting`)."""
    workload = workload_of(jobs, scenario, replication)
    return Site(workload, SimulatedEstimates(jobs, workload.factors) if scenario.estimates == SCOUTS else None)


def outcome_of(site: Site, snapshot: Snapshot, burst: Burst, policy: str) -> Outcome:
    """Return what follows when a policy decides on a burst; the site stays as it is."""
    before = _Before(site)
    if policy in STEPWISE:
        site = site.copy(None if site.estimates is None else site.estimates.copy())
        asked = sum(int(account.cores_wanted) for account in snapshot.accounts)
        return before.outcome(site, burst, policy, follow_steps(site, burst, STEPWISE[policy], asked))
    site = site.copy()
    decided = decide(site, snapshot, burst, policy)
    for order in decided.orders:
        site.give_order(order.run, order.deadline)
    while site.ordered and site.step():
        pass
    return before.outcome(site, burst, policy, decided)


class _Before:
    """What had been wasted before a decision."""

    def __init__(self, site: Site) -> None:
        self._stopped, self._destroyed, self._drained = site.stopped, site.destroyed, drained(site)

    def outcome(
        self,
        site: Site,
        burst: Burst,
        policy: str,
        decided: Decided,
        waits: Sequence[tuple[float, int]] | None = None,
    ) -> Outcome:
        """Return what followed from the decision, all ordered pilots being gone.

        waits: as the outcome has them; None: until each ordered pilot was gone.
        """
        killed, restarted = site.destroyed - self._destroyed, site.stopped - self._stopped
        idle = drained(site) - self._drained
        site.advance(max(site.now, BEGIN + burst.moment + burst.scenario.follow))
        if waits is None:
            waits = [(moment - BEGIN - burst.moment, cores) for moment, cores in site.gone]
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
            waits=tuple(waits),
            core_seconds=core_seconds_of(site),
            alone=decided.alone,
            returned=decided.returned,
            withdrawn=decided.withdrawn,
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
        total=site.held + sum(one.lease.cores * (site.now - one.lease.start) - one.lent for one in pilots),
    )

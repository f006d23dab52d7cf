"""A burst of demand from the other group: its moment, what the agent sees then, and what each policy decides on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.prices import LEAST_WASTE, is_policy
from drainwise_simulate.policies.choosers import BASELINES
from drainwise_simulate.policies.clairvoyant import Clairvoyant, Truth
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE
from drainwise_simulate.scenario import EXACT, Scenario, with_site_defaults
from drainwise_simulate.sim_pilot import SimPilot
from drainwise_simulate.site import Site
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN

TOO_WIDE = "wider than every pilot"
TOO_LONG = "asks for more time than a lease has"
CUT_SHORT = "ran for longer than it had asked: taken as ended at its limit"


def fitting(jobs: Iterable[TraceJob], scenario: Scenario) -> tuple[list[TraceJob], Counter[str]]:
    """Return the jobs that can run, in their order, and how many cannot (or not as long as they did), by the reason.

    A pilot ends a payload at its maximum, so no job runs for longer than it asked for.
    """
    widest, able, odd = max(scenario.pilots), [], Counter[str]()
    for job in jobs:
        if job.cores > widest:
            odd[TOO_WIDE] += 1
        elif job.requested > scenario.lease:
            odd[TOO_LONG] += 1
        elif job.run > job.requested:
            odd[CUT_SHORT] += 1
            able.append(job._replace(run=job.requested))
        else:
            able.append(job)
    return able, odd


def moments(jobs: Sequence[TraceJob], scenario: Scenario, replication: int) -> list[int]:
    """Draw the moments of the bursts within equal parts of the later trace; whole s since its beginning."""
    if not jobs:
        return []
    end = jobs[-1].submit
    begin = scenario.quiet * end
    dice = np.random.default_rng([scenario.seed, replication, 2])
    part = (end - begin) / scenario.moments
    return [int(begin + part * (place + share)) for place, share in enumerate(dice.random(scenario.moments))]


HOLDER, CLAIMANT = "holder", "claimant"
"""The account whose pilots hold the cores, and the one that suddenly wants some of them and is owed them."""


@dataclass(frozen=True)
class Burst:
    """number: within the replication. moment: s since the beginning of the trace."""

    replication: int
    number: int
    moment: int
    scenario: Scenario


@dataclass(frozen=True)
class SimOrder:
    """One pilot, by its run, is to be gone by `deadline`; when that was `given`; UNIX s. kill: at once."""

    run: int
    given: int
    deadline: int
    kill: bool


@dataclass(frozen=True)
class Decided:
    """Cores held by all pilots, asked for and given; predicted: waste of the orders in core-seconds.

    What a policy gives beyond what was asked for does not count as given; what it wastes does.
    Of a policy that decides again and again: orders are those that stood to the end. given: came back, by themselves or
    under an order; alone: of these by themselves. withdrawn: how often an order was. returned: of pilots that went on.
    """

    held: int
    asked: int
    given: int
    predicted: int
    orders: tuple[SimOrder, ...]
    alone: int = 0
    withdrawn: int = 0
    returned: int = 0


def snapshot_of(site: Site, burst: Burst) -> Snapshot:
    """Return what the batch system and the pilots report at the moment of the burst."""
    held = sum(pilot.cores for pilot in site.pilots.values())
    return demand_on(site, BEGIN + burst.moment, held, round(held * burst.scenario.reclaimed), 0)


def demand_on(site: Site, now: int, held: int, wanted: int, back: int) -> Snapshot:
    """Return what is reported at `now` (UNIX s), when `back` of the cores that are wanted have come back.

    held: cores of all pilots at the moment of the burst.
    """
    pilots, chunk = pilots_of(site, now), float(site.workload.scenario.chunk)
    using = sum(pilot.cores for pilot in pilots)
    holder = Account(HOLDER, using, max(0, held - wanted), 0.0, priority=1000.0)
    claimant = Account(CLAIMANT, back, wanted, wanted - back, priority=1.0, cores_per_job=chunk)
    return Snapshot(now, pilots, (holder, claimant))


def pilots_of(site: Site, now: int) -> tuple[Pilot, ...]:
    """Return all pilots as the agent sees them at `now` (UNIX s), with what they report."""
    if site.estimates is not None:
        site.estimates.watch(
            (int(name), now - one.start)
            for pilot in site.pilots.values()
            for name, one in pilot.workload.running.items()
        )
    return tuple(_pilot(site, pilot, now) for pilot in site.pilots.values())


def _pilot(site: Site, pilot: SimPilot, now: int) -> Pilot:
    lease, end = pilot.lease, pilot.orders.deadline
    return Pilot(
        run=run_name(pilot.run),
        name=f"pilot{pilot.run}",
        node=f"place{pilot.place}",
        account=HOLDER,
        user=HOLDER,
        cores=pilot.cores,
        started=int(lease.start),
        lease_end=None if lease.end is None else int(lease.end),
        report=pilot.report(site.estimates, site.workload.pilot, now),
        deadline=int(end) if pilot.run in site.ordered and end is not None else None,
        can_return=pilot.cores - 1 if pilot.can_return else 0,
        returned=pilot.returned,
        asked=pilot.asked,
    )


def run_name(number: int) -> str:
    """Return how the agent calls the run of that number; names sort as the numbers do."""
    return f"{number:09d}"


def decide(site: Site, snapshot: Snapshot, burst: Burst, policy: str) -> Decided:
    """Return the orders of one policy: the agent's plan, or another policy's choice among the agent's candidates."""
    now = snapshot.taken
    settings = replace(burst.scenario.site, policy=policy if is_policy(policy) else LEAST_WASTE)
    if policy == SITE_LEAST_WASTE:
        settings = with_site_defaults(settings, burst.scenario.min_grace)
    # Without parts: who decides once cannot take back what did not come.
    whole = replace(snapshot, pilots=tuple(replace(pilot, can_return=0) for pilot in snapshot.pilots))
    plan = make_plan(whole, now, settings, history_of(site, burst))
    held = sum(pilot.cores for pilot in snapshot.pilots)
    asked = plan.balance.deficit
    if is_policy(policy) or policy == SITE_LEAST_WASTE:
        found = [(one.pilot, one.deadline, one.waste) for one in plan.orders]
    else:
        chooser = BASELINES[policy] if policy != CLAIRVOYANT else Clairvoyant(truth_of(site), latest(snapshot, burst))
        found = [
            (choice.candidate.pilot, choice.option.deadline, choice.option.waste)
            for user in plan.users
            for choice in chooser.choose(user.open, user.need)
        ]
    return Decided(
        held,
        asked,
        min(asked, sum(pilot.cores for pilot, _, _ in found)),
        sum(waste for _, _, waste in found),
        tuple(SimOrder(int(one.run), now, deadline, deadline <= now + settings.notice) for one, deadline, _ in found),
    )


def history_of(site: Site, burst: Burst) -> History:
    """Return what the agent knows of earlier: the pilots that ended by themselves.

    Who knows every end keeps each promise; else the agent starts without a memory of those that were kept.
    """
    broken = {HOLDER: 0.0} if burst.scenario.estimates == EXACT else {}
    return History(broken=broken, ends={HOLDER: site.ends_seen()})


def latest(snapshot: Snapshot, burst: Burst) -> int:
    """Return the last deadline that any policy may give, UNIX s: the horizon, and a pilot's extra beyond its need."""
    it = burst.scenario.site
    grace = min(it.grace, it.max_grace)
    return snapshot.taken + max(it.notice, min(grace, it.horizon + it.margin + it.vacate + it.order_latency))


def truth_of(site: Site) -> dict[str, list[Truth]]:
    """Return when what runs now really ends, by pilot."""
    return {run_name(pilot.run): truth_of_pilot(site, pilot) for pilot in site.pilots.values()}


def truth_of_pilot(site: Site, pilot: SimPilot) -> list[Truth]:
    """Return when what runs now in one pilot really ends, and since when it has saved nothing."""
    return [
        (one.payload.cores, pilot.saved(one, site.now), one.start + site.true_seconds(pilot, one.payload))
        for one in pilot.workload.running.values()
    ]

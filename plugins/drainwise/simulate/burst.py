"""One burst: the snapshot that the agent would see at that moment, and what each policy decides on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.reclaim.plan import make_plan
from drainwise.reclaim.policy import LEAST_WASTE
from drainwise.reclaim.policy import POLICIES as AGENT
from drainwise.simulate.clairvoyant import Clairvoyant, Truth
from drainwise.simulate.feed import BEGIN
from drainwise.simulate.policies import BASELINES, CLAIRVOYANT
from drainwise.simulate.scenario import Scenario
from drainwise.simulate.sim_pilot import SimPilot
from drainwise.simulate.site import Site

HOLDER, COMER = "holder", "comer"
"""The account whose pilots hold the cores, and the one that suddenly wants some of them and is owed them."""


@dataclass(frozen=True)
class Burst:
    """number: within the replication. moment: s since the beginning of the trace."""

    replication: int
    number: int
    moment: int
    scenario: Scenario


@dataclass(frozen=True)
class Ask:
    """One pilot, by its run, is to be gone by `deadline` (UNIX s). kill: at once."""

    run: int
    deadline: int
    kill: bool


@dataclass(frozen=True)
class Decided:
    """Cores held by all pilots, asked for and given; predicted: waste of the orders in core-seconds."""

    held: int
    asked: int
    given: int
    predicted: int
    orders: tuple[Ask, ...]


def snapshot_of(site: Site, burst: Burst) -> Snapshot:
    """What the batch system and the pilots tell at the moment of the burst."""
    pilots = pilots_of(site, BEGIN + burst.moment)
    held = sum(pilot.cores for pilot in pilots)
    asked = round(held * burst.scenario.reclaimed)
    return Snapshot(
        BEGIN + burst.moment,
        pilots,
        (
            Principal(HOLDER, held, held - asked, 0.0, priority=1000.0),
            Principal(COMER, 0.0, asked, asked, priority=1.0),
        ),
    )


def pilots_of(site: Site, now: int) -> tuple[Pilot, ...]:
    """All pilots as the agent sees them at `now` (UNIX s), with what they report."""
    if site.estimates is not None:
        site.estimates.watch(
            (int(name), now - one.start)
            for pilot in site.pilots.values()
            for name, one in pilot.workload.running.items()
        )
    return tuple(_pilot(site, pilot, now) for pilot in site.pilots.values())


def _pilot(site: Site, pilot: SimPilot, now: int) -> Pilot:
    lease = pilot.lease
    return Pilot(
        run=_run(pilot.run),
        name=f"pilot{pilot.run}",
        node=f"place{pilot.place}",
        principal=HOLDER,
        user=HOLDER,
        cores=lease.cores,
        started=int(lease.start),
        lease_end=None if lease.end is None else int(lease.end),
        report=pilot.report(site.estimates, site.feed.pilot, now),
        deadline=_deadline(pilot) if pilot.run in site.asked else None,
    )


def _deadline(pilot: SimPilot) -> int | None:
    return None if pilot.orders.deadline is None else int(pilot.orders.deadline)


def _run(number: int) -> str:
    return f"{number:09d}"


def decide(site: Site, snapshot: Snapshot, burst: Burst, policy: str) -> Decided:
    """The orders of one policy: the agent's plan, or another policy's choice among the agent's candidates."""
    now = snapshot.taken
    settings = replace(burst.scenario.site, policy=policy if policy in AGENT else LEAST_WASTE)
    plan = make_plan(snapshot, now, settings)
    held = sum(pilot.cores for pilot in snapshot.pilots)
    asked = plan.balance.deficit
    if policy in AGENT:
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
        sum(pilot.cores for pilot, _, _ in found),
        sum(waste for _, _, waste in found),
        tuple(Ask(int(pilot.run), deadline, deadline <= now + settings.notice) for pilot, deadline, _ in found),
    )


def latest(snapshot: Snapshot, burst: Burst) -> int:
    """The last deadline that any policy may give, UNIX s: the horizon, and what a pilot gets beyond what it needs."""
    it = burst.scenario.site
    grace = min(it.grace, it.max_grace)
    return snapshot.taken + max(it.notice, min(grace, it.horizon + it.margin + it.vacate + it.told))


def truth_of(site: Site) -> dict[str, Sequence[Truth]]:
    """When what runs now really ends, by pilot."""
    return {
        _run(pilot.run): [
            (one.payload.cores, one.start, one.start + site.true_seconds(pilot, one.payload))
            for one in pilot.workload.running.values()
        ]
        for pilot in site.pilots.values()
    }

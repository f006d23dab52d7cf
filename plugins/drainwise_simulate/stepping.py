"""A stepwise policy on one burst: it is asked at each step, its orders are given and withdrawn, and all is followed."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.facts.errors import UsageError
from drainwise_simulate.demand_burst import (
    Burst,
    Decided,
    SimOrder,
    demand_on,
    history_of,
    run_name,
    truth_of_pilot,
)
from drainwise_simulate.policies.clairvoyant import Truth
from drainwise_simulate.policies.stepwise import Foreseen, StepDecision, StepOrder, StepView, StepwisePolicy
from drainwise_simulate.scenario import with_site_defaults
from drainwise_simulate.site import Site
from drainwise_simulate.workload import BEGIN


def follow_steps(site: Site, burst: Burst, policy: StepwisePolicy, wanted: int) -> Decided:
    """Ask a policy at each step until the horizon is over, and follow the site until the last ordered pilot is gone.

    The site has to be a copy with estimates of its own. Raises UsageError for an order that nobody can give.
    """
    begun = BEGIN + burst.moment
    due = begun + burst.scenario.site.horizon
    usual = max(1, round(burst.scenario.step))
    held = sum(pilot.lease.cores for pilot in site.pilots.values())
    earlier: list[tuple[int, StepDecision]] = []
    standing: dict[str, tuple[int, StepOrder]] = {}
    site.open_need, now, withdrawn = wanted, begun, 0
    while True:
        site.advance(now)
        view = StepView(
            now,
            begun,
            due,
            wanted,
            wanted - site.open_need,
            tuple(earlier),
            burst.scenario.site,
            with_site_defaults(burst.scenario.site, burst.scenario.min_grace),
            usual,
            lambda: demand_on(site, int(site.now), held, wanted, wanted - (site.open_need or 0)),
            lambda: history_of(site, burst),
            lambda until: future_of(site, until),
            lambda other: _trial(site.copy(), burst, other, wanted),
        )
        step = policy.step(view)
        earlier.append((now, step))
        _carry_out(site, step, now, standing)
        withdrawn += len(step.withdrawn)
        if now >= due or not (site.open_need or site.ordered):
            break
        again = now + usual if step.again is None else max(step.again, now + 1)
        now = min(due, again)
    site.serve_alone = False
    for run in list(site.pilots):
        site.ask(run, 0)
    while site.ordered and site.step():
        pass
    given, alone = wanted - site.open_need, site.alone
    site.open_need = None
    at_once = burst.scenario.site.notice
    orders = tuple(
        SimOrder(int(run), at, order.deadline, order.deadline <= at + at_once)
        for run, (at, order) in sorted(standing.items())
    )
    predicted = sum(order.waste for _, order in standing.values())
    return Decided(held, wanted, given, predicted, orders, alone, withdrawn, site.returned)


def _trial(site: Site, burst: Burst, policy: StepwisePolicy, wanted: int) -> tuple[int, float]:
    """Return the cores that a policy leaves missing, and the core-seconds that it wastes from the burst on."""
    before = site.destroyed + drained(site)
    found = follow_steps(site, burst, policy, wanted)
    return wanted - found.given, site.destroyed + drained(site) - before


def drained(site: Site) -> float:
    """Return the core-seconds that idled under orders until now, also those that were withdrawn."""
    return site.drained + sum(pilot.drained for pilot in site.pilots.values())


def _carry_out(site: Site, step: StepDecision, now: int, standing: dict[str, tuple[int, StepOrder]]) -> None:
    for name in step.withdrawn:
        if int(name) not in site.ordered:
            raise UsageError(f"the order of run {name} cannot be withdrawn: it has none")
        del standing[name]
        site.withdraw_order(int(name))
    for order in step.orders:
        if int(order.run) not in site.pilots or order.deadline < now:
            raise UsageError(f"run {order.run} cannot be ordered to end by {order.deadline}")
        standing[order.run] = (now, order)
        site.give_order(int(order.run), order.deadline)
    for run, pilot in list(site.pilots.items()):
        if pilot.asked or run_name(run) in step.returns:
            site.ask(run, pilot.returned + step.returns.get(run_name(run), 0))


def future_of(site: Site, until: int) -> Mapping[str, Foreseen]:
    """Return by run what each pilot of now will really do until `until` (UNIX s), if no other order were given."""
    ahead, runs = site.copy(), set(site.pilots)
    payloads = {run: truth_of_pilot(site, pilot) for run, pilot in site.pilots.items()}
    gone: dict[int, float] = {}

    def started(run: int, truth: Truth) -> None:
        if run in runs:
            payloads[run].append(truth)

    ahead.watch(started, gone.__setitem__)
    ahead.advance(until)
    return {run_name(run): Foreseen(payloads[run], gone.get(run)) for run in runs}

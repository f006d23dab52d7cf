"""What the agent does as Prometheus metrics: what it saw of the pool, what it decided, what became of its orders.

Labels are policies, outcomes and the accounts that the batch system charges, never a pilot's word. An account's name
may still be a user's own choice, so only names of a plain form are told, and only the first MOST_PRINCIPALS of them:
the others are one, OTHERS.
"""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from drainwise import __version__
from drainwise.agent.cycle import Cycle
from drainwise.journal.event import DONE, FAILED, SKIPPED
from drainwise.reclaim.action import Act, Outcome
from drainwise.reclaim.plan import Plan

MOST_PRINCIPALS = 50
OTHERS = "(others)"

ACTED, DRY_RUN, FAULT = "acted", "dry_run", "fault"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """The metrics of one agent, in `registry`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        self._principals: set[str] = set()

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"drainwise_{name}", text, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"drainwise_{name}", text, labels, registry=registry)

        build = Gauge("drainwise_build_info", "Always 1; the version of drainwise.", ("version",), registry=registry)
        build.labels(__version__).set(1)
        self._cycles = counter("cycles_total", "Cycles: acted, dry_run (also by the kill switch), fault.", "result")
        for result in (ACTED, DRY_RUN, FAULT):
            self._cycles.labels(result)
        self._duration = Histogram(
            "drainwise_cycle_duration_seconds", "How long a cycle took.", buckets=_SECONDS, registry=registry
        )
        self._last = gauge("last_cycle_timestamp_seconds", "When the last cycle began, UNIX time.")
        self._last_good = gauge(
            "last_decision_timestamp_seconds", "When the last cycle began that came to a decision, UNIX time."
        )
        self._next = gauge("next_cycle_seconds", "Pause before the next cycle; longer after a fault.")
        self._acting = gauge(
            "acting", "1 when the last cycle was to ask pilots, 0 in a dry run or under a kill switch."
        )
        self._demand = gauge("demand_cores", "Cores owed to those under quota who wait.")
        self._free = gauge("free_cores", "Unclaimed cores that they can use.")
        self._leaving = gauge("leaving_cores", "Cores on their way out already.")
        self._surplus = gauge("surplus_cores", "Cores held beyond the quotas.")
        self._deficit = gauge("deficit_cores", "Cores that must be given back now.")
        self._planned_cores = gauge("planned_cores", "Cores of the pilots that the last decision asks.")
        self._planned_waste = gauge("planned_waste_core_seconds", "What that should waste.")
        self._notices = gauge("notices", "What the last decision could not count on; the log has the sentences.")
        self._paused = gauge("paused_accounts", "Accounts of whose demand some does not count for now.")
        self._paused_cores = gauge("paused_demand_cores", "Cores that they wait for and that do not count.")
        self._closed = gauge("closed_nodes", "Nodes with pilots that cannot be asked.")
        self._orders = counter("orders_total", "Pilots asked, by what became of the order.", "policy", "outcome")
        self._ordered_cores = counter("ordered_cores_total", "Cores of the pilots that were asked.", "principal")
        self._ordered_waste = counter(
            "ordered_waste_core_seconds_total", "What those orders should waste.", "principal"
        )
        self._taken_back = counter("taken_back_total", "Orders taken back, by what became of that.", "outcome")
        for outcome in (DONE, SKIPPED, FAILED):
            self._taken_back.labels(outcome)
        self._tended = counter("tended_total", "Things finished that earlier orders had left behind.")

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        self._cycles.labels(_result(cycle)).inc()
        self._duration.observe(cycle.seconds)
        self._last.set(cycle.started)
        self._next.set(cycle.next_in)
        self._acting.set(cycle.acting)
        if cycle.plan is not None:
            self._last_good.set(cycle.started)
            self._decided(cycle.plan)
        if cycle.outcome is not None:
            self._done(cycle.outcome, "" if cycle.plan is None else cycle.plan.policy)

    def _decided(self, plan: Plan) -> None:
        balance = plan.balance
        self._demand.set(balance.demand)
        self._free.set(balance.free)
        self._leaving.set(balance.leaving)
        self._surplus.set(balance.surplus)
        self._deficit.set(balance.deficit)
        self._planned_cores.set(sum(user.cores_given for user in plan.users))
        self._planned_waste.set(plan.waste)
        self._notices.set(len(plan.notices))
        self._paused.set(len(plan.paused))
        self._paused_cores.set(sum(one.cores for one in plan.paused))
        self._closed.set(plan.closed_nodes)

    def _done(self, outcome: Outcome, policy: str) -> None:
        for act in outcome.acts:
            self._orders.labels(policy, act.outcome).inc()
            if act.outcome == DONE:
                self._asked(act)
        for release in outcome.released:
            self._taken_back.labels(release.outcome).inc()
        self._tended.inc(len(outcome.tended))

    def _asked(self, act: Act) -> None:
        principal = self._label(act.order.pilot.principal)
        self._ordered_cores.labels(principal).inc(act.order.pilot.cores)
        self._ordered_waste.labels(principal).inc(act.order.waste)

    def _label(self, principal: str) -> str:
        """The account as a label: one of few, and of a form that breaks nobody's display."""
        if principal not in self._principals:
            if len(self._principals) >= MOST_PRINCIPALS or not _PLAIN.fullmatch(principal):
                return OTHERS
            self._principals.add(principal)
        return principal


def _result(cycle: Cycle) -> str:
    if cycle.fault or (cycle.outcome is not None and cycle.outcome.fault):
        return FAULT
    return ACTED if cycle.acting else DRY_RUN

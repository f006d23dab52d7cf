"""Count what the agent does as Prometheus metrics: its view of the pool, its decisions, the outcome of its orders.

Labels are policies, outcomes and the accounts that the batch system charges, never a pilot's claims. An account's name
may still be a user's own choice, so only names of a plain form are labels, and only the first MOST_ACCOUNTS of them:
the others are one, OTHERS.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from drainwise import __version__
from drainwise.agent.act_outcome import Act, CycleOutcome
from drainwise.agent.cycle import Cycle
from drainwise.agent.pool_view import PoolView
from drainwise.journal.event import (
    BACKING_OFF,
    DENIED,
    DONE,
    DRY_RUN,
    OK,
    PAUSED,
    REFUSED,
    SKIPPED,
    UNANSWERED,
    UNREACHABLE,
    Event,
    number,
    truth,
)
from drainwise.pool.facts import Account
from drainwise.pool.node_versions import UNKNOWN
from drainwise.reclaim.columns import STANDINGS
from drainwise.reclaim.plan import Plan

MOST_ACCOUNTS = 50
OTHERS = "(others)"

_RESULTS = ACTED, DRY, FAULT = "acted", "dry_run", "fault"
_OUTCOMES = (DONE, SKIPPED, REFUSED, DENIED, UNREACHABLE, UNANSWERED)
_STATES = (OK, DRY_RUN, PAUSED, BACKING_OFF)
_ENDS = LEFT, VACATED, BY_OTHERS = "left", "vacated", "by_others"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_TIMES_TO_FREE = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0, 86400.0)


class Metrics:
    """The metrics of one agent, in `registry`; policy: with which it begins.

    A series that counts is there with 0 before its first event, so that an increase over that event is seen.
    """

    def __init__(self, policy: str, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        self._accounts, self._shown = set[str](), dict[Gauge, set[str]]()
        ProcessCollector(registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"drainwise_{name}", text, labels, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"drainwise_{name}", text, labels, registry=registry)

        gauge("build_info", "Always 1; the version of drainwise.", "version").labels(__version__).set(1)
        self._cycles = counter("cycles_total", "Cycles: acted, dry_run (also by the kill switch), fault.", "result")
        for result in _RESULTS:
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
            "acting", "1 when the last cycle was to give orders, 0 in a dry run or under a kill switch."
        )
        self._state = gauge("state", "1 for the state of the agent, 0 for the others.", "state")
        self._demand = gauge("demand_cores", "Cores owed to those under quota who wait.")
        self._free = gauge("free_cores", "Unclaimed cores that they can use.")
        self._leaving = gauge("leaving_cores", "Cores on their way out already.")
        self._surplus = gauge("surplus_cores", "Cores held beyond the quotas.")
        self._deficit = gauge("deficit_cores", "Cores that must be given back now.")
        self._planned_cores = gauge("planned_cores", "Cores of the orders of the last decision.")
        self._planned_waste = gauge("planned_waste_core_seconds", "What that should waste.")
        self._planned_parts = gauge(
            "planned_part_cores", "Cores that pilots are to return while they go on, by the last decision."
        )
        self._notices = gauge("notices", "What the last decision could not count on; the log has the sentences.")
        self._paused = gauge("paused_accounts", "Accounts of whose demand some does not count for now.")
        self._paused_cores = gauge("paused_demand_cores", "Cores that they wait for and that do not count.")
        self._closed = gauge("closed_nodes", "Nodes with pilots that cannot be given an order.")
        self._stuck = gauge("stuck_pilots", "Pilots in which their nodes have seen no payload for long.")
        self._unmet = gauge("unmet_cores", "Cores that must be given back and for which nobody gets an order now.")
        self._limited = gauge("limited_cores", "Cores of these that a limit of the site leaves to a later cycle.")
        self._pilots = gauge("pilots", "Pilots, by how far their report is believed.", "standing")
        self._pilot_cores = gauge("pilot_cores", "Cores of these pilots.", "standing")
        self._silent_nodes, self._returned = (
            gauge("silent_nodes", "Nodes with pilots of which nothing is reported or seen."),
            gauge("returned_cores", "Cores that pilots have returned and go on without."),
        )
        self._nodes = gauge("nodes", "Nodes by the version of drainwise that they run.", "version")
        self._in_use = gauge("account_used_cores", "Cores that an account uses.", "account")
        self._owed = gauge("account_owed_cores", "Cores that an account is owed.", "account")
        self._wanted = gauge("account_wanted_cores", "Cores that an account waits for.", "account")
        self._open_orders = gauge("open_orders", "Orders whose pilot has not ended yet.")
        self._overdue = gauge("overdue_orders", "Orders of these whose deadline has passed.")
        self._orders = counter("orders_total", "Orders, by what became of them.", "policy", "outcome")
        self._ordered_cores = counter("ordered_cores_total", "Cores of the pilots that got an order.", "account")
        self._ordered_waste = counter("ordered_waste_core_seconds_total", "What those orders should waste.", "account")
        self._withdrawn, self._parts = (
            counter("withdrawn_total", "Orders withdrawn, by what became of that.", "outcome"),
            counter("parts_total", "Pilots asked to return cores, by what became of that.", "outcome"),
        )
        self._begin_with(policy)
        self._ends = counter("ended_pilots_total", "Pilots with an order that have ended, by how.", "end")
        for end in _ENDS:
            self._ends.labels(end)
        self._promised = counter("promised_waste_core_seconds_total", "What ending these should waste.", "account")
        self._wasted = counter("realised_waste_core_seconds_total", "What ending these has wasted.", "account")
        self._time_to_free = Histogram(
            "drainwise_time_to_free_seconds",
            "How long from an order to the end of its pilot.",
            buckets=_TIMES_TO_FREE,
            registry=registry,
        )
        self._followups = counter("followups_total", "Things finished that earlier orders had left behind.")

        self._unused = counter(
            "freed_unused_cores_total", "Cores that came back and that nobody under quota used in time."
        )

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        self._cycles.labels(_result(cycle)).inc()
        self._duration.observe(cycle.seconds)
        self._last.set(cycle.started)
        self._next.set(cycle.next_in)
        self._acting.set(cycle.acting)
        self._unused.inc(cycle.unused)
        for state in _STATES:
            self._state.labels(state.replace(" ", "_")).set(state == cycle.state)
        if cycle.view is not None:
            self._seen(cycle.view)
        if cycle.plan is not None:
            self._last_good.set(cycle.started)
            self._decided(cycle.plan)
        if cycle.outcome is not None:
            self._done(cycle.outcome, "" if cycle.plan is None else cycle.plan.policy)

    def _begin_with(self, policy: str) -> None:
        for outcome in _OUTCOMES:
            self._orders.labels(policy, outcome)
            self._withdrawn.labels(outcome)
            self._parts.labels(outcome)

    def _seen(self, view: PoolView) -> None:
        for standing in STANDINGS:
            self._pilots.labels(standing).set(view.pilots.get(standing, 0))
            self._pilot_cores.labels(standing).set(view.cores.get(standing, 0))
        self._returned.set(view.returned)
        self._silent_nodes.set(view.silent_nodes)
        self._have(self._nodes, ((version or UNKNOWN, nodes) for version, nodes in view.versions))
        self._open_orders.set(view.open_orders)
        self._overdue.set(view.overdue)
        self._account_cores(view.accounts)
        for event in view.ended:
            self._ended(event)

    def _account_cores(self, accounts: tuple[Account, ...]) -> None:
        names = [self._label(one.name) for one in accounts]
        self._have(self._in_use, zip(names, (one.cores_in_use for one in accounts)))
        self._have(self._owed, zip(names, (one.cores_owed for one in accounts)))
        self._have(self._wanted, zip(names, (one.cores_wanted for one in accounts)))

    def _have(self, gauge: Gauge, values: Iterable[tuple[str, float]]) -> None:
        """Give a gauge exactly these series, by label; those of one label add up."""
        sums = defaultdict[str, float](float)
        for label, value in values:
            sums[label] += value
        for label in self._shown.get(gauge, set()) - sums.keys():
            gauge.remove(label)  # the oldest prometheus_client that is served has no Gauge.clear
        for label, value in sums.items():
            gauge.labels(label).set(value)
        self._shown[gauge] = set(sums)

    def _ended(self, event: Event) -> None:
        vacated, by_others = truth(event, "vacated"), truth(event, "by_others")
        self._ends.labels(BY_OTHERS if by_others else VACATED if vacated else LEFT).inc()
        self._time_to_free.observe(max(0.0, number(event, "ended") - number(event, "ordered")))
        account = self._label(str(event["account"]))
        self._promised.labels(account).inc(number(event, "predicted"))
        self._wasted.labels(account).inc(number(event, "realised"))

    def _decided(self, plan: Plan) -> None:
        self._begin_with(plan.policy)
        balance = plan.balance
        self._demand.set(balance.demand)
        self._free.set(balance.free)
        self._leaving.set(balance.leaving)
        self._surplus.set(balance.surplus)
        self._deficit.set(balance.deficit)
        self._planned_cores.set(sum(user.cores_given for user in plan.users))
        self._planned_waste.set(plan.waste)
        self._planned_parts.set(sum(user.cores_returned for user in plan.users))
        given = sum(user.cores_given + user.cores_returned for user in plan.users if not user.request)
        self._unmet.set(max(0, balance.deficit - given))
        self._limited.set(sum(user.later for user in plan.users))
        self._notices.set(len(plan.notices))
        self._paused.set(len(plan.paused))
        self._paused_cores.set(sum(one.cores for one in plan.paused))
        self._closed.set(plan.closed_nodes)
        self._stuck.set(plan.stuck)

    def _done(self, outcome: CycleOutcome, policy: str) -> None:
        for act in outcome.acts:
            self._orders.labels(policy, act.outcome).inc()
            if act.outcome == DONE:
                self._count_order(act)
        for result in outcome.withdrawn:
            self._withdrawn.labels(result.outcome).inc()
        for part in outcome.parts:
            self._parts.labels(part.outcome).inc()
        self._followups.inc(len(outcome.followups))

    def _count_order(self, act: Act) -> None:
        account = self._label(act.order.pilot.account)
        self._ordered_cores.labels(account).inc(act.order.pilot.cores)
        self._ordered_waste.labels(account).inc(act.order.waste)

    def _label(self, account: str) -> str:
        """Return the account as a label: one of few, and of a form that breaks nobody's display."""
        if account not in self._accounts:
            if len(self._accounts) >= MOST_ACCOUNTS or not _PLAIN.fullmatch(account):
                return OTHERS
            self._accounts.add(account)
            for series in (self._ordered_cores, self._ordered_waste, self._promised, self._wasted):
                series.labels(account)
        return account


def _result(cycle: Cycle) -> str:
    if cycle.fault or (cycle.outcome is not None and (cycle.outcome.fault or cycle.outcome.halted)):
        return FAULT
    return ACTED if cycle.acting else DRY

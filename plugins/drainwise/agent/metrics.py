"""Count what the agent does as Prometheus metrics: its view of the pool, its decisions, the outcome of its orders.

Labels are policies, outcomes and the accounts that the batch system charges, never a pilot's claims. An account's name
may still be a user's own choice, so only names of a plain form are labels, and only the first MOST_ACCOUNTS of them:
the others are one, OTHERS.
"""

from __future__ import annotations

import re
from collections import Counter as Sums
from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from drainwise import __version__
from drainwise.agent.cycle import Cycle
from drainwise.agent.cycle_facts import CycleOutcome, PoolView
from drainwise.journal.event import Event, Outcome, State, number, truth
from drainwise.journal.outcomes import billed_in
from drainwise.pilotad.report import STANDINGS
from drainwise.pool.notices import UNKNOWN
from drainwise.reclaim.decide.open_until import held_cores
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import LIMITS

MOST_ACCOUNTS = 50
OTHERS = "(others)"

_RESULTS = ACTED, DRY, FAULT = "acted", "dry_run", "fault"
_OUTCOMES = (Outcome.DONE, Outcome.SKIPPED, Outcome.REFUSED, Outcome.DENIED, Outcome.UNREACHABLE, Outcome.UNANSWERED)
_STATES = (State.OK, State.DRY_RUN, State.PAUSED, State.BACKING_OFF)
_ENDS = LEFT, VACATED, BY_OTHERS = "left", "vacated", "by_others"

_POLICY = "policy"
"""The key that leaves cores to a later cycle where a need stays open: pilots that cost less are waited for."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_TIMES_TO_FREE = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0, 86400.0)


_GAUGES: dict[str, tuple[str, ...]] = {
    "build_info": ("Always 1; the version of drainwise.", "version"),
    "first_cycle_timestamp_seconds": ("When the agent's first cycle began, UNIX time.",),
    "last_cycle_timestamp_seconds": ("When the last cycle began, UNIX time.",),
    "last_decision_timestamp_seconds": ("When the last cycle began that came to a decision, UNIX time.",),
    "next_cycle_seconds": ("Pause before the next cycle; longer after a fault.",),
    "acting": ("1 when the last cycle was to give orders, 0 in a dry run or under a kill switch.",),
    "state": ("1 for the state of the agent, 0 for the others.", "state"),
    "demand_cores": ("Cores owed to those under quota who wait.",),
    "free_cores": ("Unclaimed cores that they can use.",),
    "leaving_cores": ("Cores on their way out already.",),
    "surplus_cores": ("Cores held beyond the quotas.",),
    "deficit_cores": ("Cores that must be given back now.",),
    "planned_cores": ("Cores of the orders of the last decision.",),
    "planned_waste_core_seconds": ("What that should waste.",),
    "planned_part_cores": ("Cores that pilots are to return while they go on, by the last decision.",),
    "notices": ("What the last decision could not count on; the log has the sentences.",),
    "paused_accounts": ("Accounts of whose demand some does not count for now.",),
    "paused_demand_cores": ("Cores that they wait for and that do not count.",),
    "unplaced_jobs": ("Waiting jobs that the batch system does not start where they should.", "account"),
    "closed_nodes": ("Nodes with pilots that cannot be given an order.",),
    "stuck_pilots": ("Pilots in which their nodes have seen no payload for long.",),
    "unmet_cores": ("Cores that must be given back and for which nobody gets an order now.",),
    "limited_cores": ("Cores of these that a key of [reclaim] leaves to a later cycle.", "limit"),
    "pilots": ("Pilots, by how far their report is believed.", "standing"),
    "pilot_cores": ("Cores of these pilots.", "standing"),
    "silent_nodes": ("Nodes with pilots of which nothing is reported or seen of late.",),
    "returned_cores": ("Cores that pilots have returned and go on without.",),
    "nodes": ("Nodes by the version of drainwise that they run.", "version"),
    "account_used_cores": ("Cores that an account uses.", "account"),
    "account_owed_cores": ("Cores that an account is owed.", "account"),
    "account_wanted_cores": ("Cores that an account waits for.", "account"),
    "account_doubted_pilots": ("Pilots of users whose claims count less, since earlier ones were wrong.", "account"),
    "open_orders": ("Orders whose pilot has not ended yet.",),
    "overdue_orders": ("Orders of these whose deadline has passed.",),
}
_WASTE_LABELS = "waste", "account", "unit"
_COUNTERS: dict[str, tuple[str, ...]] = {
    "cycles_total": ("Cycles: acted, dry_run (also by the kill switch), fault.", "result"),
    "orders_total": ("Orders, by what became of them.", "policy", "outcome"),
    "ordered_cores_total": ("Cores of the pilots that got an order.", "account"),
    "ordered_waste_core_seconds_total": ("What those orders should waste.", "account"),
    "withdrawn_total": ("Orders withdrawn, by what became of that.", "outcome"),
    "parts_total": ("Pilots asked to return cores, by what became of that.", "outcome"),
    "ended_pilots_total": ("Pilots with an order that have ended, by how.", "end"),
    "promised_waste_core_seconds_total": ("What ending these should waste.", "account"),
    "realised_waste_core_seconds_total": ("What ending these has wasted.", "account"),
    "billed_waste_total": (
        "Waste that was ordered, promised and realised, in hours of what is billed.",
        *_WASTE_LABELS,
    ),
    "followups_total": ("Things finished that earlier orders had left behind.",),
    "freed_unused_cores_total": ("Cores that came back and that nobody under quota used in time.",),
}
"""What each says, by its name after `drainwise_`, and its labels."""
_BY_ACCOUNT = [name for name, (_, *labels) in _COUNTERS.items() if labels == ["account"]]


class Metrics:
    """The metrics of one agent, in `registry`; policy: with which it begins.

    served: these and `process_*`; a file of metrics is read by a program that has `process_*` of its own. A series that
    counts is there with 0 before its first event, so that an increase over that event is seen.
    """

    def __init__(self, policy: str, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        self._accounts: set[str] = set()
        self._shown: dict[str, set[str]] = {}
        self._has_begun = False
        self.served = CollectorRegistry()
        ProcessCollector(registry=self.served)
        self.served.register(registry)
        self._gauges = {
            name: Gauge(f"drainwise_{name}", text, labels, registry=registry)
            for name, (text, *labels) in _GAUGES.items()
        }
        self._counters = {
            name: Counter(f"drainwise_{name}", text, labels, registry=registry)
            for name, (text, *labels) in _COUNTERS.items()
        }
        self._duration = Histogram(
            "drainwise_cycle_duration_seconds", "How long a cycle took.", buckets=_SECONDS, registry=registry
        )
        self._time_to_free = Histogram(
            "drainwise_time_to_free_seconds",
            "How long from an order to the end of its pilot.",
            buckets=_TIMES_TO_FREE,
            registry=registry,
        )
        self._gauges["build_info"].labels(__version__).set(1)
        for result in _RESULTS:
            self._counters["cycles_total"].labels(result)
        for name in _BY_ACCOUNT:
            self._counters[name].labels(OTHERS)
        for end in _ENDS:
            self._counters["ended_pilots_total"].labels(end)
        self._begin_with(policy)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        if not self._has_begun:
            self._gauges["first_cycle_timestamp_seconds"].set(cycle.started)
            self._has_begun = True
        self._counters["cycles_total"].labels(_result(cycle)).inc()
        self._duration.observe(cycle.seconds)
        self._gauges["last_cycle_timestamp_seconds"].set(cycle.started)
        self._gauges["next_cycle_seconds"].set(cycle.next_in)
        self._gauges["acting"].set(cycle.acting)
        self._counters["freed_unused_cores_total"].inc(cycle.unused)
        for state in _STATES:
            self._gauges["state"].labels(state.replace(" ", "_")).set(state == cycle.state)
        if cycle.view is not None:
            self._seen(cycle.view)
        if cycle.plan is not None:
            self._gauges["last_decision_timestamp_seconds"].set(cycle.started)
            self._decided(cycle.plan)
        if cycle.outcome is not None:
            self._done(cycle.outcome, "" if cycle.plan is None else cycle.plan.policy)

    def _begin_with(self, policy: str) -> None:
        for outcome in _OUTCOMES:
            self._counters["orders_total"].labels(policy, outcome)
            self._counters["withdrawn_total"].labels(outcome)
            self._counters["parts_total"].labels(outcome)

    def _seen(self, view: PoolView) -> None:
        for standing in STANDINGS:
            self._gauges["pilots"].labels(standing).set(view.pilots.get(standing, 0))
            self._gauges["pilot_cores"].labels(standing).set(view.cores.get(standing, 0))
        self._gauges["returned_cores"].set(view.returned)
        self._gauges["silent_nodes"].set(len(view.silent))
        self._have("nodes", ((version or UNKNOWN, nodes) for version, nodes in view.versions))
        self._gauges["open_orders"].set(view.open_orders)
        self._gauges["overdue_orders"].set(view.overdue)
        names = [self._label(one.name) for one in view.accounts]
        self._have("account_used_cores", zip(names, (one.cores_in_use for one in view.accounts)))
        self._have("account_owed_cores", zip(names, (one.cores_owed for one in view.accounts)))
        self._have("account_wanted_cores", zip(names, (one.cores_wanted for one in view.accounts)))
        self._have("account_doubted_pilots", ((self._label(name), count) for name, count in view.doubted.items()))
        for event in view.ended:
            self._ended(event)

    def _have(self, name: str, values: Iterable[tuple[str, float]]) -> None:
        """Give a gauge exactly these series, by label; those of one label add up."""
        sums = defaultdict[str, float](float)
        for label, value in values:
            sums[label] += value
        for label in self._shown.get(name, set()) - sums.keys():
            self._gauges[name].remove(label)  # the oldest prometheus_client that is served has no Gauge.clear
        for label, value in sums.items():
            self._gauges[name].labels(label).set(value)
        self._shown[name] = set(sums)

    def _ended(self, event: Event) -> None:
        vacated, by_others = truth(event, "vacated"), truth(event, "by_others")
        self._counters["ended_pilots_total"].labels(BY_OTHERS if by_others else VACATED if vacated else LEFT).inc()
        self._time_to_free.observe(max(0.0, number(event, "ended") - number(event, "ordered")))
        account = self._label(str(event["account"]))
        self._counters["promised_waste_core_seconds_total"].labels(account).inc(number(event, "predicted"))
        self._counters["realised_waste_core_seconds_total"].labels(account).inc(number(event, "realised"))
        for what, name in (("promised", "predicted"), ("realised", "realised")):
            self._bill(what, account, number(event, name), *billed_in(event))

    def _decided(self, plan: Plan) -> None:
        self._begin_with(plan.policy)
        for name in ("demand", "free", "leaving", "surplus", "deficit"):
            self._gauges[f"{name}_cores"].set(getattr(plan.balance, name))
        self._gauges["planned_cores"].set(sum(user.cores_given for user in plan.users))
        self._gauges["planned_waste_core_seconds"].set(plan.waste)
        self._gauges["planned_part_cores"].set(sum(user.cores_returned for user in plan.users))
        given = sum(user.cores_given + user.cores_returned for user in plan.users if not user.request)
        self._gauges["unmet_cores"].set(max(0, plan.balance.deficit - given))
        limited = Sums[str]()
        for user in plan.users:
            waits = held_cores([user])
            limited[_POLICY] += waits
            limited[user.limited_by] += user.later - waits
        for limit in (*LIMITS, _POLICY):
            self._gauges["limited_cores"].labels(limit).set(limited[limit])
        self._gauges["notices"].set(len(plan.notices))
        self._gauges["paused_accounts"].set(len(plan.paused))
        self._gauges["paused_demand_cores"].set(sum(one.cores for one in plan.paused))
        none = ((label, 0) for label in self._shown.get("account_wanted_cores", ()))
        self._have("unplaced_jobs", [*none, *((self._label(one.account), one.jobs) for one in plan.unplaced)])
        self._gauges["closed_nodes"].set(plan.closed_nodes)
        self._gauges["stuck_pilots"].set(plan.stuck)

    def _done(self, outcome: CycleOutcome, policy: str) -> None:
        for act in outcome.acts:
            self._counters["orders_total"].labels(policy, act.outcome).inc()
            if act.outcome == Outcome.DONE:
                account = self._label(act.order.pilot.account)
                self._counters["ordered_cores_total"].labels(account).inc(act.order.pilot.cores)
                self._counters["ordered_waste_core_seconds_total"].labels(account).inc(act.order.waste)
                self._bill("ordered", account, act.order.waste, act.order.candidate.billed, act.order.candidate.unit)
        for result in outcome.withdrawn:
            self._counters["withdrawn_total"].labels(result.outcome).inc()
        for part in outcome.parts:
            self._counters["parts_total"].labels(part.outcome).inc()
        self._counters["followups_total"].inc(len(outcome.followups))

    def _bill(self, what: str, account: str, waste: float, billed: float, unit: str) -> None:
        self._counters["billed_waste_total"].labels(what, account, unit).inc(waste * billed / 3600)

    def _label(self, account: str) -> str:
        """Return the account as a label: one of few, and of a form that breaks nobody's display."""
        if account not in self._accounts:
            if len(self._accounts) >= MOST_ACCOUNTS or not _PLAIN.fullmatch(account):
                return OTHERS
            self._accounts.add(account)
            for name in _BY_ACCOUNT:
                self._counters[name].labels(account)
        return account


def _result(cycle: Cycle) -> str:
    if cycle.fault or (cycle.outcome is not None and (cycle.outcome.fault or cycle.outcome.halted)):
        return FAULT
    return ACTED if cycle.acting else DRY

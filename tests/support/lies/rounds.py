"""Play round after round of demand, and carry on what the agent learns of each user: what does a user gain that lies.

In each round both users, each with an account of its own, are to give back the same share of their cores. The agent
decides with what it has learned so far, and its orders are followed until the last pilot is gone. What a user gains is
how long it holds the cores that it is to give back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from drainwise.journal.outcomes import OpenOrder, broken_probability, is_kept, realised_waste
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.columns import claimed_values
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import DAY, History, PastOrder, PilotOutcome, trust_by_user
from drainwise.reclaim.plan import Order
from drainwise_simulate.demand_burst import CLAIMANT, fitting, moments, pilots_of
from drainwise_simulate.scenario import SCOUTS, Scenario
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN, SimulatedEstimates, workload_of
from lies.lie import Lie
from lies.lying_site import USERS, LyingSite

_HEARD = 600  # seconds between two looks at the reports of pilots with an order


@dataclass(frozen=True)
class Gained:
    """Of one user over some rounds: cores that it gave back, and the core-seconds for which it held them before."""

    cores: int = 0
    held: int = 0

    @property
    def seconds(self) -> float:
        """Seconds from the demand until a core was free, on average; 0 where none was given back."""
        return self.held / self.cores if self.cores else 0.0

    def plus(self, other: Gained) -> Gained:
        """Return the gain of both."""
        return Gained(self.cores + other.cores, self.held + other.held)


class _Learned:
    """What the agent's journal would know, and what each user gained."""

    def __init__(self, scenario: Scenario, *, is_kept_up: bool) -> None:
        self._scenario, self._is_kept_up = scenario, is_kept_up
        self._outcomes: list[PilotOutcome] = []
        self._past: list[PastOrder] = []
        self.gained: list[dict[str, Gained]] = []

    def history(self, now: int) -> History:
        """Return what is known at `now` (UNIX s)."""
        trust = trust_by_user(self._outcomes, now) if self._is_kept_up else {}
        broken = {user: broken_probability(one.leaving, one.broken) for user, one in trust.items()}
        return History(orders=tuple(one for one in self._past if one.time > now - DAY), trust=trust, broken=broken)

    def begin(self) -> None:
        """Begin a round."""
        self.gained.append(dict.fromkeys(USERS, Gained()))

    def close(self, order: OpenOrder, site: LyingSite) -> None:
        """Take in how the pilot of an order ended."""
        ending = site.ended[order.run]
        realised, possible = realised_waste(order, ending)
        kept = is_kept(order, ending)
        self._past.append(PastOrder(order.ordered, order.user, order.cores))
        held = order.cores * max(0, ending.ended - order.ordered)
        self.gained[-1][order.user] = self.gained[-1][order.user].plus(Gained(order.cores, held))
        if order.claims is not None:
            self._outcomes.append(
                PilotOutcome(order.run, order.user, ending.ended, order.predicted, realised, possible, kept)
            )


def play(
    jobs: Sequence[TraceJob], scenario: Scenario, lie: Lie | None, replication: int = 0, *, with_trust: bool = True
) -> list[dict[str, Gained]]:
    """Return what each of `USERS` gained, round by round; `lie`: what the first one's pilots tell.

    A moment of the scenario at which the last round is not over is left out.

    with_trust: whether the agent remembers. Raises UsageError when no job can run.
    """
    able, _ = fitting(jobs, scenario)
    workload = workload_of(able, scenario, replication)
    estimates = SimulatedEstimates(able, workload.factors) if scenario.estimates == SCOUTS else None
    site, learned = LyingSite(workload, estimates, lie, scenario.site), _Learned(scenario, is_kept_up=with_trust)
    for moment in moments(able, scenario, replication):
        if site.now > BEGIN + moment:
            continue  # the last round is not over
        site.advance(BEGIN + moment)
        for place in site.freed[:]:
            site.give_back(place)
        site.freed.clear()
        _round(site, learned, scenario)
    return learned.gained


def _round(site: LyingSite, learned: _Learned, scenario: Scenario) -> None:
    now = int(site.now)
    learned.begin()
    plan = make_plan(_snapshot(site, scenario), now, scenario.site, learned.history(now))
    open_orders = {order.pilot.run: _opened(order, now, scenario) for order in plan.orders}
    for order in plan.orders:
        site.give_order(int(order.pilot.run), order.deadline)
    while site.ordered:
        site.advance(site.now + _HEARD)
        heard = int(site.now)
        for pilot in _pilots(site) if site.ordered else ():
            if pilot.run in open_orders:
                open_orders[pilot.run] = open_orders[pilot.run].with_report_of(pilot, heard)
    for opened in open_orders.values():
        learned.close(opened, site)


def _pilots(site: LyingSite) -> tuple[Pilot, ...]:
    users = {pilot.run: site.user_of(pilot.place) for pilot in site.pilots.values()}
    return tuple(
        replace(one, account=users[int(one.run)], user=users[int(one.run)]) for one in pilots_of(site, int(site.now))
    )


def _snapshot(site: LyingSite, scenario: Scenario) -> Snapshot:
    pilots = _pilots(site)
    held = Counter[str]()
    for pilot in pilots:
        held[pilot.user] += pilot.cores
    asked = {user: round(held[user] * scenario.reclaimed) for user in USERS}
    over = (Account(user, held[user], held[user] - asked[user], 0.0, priority=1000.0) for user in USERS)
    wanted = float(sum(asked.values()))
    return Snapshot(int(site.now), pilots, (*over, Account(CLAIMANT, 0.0, wanted, wanted, priority=1.0)))


def _opened(order: Order, now: int, scenario: Scenario) -> OpenOrder:
    pilot = order.pilot
    said = claimed_values(pilot, now, scenario.site.heartbeat_limit)
    return OpenOrder(
        run=pilot.run,
        name=pilot.name,
        node=pilot.node,
        account=pilot.account,
        user=pilot.user,
        cores=pilot.cores,
        started=pilot.started,
        ordered=now,
        deadline=order.deadline,
        kind=order.kind,
        draining=order.candidate.draining,
        predicted=order.promised,
        claims=said,
        since=now,
        promised=said,
    )

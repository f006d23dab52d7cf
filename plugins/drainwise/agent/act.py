"""Carry out a plan: each act is checked against a new snapshot, done once, and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from drainwise.agent.act_outcome import ON_ITS_WAY, RUN_GONE, Act, CycleOutcome, WithdrawalResult, outcome_of
from drainwise.agent.missing import Missing
from drainwise.agent.parts import ask_for_parts, is_to_ask
from drainwise.facts.errors import PoolError
from drainwise.facts.units import clock
from drainwise.journal.entries import order_event, withdrawal_event
from drainwise.journal.event import DENIED, DONE, REFUSED, SKIPPED, UNANSWERED
from drainwise.journal.file import Journal
from drainwise.pool.facts import Pilot, Pool
from drainwise.pool.kept_room import KeepsRooms
from drainwise.pool.scope import with_scope
from drainwise.reclaim.decide.decision import Looked, look_at
from drainwise.reclaim.decide.on_request import with_requests
from drainwise.reclaim.decide.open_until import open_until, with_ending_leases
from drainwise.reclaim.history import History, with_unanswered
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.quota import with_far_ends
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.untaken_room import with_untaken
from drainwise.reclaim.withdrawal import Withdrawal, withdrawals

LOOK_AGAIN = 60
"""Seconds after which no act stands on a snapshot any more; an order to a silent node may take half of that."""

_MOST_DENIED = 3
"""Nodes that refuse whoever gives orders while none takes one, after which no other is tried in this cycle."""

_PLACE = attrgetter("node", "account", "user", "cores")
"""The facts of a run that the plan stood on and that must still hold."""


def carry_out(
    plan: Plan,
    pool: Pool,
    settings: ReclaimSettings,
    time: Callable[[], int],
    journal: Journal,
    history: History | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> CycleOutcome:
    """Withdraw what the plan says, then give its orders to `pool`; `time` tells the UNIX time.

    The snapshot is read again first: a run that has ended, or is on its way by now, is skipped, so that neither the
    next run of the job nor the next job in its place can be hit; no more is taken than is still needed, and an order
    is withdrawn only when its reason is still gone. When that look is LOOK_AGAIN old there is another one; without it
    no further order is given. One act that fails does not stop the others, unless the batch system as a whole refuses
    or does not answer; no further order goes to a node that did so. `history` is what the plan knew of earlier cycles;
    `stopping` is called before each act, and no further one is done once it is true.
    Raises PoolUnreachable, with nothing done, when the second snapshot cannot be had or is not whole, and
    DrainwiseError when the journal cannot be written.
    """
    if not (plan.orders or plan.withdrawals or is_to_ask(plan)):
        return CycleOutcome(())
    acting = _Acting(pool, settings, time, journal, history or History(), stopping)
    look = acting.look()
    withdrawn = acting.withdraw_order(plan, look)
    outcome = acting.give(plan, look, withdrawn)
    if outcome.halted or not is_to_ask(plan):
        return outcome
    owed = look.waits.balance.demand
    return replace(outcome, parts=ask_for_parts(plan, pool, look.running, owed, time, journal, stopping))


@dataclass(frozen=True)
class _Look:
    """What the batch system showed at `now` (UNIX s): what waits, and what runs by name."""

    now: int
    waits: Looked
    running: Mapping[str, Pilot]

    def is_old(self, now: int) -> bool:
        """Return whether the snapshot is too old at `now` (UNIX s) to act on."""
        return not 0 <= now - self.now <= LOOK_AGAIN


@dataclass
class _Acting:
    """The acts of one cycle. halted: as in CycleOutcome. avoided: nodes that take no order now, and why.

    unanswered: the deadlines of this cycle's orders that nobody answered, by run. denied: nodes that refused whoever
    gives orders. taken: orders that were taken. kept: whether room is kept on a place, in words, by its name.
    """

    pool: Pool
    settings: ReclaimSettings
    time: Callable[[], int]
    journal: Journal
    history: History
    stopping: Callable[[], bool]
    unanswered: dict[str, int] = field(default_factory=dict)
    avoided: dict[str, str] = field(default_factory=dict)
    denied: int = 0
    taken: int = 0
    halted: str = ""
    kept: dict[str, str] = field(default_factory=dict)

    def look(self) -> _Look:
        """Look at the batch system; orders that were not answered, in this cycle too, count as on their way."""
        snapshot, now = self.pool.snapshot(self.time()), self.time()
        snapshot = with_scope(snapshot, self.settings.scope)
        snapshot = with_unanswered(snapshot, {**self.history.unanswered, **self.unanswered})
        snapshot = with_untaken(snapshot, self.history.untaken, self.history.unmet, now, self.settings)
        snapshot = with_requests(snapshot, self.history, now, self.settings)
        snapshot = with_far_ends(snapshot, now, self.settings.horizon)
        snapshot = with_ending_leases(snapshot, open_until(snapshot, now, self.settings, self.history))
        running = {pilot.run: pilot for pilot in snapshot.pilots}
        return _Look(now, look_at(snapshot, self.history, now, self.settings), running)

    def withdraw_order(self, plan: Plan, look: _Look) -> tuple[WithdrawalResult, ...]:
        """Withdraw the orders whose reason has gone, by both snapshots; what the look is too old for stays."""
        if not plan.withdrawals:
            return ()
        waits = look.waits
        found = withdrawals(waits.counts, waits.balance, look.now, self.settings, self.history, waits.needed)
        gone = {one.pilot.run for one in found}
        gone |= {one.pilot.run for one in plan.withdrawals if one.instead and _are_free(one.instead, look.running)}
        withdrawn = []
        for withdrawal in plan.withdrawals:
            if self.halted or self.stopping() or look.is_old(self.time()):
                break
            run = withdrawal.pilot.run
            result = self._withdraw(withdrawal, look.running.get(run), run in gone)
            self.journal.write(withdrawal_event(withdrawal, result.outcome, result.detail, self.time()))
            withdrawn.append(result)
        return tuple(withdrawn)

    def give(self, plan: Plan, look: _Look, withdrawn: tuple[WithdrawalResult, ...]) -> CycleOutcome:
        """Give the plan's orders, as many as are still needed."""
        gone = frozenset(one.withdrawal.pilot.run for one in withdrawn if one.outcome == DONE)
        missing, acts, fault = Missing(look.waits, gone), [], ""
        for order in plan.orders:
            if self.halted or self.stopping():
                break
            if look.is_old(self.time()):
                try:
                    look = self.look()
                except PoolError as error:
                    fault = str(error)
                    break
                missing = Missing(look.waits, gone)
            act = self._act(order, look.running.get(order.pilot.run), missing.has_use_of(order))
            if act.outcome in {DONE, UNANSWERED}:
                missing.without(order)
            self.journal.write(order_event(act.order, act.outcome, act.detail, plan, self.time(), act.only))
            acts.append(act)
        return CycleOutcome(tuple(acts), fault=fault, withdrawn=withdrawn, halted=self.halted)

    def _withdraw(self, withdrawal: Withdrawal, current: Pilot | None, is_gone: bool) -> WithdrawalResult:
        if current is None or _PLACE(withdrawal.pilot) != _PLACE(current):
            return WithdrawalResult(withdrawal, SKIPPED, RUN_GONE)
        if current.deadline != withdrawal.pilot.deadline:
            return WithdrawalResult(withdrawal, SKIPPED, "its order is another one by now")
        if not is_gone:
            return WithdrawalResult(withdrawal, SKIPPED, "its cores are needed again")
        if current.node in self.avoided:
            return WithdrawalResult(withdrawal, SKIPPED, self.avoided[current.node])
        try:
            self.pool.withdraw_order(current, withdrawal.reason)
        except PoolError as fault:
            outcome = self._became(fault)
            return WithdrawalResult(withdrawal, outcome, str(fault), outcome == REFUSED)
        return WithdrawalResult(withdrawal, DONE, "its order is withdrawn")

    def _act(self, order: Order, current: Pilot | None, is_needed: bool) -> Act:
        """Give one order; its deadline is not before the site's notice, however late it is given, save by the lease."""
        if current is None or _PLACE(order.pilot) != _PLACE(current):
            return Act(order, SKIPPED, RUN_GONE)
        goes = current.leaving or current.unanswered is not None
        if goes or (current.deadline is not None and not (order.request and order.deadline < current.deadline)):
            return Act(order, SKIPPED, ON_ITS_WAY)
        if not is_needed and order.instead_of:
            return Act(order, SKIPPED, "an order that it was to replace stands")
        if not is_needed:
            return Act(order, SKIPPED, "enough cores are free or on their way by now")
        if current.node in self.avoided:
            return Act(order, SKIPPED, self.avoided[current.node])
        earliest = self.time() + self.settings.notice
        promised = earliest if current.lease_end is None else min(earliest, current.lease_end)
        order = replace(order, deadline=max(order.deadline, promised))
        kept = self._keep(order)
        try:
            self.pool.give_order(current, order.deadline, order.reason)
        except PoolError as fault:
            outcome = self._became(fault)
            if outcome == UNANSWERED:
                self.unanswered[current.run] = order.deadline
            return Act(order, outcome, str(fault), getattr(fault, "only", ""))
        self.taken += 1
        return Act(order, DONE, f"ordered to end by {clock(order.deadline)}{kept}")

    def _keep(self, order: Order) -> str:
        """Have the room that it makes with others kept, once for a place; return what became of that."""
        room = order.kept
        if room is None or not isinstance(self.pool, KeepsRooms):
            return ""
        if room.place not in self.kept:
            try:
                self.pool.keep_room(room)
                self.kept[room.place] = "; the room is kept from smaller jobs"
            except PoolError as fault:
                self.kept[room.place] = f"; the room is not kept from smaller jobs: {fault}"
        return self.kept[room.place]

    def _became(self, fault: PoolError) -> str:
        """Return the outcome of an act that raised `fault`. Remember what need not be tried again in this cycle."""
        outcome = outcome_of(fault)
        if outcome in {SKIPPED, REFUSED}:
            return outcome
        only = getattr(fault, "only", "")
        if not only:
            self.halted = str(fault)
        elif outcome == DENIED:
            self.avoided[only] = f"{only} refused another order just now"
            self.denied += 1
            if self.denied >= _MOST_DENIED and not self.taken:
                self.halted = f"{self.denied} nodes refused and none took an order: {fault}"
        else:
            self.avoided[only] = f"{only} did not answer another order just now"
        return outcome


def _are_free(runs: Iterable[str], running: Mapping[str, Pilot]) -> bool:
    """Return whether these runs are there and have no order."""
    pilots = [running.get(run) for run in runs]
    return all(one is not None and one.deadline is None and not (one.leaving or one.unanswered) for one in pilots)

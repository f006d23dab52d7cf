"""Carry out a plan: each act is checked against a new snapshot, done once, and written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from drainwise.agent.cycle_facts import ON_ITS_WAY, RUN_GONE, Act, CycleBasis, CycleOutcome, PartWish, outcome_of
from drainwise.agent.second_look import OWNER, SecondLook, takes_orders
from drainwise.facts.errors import PoolError, RunEnded
from drainwise.facts.units import clock
from drainwise.journal.entries import order_event, part_event, withdrawal_event
from drainwise.journal.event import Outcome
from drainwise.journal.file import Journal
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import KeepsRooms, LendsParts
from drainwise.pool.facts import Pool
from drainwise.reclaim.plan import Order, Plan, Withdrawal, still_asked

LOOK_AGAIN = 60
"""Seconds after which no act stands on a snapshot any more; an order to a silent node may take half of that."""

_MOST_DENIED = 3
"""Nodes that refuse whoever gives orders while none takes one, after which no other is tried in this cycle."""


def carry_out(
    plan: Plan,
    basis: CycleBasis,
    pool: Pool,
    time: Callable[[], int],
    journal: Journal,
    stopping: Callable[[], bool] = lambda: False,
) -> CycleOutcome:
    """Withdraw what the plan says, then give its orders to `pool`; `time` tells the UNIX time.

    The snapshot is read again first, and each act checked against its facts (`SecondLook`): a run that has ended, or is
    on its way by now, is skipped, so that neither the next run of the job nor the next job in its place can be hit; no
    more is taken than is still needed, and an order is withdrawn only when its reason is still gone. When that look is
    LOOK_AGAIN old there is another one; without it no further order is given. One act that fails does not stop the
    others, unless the batch system as a whole refuses or does not answer; no further order goes to a node that did so.
    basis: what the plan was decided on; `stopping` is called before each act, and no further one is done once it is
    true. Raises PoolUnreachable, with nothing done, when the second snapshot cannot be had or is not whole, and
    DrainwiseError when the journal cannot be written.
    """
    is_to_ask = bool(plan.asked_no_more) or any(not one.stands for one in plan.returns)
    if not (plan.orders or plan.withdrawals or is_to_ask):
        return CycleOutcome(())
    acting = _Acting(plan, basis, pool, time, journal, stopping)
    look = acting.look()
    withdrawn = acting.withdraw_orders(look)
    outcome = acting.give(look, withdrawn)
    return outcome if outcome.halted or not is_to_ask else replace(outcome, parts=acting.ask_for_parts(look))


@dataclass
class _Acting:
    """The acts of one cycle. halted: as in CycleOutcome. avoided: nodes that take no order now, and why.

    given: this cycle's orders, those included that nobody answered. denied: nodes that refused whoever gives orders.
    taken: orders that were taken. kept: whether room is kept on a place, in words, by its name.
    """

    plan: Plan
    basis: CycleBasis
    pool: Pool
    time: Callable[[], int]
    journal: Journal
    stopping: Callable[[], bool]
    given: list[Order] = field(default_factory=list)
    avoided: dict[str, str] = field(default_factory=dict)
    denied: int = 0
    taken: int = 0
    halted: str = ""
    kept: dict[str, str] = field(default_factory=dict)

    def look(self) -> SecondLook:
        """Look at the batch system."""
        snapshot = self.pool.snapshot(self.time())
        return SecondLook(self.plan, self.basis, snapshot, self.time(), self.given)

    def is_old(self, look: SecondLook) -> bool:
        """Return whether a look is too old to act on."""
        return not 0 <= self.time() - look.now <= LOOK_AGAIN

    def withdraw_orders(self, look: SecondLook) -> tuple[Act[Withdrawal], ...]:
        """Withdraw the orders whose reason has gone, by both snapshots; what the look is too old for stays."""
        withdrawn = list[Act[Withdrawal]]()
        for one in self.plan.withdrawals:
            if self.halted or self.stopping() or self.is_old(look):
                break
            result = self._withdraw(one, look)
            self.journal.write(withdrawal_event(one, result.outcome, result.detail, self.time()))
            withdrawn.append(result)
        return tuple(withdrawn)

    def give(self, look: SecondLook, withdrawn: tuple[Act[Withdrawal], ...]) -> CycleOutcome:
        """Give the plan's orders, as many as are still needed."""
        gone = frozenset(one.order.pilot.run for one in withdrawn if one.outcome == Outcome.DONE)
        acts, fault = list[Act[Order]](), ""
        for order in self.plan.orders:
            if self.halted or self.stopping():
                break
            if self.is_old(look):
                try:
                    look = self.look()
                except PoolError as error:
                    fault = str(error)
                    break
            act = self._act(order, look, look.why_not(order, gone))
            if act.outcome in {Outcome.DONE, Outcome.UNANSWERED}:
                look.take_off(order)
                self.given.append(order)
            self.journal.write(order_event(act.order, act.outcome, act.detail, self.plan, self.time(), act.only))
            acts.append(act)
        return CycleOutcome(tuple(acts), fault=fault, withdrawn=withdrawn, halted=self.halted)

    def ask_for_parts(self, look: SecondLook) -> tuple[Act[PartWish], ...]:
        """Ask for the parts of the plan; a wish that asks for less comes first.

        A node that does not answer, or refuses whoever asks, is asked no more in this cycle; nothing depends on a part,
        since each cycle decides on all of them anew.
        """
        if not isinstance(self.pool, LendsParts):
            return ()
        acts, avoided = list[Act[PartWish]](), dict[str, str]()
        for wish in _wishes(self.plan, look.demand):
            if self.stopping():
                break
            act = _ask(wish, self.pool, look, avoided)
            became = act.outcome, act.detail, wish.reason, wish.waste
            self.journal.write(part_event(wish.pilot, wish.asked, *became, self.time(), wish.counted))
            acts.append(act)
        return tuple(acts)

    def _withdraw(self, withdrawal: Withdrawal, look: SecondLook) -> Act[Withdrawal]:
        if why := look.why_stands(withdrawal) or self.avoided.get(withdrawal.pilot.node):
            return Act(withdrawal, Outcome.SKIPPED, why)
        try:
            self.pool.withdraw_order(look.running[withdrawal.pilot.run], withdrawal.reason)
        except PoolError as fault:
            return Act(withdrawal, self._became(fault), str(fault))
        return Act(withdrawal, Outcome.DONE, "its order is withdrawn")

    def _act(self, order: Order, look: SecondLook, why_not: str) -> Act[Order]:
        """Give one order; its deadline is not before the site's notice, however late it is given, save by the lease."""
        if why := why_not or self.avoided.get(order.pilot.node):
            return Act(order, Outcome.SKIPPED, why)
        current, earliest = look.running[order.pilot.run], self.time() + self.basis.settings.notice
        promised = earliest if current.lease_end is None else min(earliest, current.lease_end)
        order = replace(order, deadline=max(order.deadline, promised))
        kept = self._keep(order)
        try:
            self.pool.give_order(current, order.deadline, order.reason)
        except PoolError as fault:
            return Act(order, self._became(fault), str(fault), getattr(fault, "only", ""))
        self.taken += 1
        return Act(order, Outcome.DONE, f"ordered to end by {clock(order.deadline)}{kept}")

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
        if outcome in {Outcome.SKIPPED, Outcome.REFUSED}:
            return outcome
        only = getattr(fault, "only", "")
        if not only:
            self.halted = str(fault)
        elif outcome == Outcome.DENIED:
            self.avoided[only] = f"{only} refused another order just now"
            self.denied += 1
            if self.denied >= _MOST_DENIED and not self.taken:
                self.halted = f"{self.denied} nodes refused and none took an order: {fault}"
        else:
            self.avoided[only] = f"{only} did not answer another order just now"
        return outcome


def _wishes(plan: Plan, demand: float) -> Iterator[PartWish]:
    for pilot in plan.asked_no_more:
        yield PartWish(pilot, PartialReturn(still_asked(pilot, demand)), "no more of its cores are needed")
    for one in plan.returns:
        if not one.stands:
            counted = one.pilot.returned + one.counted
            yield PartWish(one.pilot, PartialReturn(one.in_all, one.by, one.chunk), one.reason, one.waste, counted)


def _ask(wish: PartWish, pool: LendsParts, look: SecondLook, avoided: dict[str, str]) -> Act[PartWish]:
    current, cores = look.running.get(wish.pilot.run), wish.asked.cores
    if current is None or OWNER(current) != OWNER(wish.pilot):
        return Act(wish, Outcome.SKIPPED, RUN_GONE)
    if not takes_orders(current):
        return Act(wish, Outcome.SKIPPED, ON_ITS_WAY)
    if cores > current.asked and look.demand <= 0:
        return Act(wish, Outcome.SKIPPED, "nobody is owed cores any more")
    if current.node in avoided:
        return Act(wish, Outcome.SKIPPED, avoided[current.node])
    try:
        pool.ask_for_part(current, wish.asked, wish.reason)
    except PoolError as fault:
        if not isinstance(fault, RunEnded):
            avoided[current.node] = f"{current.node} did not take another wish just now"
        return Act(wish, outcome_of(fault), str(fault))
    return Act(wish, Outcome.DONE, f"asked to have returned {cores} cores in all")

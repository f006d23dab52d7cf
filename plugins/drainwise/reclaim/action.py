"""Carrying out a plan: each act is checked against a new snapshot, done once, and written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.errors import ActionRefused, OrderUnanswered, PoolError, RightsRefused, RunEnded
from drainwise.journal.entries import cancel_event, order_event, tended_event
from drainwise.journal.event import DENIED, DONE, REFUSED, SKIPPED, UNANSWERED, UNREACHABLE
from drainwise.journal.file import Journal
from drainwise.pool import Pilot, Pool, Snapshot
from drainwise.reclaim.cancel import Cancel, cancels
from drainwise.reclaim.doubt import with_unanswered
from drainwise.reclaim.paused_demand import weighed
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock

LOOK_AGAIN = 60
"""Seconds after which no act stands on a snapshot any more: an order to a node that is deaf may take half of that."""

_MOST_DENIED = 3
"""So many nodes that refuse whoever gives orders, and none that takes one: the others are not tried in this cycle."""

_RUN_GONE = "this run has ended since the plan was made"


@dataclass(frozen=True)
class Act:
    """What became of one order, as `journal.event` names it, and why.

    only: the node (or run) that refused whoever gives orders, or did not answer; "" when that was the batch system as a
    whole, or neither.
    """

    order: Order
    outcome: str
    detail: str
    only: str = ""


@dataclass(frozen=True)
class Release:
    """What became of one request that was to be taken back; refused: the batch system says that it cannot be."""

    cancel: Cancel
    outcome: str
    detail: str
    refused: bool = False


@dataclass(frozen=True)
class Outcome:
    """All acts of one cycle; tended: what was finished of earlier ones; fault: why that could not be done, or "".

    released: what became of the requests whose reason has gone. halted: why no further act was tried (the batch system
    as a whole did not answer, or refuses whoever gives orders), or "".
    """

    acts: tuple[Act, ...]
    tended: tuple[str, ...] = ()
    fault: str = ""
    released: tuple[Release, ...] = ()
    halted: str = ""

    @property
    def exit_code(self) -> int:
        """1 when the batch system refused or failed anything, else 0."""
        outcomes = {act.outcome for act in self.acts} | {one.outcome for one in self.released}
        return 1 if self.fault or self.halted or outcomes - {DONE, SKIPPED} else 0


def finish_earlier(pool: Pool, snapshot: Snapshot, time: Callable[[], int], journal: Journal) -> Outcome:
    """Have `pool` finish what earlier cycles left to do, each thing a line of the journal; no order is given.

    A batch system that cannot tell does not stop the cycle: its fault is part of the outcome.
    """
    try:
        tended = tuple(pool.tend(snapshot))
    except PoolError as fault:
        return Outcome((), fault=str(fault))
    for what in tended:
        journal.write(tended_event(what, time()))
    return Outcome((), tended)


def carry_out(
    plan: Plan,
    pool: Pool,
    settings: Settings,
    time: Callable[[], int],
    journal: Journal,
    record: Record | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Take back the plan's cancels, then give its orders to `pool`; `time` tells the UNIX time.

    The snapshot is read again first: a run that has ended, or is on its way by now, is skipped, so that neither the
    next run of the job nor the next job in its place can be hit; no more is taken than is still needed, and a request
    is taken back only when its reason is still gone. When that look is LOOK_AGAIN old there is another one; without it
    no further order is given. One act that fails does not stop the others, unless the batch system as a whole refuses
    or does not answer; no further order goes to a node that did so. `record` is what the plan knew of earlier cycles;
    `stopping` is asked before each act, and no further one is done once it says so.
    Raises PoolUnreachable, with nothing done, when the second snapshot cannot be had or is not whole, and
    DrainwiseError when the journal cannot be written.
    """
    if not (plan.orders or plan.cancels):
        return Outcome(())
    acting = _Acting(pool, settings, time, journal, record or Record(), stopping)
    look = acting.look()
    released = acting.take_back(plan, look)
    return acting.give(plan, look, released)


@dataclass(frozen=True)
class _Look:
    """What the batch system showed at `now` (UNIX s), with the demand that counts."""

    now: int
    snapshot: Snapshot
    balance: Balance
    running: Mapping[str, Pilot]

    def is_old(self, now: int) -> bool:
        """Whether orders have taken so long by `now` (UNIX s) that it must be looked at again."""
        return not 0 <= now - self.now <= LOOK_AGAIN


@dataclass
class _Acting:
    """The acts of one cycle. halted: as in Outcome. avoided: nodes that take no order now, and why.

    unanswered: the deadlines of this cycle's orders that nobody answered, by run. denied: nodes that refused whoever
    gives orders. taken: orders that were taken.
    """

    pool: Pool
    settings: Settings
    time: Callable[[], int]
    journal: Journal
    record: Record
    stopping: Callable[[], bool]
    unanswered: dict[str, int] = field(default_factory=dict)
    avoided: dict[str, str] = field(default_factory=dict)
    denied: int = 0
    taken: int = 0
    halted: str = ""

    def look(self) -> _Look:
        """Look at the batch system; orders that were not answered, in this cycle too, count as on their way."""
        snapshot, now = self.pool.snapshot(self.time()), self.time()
        snapshot = with_unanswered(snapshot, {**self.record.unanswered, **self.unanswered})
        running = {pilot.run: pilot for pilot in snapshot.pilots}
        counts, _, balance = weighed(snapshot, self.record.unmet, now, self.settings)
        return _Look(now, counts, balance, running)

    def take_back(self, plan: Plan, look: _Look) -> tuple[Release, ...]:
        """Withdraw the requests whose reason has gone, by both snapshots; what the look is too old for stays."""
        if not plan.cancels:
            return ()
        found = cancels(look.snapshot, look.balance, look.now, self.settings, self.record)
        gone = {one.pilot.run for one in found}
        released = []
        for cancel in plan.cancels:
            if self.halted or self.stopping() or look.is_old(self.time()):
                break
            run = cancel.pilot.run
            release = self._release(cancel, look.running.get(run), run in gone)
            self.journal.write(cancel_event(cancel, release.outcome, release.detail, self.time()))
            released.append(release)
        return tuple(released)

    def give(self, plan: Plan, look: _Look, released: tuple[Release, ...]) -> Outcome:
        """Give the plan's orders, as many as are still needed."""
        needed, acts, fault = look.balance.deficit, [], ""
        for order in plan.orders:
            if self.halted or self.stopping():
                break
            if look.is_old(self.time()):
                try:
                    look = self.look()
                except PoolError as error:
                    fault = str(error)
                    break
                needed = look.balance.deficit
            act = self._act(order, look.running.get(order.pilot.run), needed)
            needed -= act.order.pilot.cores if act.outcome in {DONE, UNANSWERED} else 0
            self.journal.write(order_event(act.order, act.outcome, act.detail, plan, self.time(), act.only))
            acts.append(act)
        return Outcome(tuple(acts), fault=fault, released=released, halted=self.halted)

    def _release(self, cancel: Cancel, current: Pilot | None, is_gone: bool) -> Release:
        if current is None or not _same_place(cancel.pilot, current):
            return Release(cancel, SKIPPED, _RUN_GONE)
        if current.deadline != cancel.pilot.deadline:
            return Release(cancel, SKIPPED, "its order is another one by now")
        if not is_gone:
            return Release(cancel, SKIPPED, "its cores are needed again")
        if current.node in self.avoided:
            return Release(cancel, SKIPPED, self.avoided[current.node])
        try:
            self.pool.take_back(current, cancel.reason)
        except PoolError as fault:
            outcome = self._became(fault)
            return Release(cancel, outcome, str(fault), outcome == REFUSED)
        return Release(cancel, DONE, "its request is taken back")

    def _act(self, order: Order, current: Pilot | None, needed: int) -> Act:
        """Give one order; its deadline is not before the site's notice, however late it is given, save by the lease."""
        if current is None or not _same_place(order.pilot, current):
            return Act(order, SKIPPED, _RUN_GONE)
        if current.deadline is not None or current.leaving or current.unanswered is not None:
            return Act(order, SKIPPED, "it is on its way out already")
        if needed <= 0:
            return Act(order, SKIPPED, "enough cores are free or on their way by now")
        if current.node in self.avoided:
            return Act(order, SKIPPED, self.avoided[current.node])
        earliest = self.time() + self.settings.notice
        promised = earliest if current.lease_end is None else min(earliest, current.lease_end)
        order = replace(order, deadline=max(order.deadline, promised))
        try:
            self.pool.ask_to_leave(current, order.deadline, order.reason)
        except PoolError as fault:
            outcome = self._became(fault)
            if outcome == UNANSWERED:
                self.unanswered[current.run] = order.deadline
            return Act(order, outcome, str(fault), getattr(fault, "only", ""))
        self.taken += 1
        return Act(order, DONE, f"asked to be gone by {clock(order.deadline)}")

    def _became(self, fault: PoolError) -> str:
        """What became of an act that raised `fault`; what else need not be tried in this cycle is remembered."""
        if isinstance(fault, RunEnded):
            return SKIPPED
        if isinstance(fault, ActionRefused) and not isinstance(fault, RightsRefused):
            return REFUSED
        only = getattr(fault, "only", "")
        if not only:
            self.halted = str(fault)
        elif isinstance(fault, RightsRefused):
            self.avoided[only] = f"{only} refused another order just now"
            self.denied += 1
            if self.denied >= _MOST_DENIED and not self.taken:
                self.halted = f"{self.denied} nodes refused and none took an order: {fault}"
        else:
            self.avoided[only] = f"{only} did not answer another order just now"
        if isinstance(fault, RightsRefused):
            return DENIED
        return UNANSWERED if isinstance(fault, OrderUnanswered) else UNREACHABLE


def _same_place(planned: Pilot, current: Pilot) -> bool:
    """Whether the figures that the plan stood on still hold: the same run with the same cores of the same account."""
    return (planned.node, planned.principal, planned.user, planned.cores) == (
        current.node,
        current.principal,
        current.user,
        current.cores,
    )

"""Carrying out a plan: each act is checked against a new snapshot, done once, and written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from drainwise.errors import ActionRefused, PoolError
from drainwise.journal.entries import cancel_event, order_event, tended_event
from drainwise.journal.event import DONE, FAILED, SKIPPED
from drainwise.journal.file import Journal
from drainwise.pool import Pilot, Pool, Snapshot
from drainwise.reclaim.cancel import Cancel, cancels
from drainwise.reclaim.paused_demand import weighed
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock

LOOK_AGAIN = 60
"""Seconds after which no act stands on a snapshot any more: an order to a node that is deaf may take half of that."""


@dataclass(frozen=True)
class Act:
    """What became of one order: DONE, SKIPPED (its reason has gone) or FAILED, and why."""

    order: Order
    outcome: str
    detail: str


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

    released: what became of the requests whose reason has gone.
    """

    acts: tuple[Act, ...]
    tended: tuple[str, ...] = ()
    fault: str = ""
    released: tuple[Release, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 when the batch system refused or failed anything, else 0."""
        outcomes = [act.outcome for act in self.acts] + [one.outcome for one in self.released]
        return 1 if self.fault or FAILED in outcomes else 0


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
    no further order is given. One act that fails does not stop the others. `record` is what the plan knew of earlier
    cycles; `stopping` is asked before each act, and no further one is done once it says so.
    Raises PoolUnreachable, with nothing done, when the second snapshot cannot be had or is not whole, and
    DrainwiseError when the journal cannot be written.
    """
    if not (plan.orders or plan.cancels):
        return Outcome(())
    look = _look(pool, settings, time, record)
    released = _take_back(plan, look, pool, settings, time, journal, record, stopping)
    needed, acts, fault = look.balance.deficit, [], ""
    for order in plan.orders:
        if stopping():
            break
        if look.is_old(time()):
            try:
                look = _look(pool, settings, time, record)
            except PoolError as error:
                fault = str(error)
                break
            needed = look.balance.deficit
        act = _act(order, look.running.get(order.pilot.run), needed, pool, time() + settings.notice)
        needed -= act.order.pilot.cores if act.outcome == DONE else 0
        journal.write(order_event(act.order, act.outcome, act.detail, plan, time()))
        acts.append(act)
    return Outcome(tuple(acts), fault=fault, released=released)


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


def _look(pool: Pool, settings: Settings, time: Callable[[], int], record: Record | None) -> _Look:
    snapshot, now = pool.snapshot(time()), time()
    running = {pilot.run: pilot for pilot in snapshot.pilots}
    counts, _, balance = weighed(snapshot, {} if record is None else record.unmet, now, settings)
    return _Look(now, counts, balance, running)


def _take_back(
    plan: Plan,
    look: _Look,
    pool: Pool,
    settings: Settings,
    time: Callable[[], int],
    journal: Journal,
    record: Record | None,
    stopping: Callable[[], bool],
) -> tuple[Release, ...]:
    """Withdraw the requests whose reason has gone, by both snapshots; what that look is too old for, the next cycle."""
    if not plan.cancels:
        return ()
    gone = {one.pilot.run: one for one in cancels(look.snapshot, look.balance, look.now, settings, record)}
    released = []
    for cancel in plan.cancels:
        if stopping() or look.is_old(time()):
            break
        run = cancel.pilot.run
        release = _release(cancel, look.running.get(run), run in gone, pool)
        journal.write(cancel_event(cancel, release.outcome, release.detail, time()))
        released.append(release)
    return tuple(released)


def _release(cancel: Cancel, current: Pilot | None, is_gone: bool, pool: Pool) -> Release:
    if current is None or not _same_place(cancel.pilot, current):
        return Release(cancel, SKIPPED, "this run has ended since the plan was made")
    if current.deadline != cancel.pilot.deadline:
        return Release(cancel, SKIPPED, "its order is another one by now")
    if not is_gone:
        return Release(cancel, SKIPPED, "its cores are needed again")
    try:
        pool.take_back(current, cancel.reason)
    except PoolError as fault:
        return Release(cancel, FAILED, str(fault), isinstance(fault, ActionRefused))
    return Release(cancel, DONE, "its request is taken back")


def _act(order: Order, current: Pilot | None, needed: int, pool: Pool, earliest: int) -> Act:
    """Give one order; its deadline is not before `earliest` (UNIX s), however late it is given, save by the lease."""
    if current is None or not _same_place(order.pilot, current):
        return Act(order, SKIPPED, "this run has ended since the plan was made")
    if current.deadline is not None or current.leaving:
        return Act(order, SKIPPED, "it is on its way out already")
    if needed <= 0:
        return Act(order, SKIPPED, "enough cores are free or on their way by now")
    promised = earliest if current.lease_end is None else min(earliest, current.lease_end)
    order = replace(order, deadline=max(order.deadline, promised))
    try:
        pool.ask_to_leave(current, order.deadline, order.reason)
    except PoolError as fault:
        return Act(order, FAILED, str(fault))
    return Act(order, DONE, f"asked to be gone by {clock(order.deadline)}")


def _same_place(planned: Pilot, current: Pilot) -> bool:
    """Whether the figures that the plan stood on still hold: the same run with the same cores of the same account."""
    return (planned.node, planned.principal, planned.user, planned.cores) == (
        current.node,
        current.principal,
        current.user,
        current.cores,
    )

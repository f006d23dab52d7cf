"""Carrying out a plan: each act is checked against a new snapshot, done once, and written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drainwise.errors import ActionRefused, PoolError
from drainwise.journal.entries import cancel_event, order_event, tended_event
from drainwise.journal.event import DONE, FAILED, SKIPPED
from drainwise.journal.file import Journal
from drainwise.pool import Pilot, Pool, Snapshot
from drainwise.reclaim.cancel import Cancel, cancels
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.quota import Balance, weigh
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock


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
    is taken back only when its reason is still gone. One act that fails does not stop the others. `record` is what the
    plan knew of earlier cycles; `stopping` is asked before each act, and no further one is done once it says so.
    Raises PoolUnreachable, with nothing done, when the second snapshot cannot be had or is not whole, and
    DrainwiseError when the journal cannot be written.
    """
    if not (plan.orders or plan.cancels):
        return Outcome(())
    snapshot, now = pool.snapshot(time()), time()
    balance = weigh(snapshot, now, settings.horizon)
    running = {pilot.run: pilot for pilot in snapshot.pilots}
    released = _take_back(plan, snapshot, balance, now, pool, settings, journal, record, stopping)
    needed, acts = balance.deficit, []
    for order in plan.orders:
        if stopping():
            break
        act = _act(order, running.get(order.pilot.run), needed, pool)
        needed -= order.pilot.cores if act.outcome == DONE else 0
        journal.write(order_event(order, act.outcome, act.detail, plan, time()))
        acts.append(act)
    return Outcome(tuple(acts), released=released)


def _take_back(
    plan: Plan,
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    pool: Pool,
    settings: Settings,
    journal: Journal,
    record: Record | None,
    stopping: Callable[[], bool],
) -> tuple[Release, ...]:
    """Withdraw the requests whose reason has gone, by both snapshots."""
    if not plan.cancels:
        return ()
    gone = {one.pilot.run: one for one in cancels(snapshot, balance, now, settings, record)}
    running = {pilot.run: pilot for pilot in snapshot.pilots}
    released = []
    for cancel in plan.cancels:
        if stopping():
            break
        run = cancel.pilot.run
        release = _release(cancel, running.get(run), run in gone, pool)
        journal.write(cancel_event(cancel, release.outcome, release.detail, now))
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


def _act(order: Order, current: Pilot | None, needed: int, pool: Pool) -> Act:
    if current is None or not _same_place(order.pilot, current):
        return Act(order, SKIPPED, "this run has ended since the plan was made")
    if current.deadline is not None or current.leaving:
        return Act(order, SKIPPED, "it is on its way out already")
    if needed <= 0:
        return Act(order, SKIPPED, "enough cores are free or on their way by now")
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

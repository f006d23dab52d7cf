"""Carrying out a plan: each order is checked against a new snapshot, given once, and written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drainwise.errors import PoolError
from drainwise.pool import Pilot, Pool, Snapshot
from drainwise.reclaim.journal import Journal
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.plan_json import order_as_json
from drainwise.reclaim.quota import weigh
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock

DONE = "done"
SKIPPED = "skipped"
FAILED = "failed"


@dataclass(frozen=True)
class Act:
    """What became of one order: DONE, SKIPPED (its reason has gone) or FAILED, and why."""

    order: Order
    outcome: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """All acts of one cycle; tended: what was finished of earlier ones; fault: why that could not be done, or ""."""

    acts: tuple[Act, ...]
    tended: tuple[str, ...] = ()
    fault: str = ""

    @property
    def exit_code(self) -> int:
        """1 when the batch system refused or failed anything, else 0."""
        return 1 if self.fault or any(act.outcome == FAILED for act in self.acts) else 0


def finish_earlier(pool: Pool, snapshot: Snapshot, time: Callable[[], int], journal: Journal) -> Outcome:
    """Have `pool` finish what earlier cycles left to do, each thing a line of the journal; no order is given.

    A batch system that cannot tell does not stop the cycle: its fault is part of the outcome.
    """
    try:
        tended = tuple(pool.tend(snapshot))
    except PoolError as fault:
        return Outcome((), fault=str(fault))
    for what in tended:
        journal.write({"time": time(), "outcome": "tended", "detail": what})
    return Outcome((), tended)


def carry_out(plan: Plan, pool: Pool, settings: Settings, time: Callable[[], int], journal: Journal) -> Outcome:
    """Give the plan's orders to `pool`; `time` tells the UNIX time.

    The snapshot is read again first: a run that has ended, or is on its way by now, is skipped, so that neither the
    next run of the job nor the next job in its place can be hit; and no more is taken than is still needed. One order
    that fails does not stop the others. Raises PoolUnreachable, with nothing done, when the second snapshot cannot be
    had or is not whole, and DrainwiseError when the journal cannot be written.
    """
    if not plan.orders:
        return Outcome(())
    snapshot = pool.snapshot(time())
    needed = weigh(snapshot, time(), settings.horizon).deficit
    running = {pilot.run: pilot for pilot in snapshot.pilots}
    acts = []
    for order in plan.orders:
        act = _act(order, running.get(order.pilot.run), needed, pool)
        needed -= order.pilot.cores if act.outcome == DONE else 0
        journal.write(
            {
                "time": time(),
                "outcome": act.outcome,
                "detail": act.detail,
                "policy": plan.policy,
                "deficit": plan.balance.deficit,
                **order_as_json(order),
            }
        )
        acts.append(act)
    return Outcome(tuple(acts))


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

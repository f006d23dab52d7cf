"""What one cycle sees, decides on and does: its view of the pool, its basis, and what became of each act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolError, RightsRefused, RunEnded
from drainwise.journal.event import Event, Outcome
from drainwise.journal.outcomes import OpenOrder
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import SILENT, STALE
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.columns import standing_of
from drainwise.reclaim.history import History, TrustFigures, doubt
from drainwise.reclaim.plan import Order, Withdrawal
from drainwise.reclaim.settings import ReclaimSettings


@dataclass(frozen=True)
class PoolView:
    """What a cycle saw.

    pilots, cores: how many by the standing of the pilot's report. silent: nodes with pilots of which none reports
    or is seen of late. accounts: as the batch system charges them. open_orders: orders whose pilot has not ended.
    overdue: those of them whose deadline has passed. ended: the journal's events of pilots with an order that have
    ended. versions: nodes by the version of drainwise that they run, as in `Snapshot`. returned: cores that pilots have
    returned and go on without. doubted: as `doubted_pilots` has them.
    """

    pilots: Mapping[str, int] = field(default_factory=dict)
    cores: Mapping[str, int] = field(default_factory=dict)
    accounts: tuple[Account, ...] = ()
    open_orders: int = 0
    overdue: int = 0
    ended: tuple[Event, ...] = ()
    versions: tuple[tuple[str, int], ...] = ()
    returned: int = 0
    silent: tuple[str, ...] = ()
    doubted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CycleBasis:
    """What a cycle decided on at `now` (UNIX s): the snapshot, the settings, and what was known of earlier cycles."""

    snapshot: Snapshot
    now: int
    settings: ReclaimSettings
    history: History


def view_of(
    snapshot: Snapshot, now: int, heartbeat_limit: int, orders: Iterable[OpenOrder], ended: Sequence[Event]
) -> PoolView:
    """Return what is to be told of a snapshot at `now` (UNIX s).

    heartbeat_limit: as in `standing_of`, s. orders: those that are open. ended: the events of pilots that have ended.
    """
    pilots, cores = Counter[str](), Counter[str]()
    nodes, heard = set[str](), set[str]()
    for pilot in snapshot.pilots:
        standing, _ = standing_of(pilot, now, heartbeat_limit)
        pilots[standing] += 1
        cores[standing] += pilot.cores
        nodes.update(pilot.nodes)
        is_seen = pilot.seen is not None and now - pilot.seen.at <= heartbeat_limit
        if is_seen or standing not in {SILENT, STALE}:
            heard.update(pilot.nodes)
    deadlines = [order.deadline for order in orders]
    return PoolView(
        pilots,
        cores,
        snapshot.accounts,
        len(deadlines),
        sum(deadline < now for deadline in deadlines),
        tuple(ended),
        snapshot.versions,
        sum(pilot.returned for pilot in snapshot.pilots),
        tuple(sorted(nodes - heard)),
    )


def doubted_pilots(snapshot: Snapshot, trust: Mapping[str, TrustFigures]) -> dict[str, int]:
    """Return for each account how many of its pilots are of a user whose claimed values count less; trust: by user."""
    doubted = {user for user, figures in trust.items() if doubt(figures) > 0}
    found = dict.fromkeys((account.name for account in snapshot.accounts), 0)
    for pilot in snapshot.pilots:
        found[pilot.account] = found.get(pilot.account, 0) + (pilot.user in doubted)
    return found


RUN_GONE = "this run has ended since the plan was made"
ON_ITS_WAY = "it is on its way out already"


def outcome_of(fault: PoolError) -> str:
    """Return the outcome of an act that raised `fault`, as `journal.event` names it."""
    if isinstance(fault, RunEnded):
        return Outcome.SKIPPED
    if isinstance(fault, RightsRefused):
        return Outcome.DENIED
    if isinstance(fault, ActionRefused):
        return Outcome.REFUSED
    return Outcome.UNANSWERED if isinstance(fault, OrderUnanswered) else Outcome.UNREACHABLE


@dataclass(frozen=True)
class PartWish:
    """What a pilot is asked to have returned, and why; waste: expected, in core-seconds; counted: cores counted on."""

    pilot: Pilot
    asked: PartialReturn
    reason: str
    waste: int = 0
    counted: int = 0


Asked = TypeVar("Asked", Order, Withdrawal, PartWish)


@dataclass(frozen=True)
class Act(Generic[Asked]):
    """What became of an order, of withdrawing one, or of a wish, as `journal.event` names it, and why.

    only: the node (or run) that refused whoever gives orders, or did not answer; "" when that was the batch system as a
    whole, or neither.
    """

    order: Asked
    outcome: str
    detail: str
    only: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it as plain values."""
        return {"run": self.order.pilot.run, "outcome": self.outcome, "detail": self.detail}


@dataclass(frozen=True)
class CycleOutcome:
    """All acts of one cycle; followups: what was finished of earlier ones; fault: why that could not be done, or "".

    withdrawn: what became of the orders whose reason has gone. halted: why no further act was tried (the batch system
    as a whole did not answer, or refuses whoever gives orders), or "". parts: what became of asking
    pilots to return cores.
    """

    acts: tuple[Act[Order], ...]
    followups: tuple[str, ...] = ()
    fault: str = ""
    withdrawn: tuple[Act[Withdrawal], ...] = ()
    halted: str = ""
    parts: tuple[Act[PartWish], ...] = ()

    @property
    def exit_code(self) -> int:
        """1 when the batch system refused or failed anything, else 0."""
        outcomes = {one.outcome for some in (self.acts, self.withdrawn, self.parts) for one in some}
        return 1 if self.fault or self.halted or outcomes - {Outcome.DONE, Outcome.SKIPPED} else 0

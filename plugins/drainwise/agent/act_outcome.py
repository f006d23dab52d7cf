"""What became of the acts of one cycle: each order, each withdrawal, and all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolError, RightsRefused, RunEnded
from drainwise.journal.event import DENIED, DONE, REFUSED, SKIPPED, UNANSWERED, UNREACHABLE
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Pilot
from drainwise.reclaim.plan import Order, Withdrawal

RUN_GONE = "this run has ended since the plan was made"
ON_ITS_WAY = "it is on its way out already"


def outcome_of(fault: PoolError) -> str:
    """Return the outcome of an act that raised `fault`, as `journal.event` names it."""
    if isinstance(fault, RunEnded):
        return SKIPPED
    if isinstance(fault, RightsRefused):
        return DENIED
    if isinstance(fault, ActionRefused):
        return REFUSED
    return UNANSWERED if isinstance(fault, OrderUnanswered) else UNREACHABLE


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
        return 1 if self.fault or self.halted or outcomes - {DONE, SKIPPED} else 0

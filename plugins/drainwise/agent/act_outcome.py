"""What became of the acts of one cycle: each order, each withdrawal, and all of them."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolError, RightsRefused, RunEnded
from drainwise.journal.event import DENIED, DONE, REFUSED, SKIPPED, UNANSWERED, UNREACHABLE
from drainwise.pool.facts import Pilot
from drainwise.reclaim.plan import Order
from drainwise.reclaim.withdrawal import Withdrawal

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
class WithdrawalResult:
    """What became of one order that was to be withdrawn; refused: the batch system says that it cannot be."""

    withdrawal: Withdrawal
    outcome: str
    detail: str
    refused: bool = False


@dataclass(frozen=True)
class PartAct:
    """What became of asking a pilot to have returned so many cores in all."""

    pilot: Pilot
    cores: int
    outcome: str
    detail: str


@dataclass(frozen=True)
class CycleOutcome:
    """All acts of one cycle; followups: what was finished of earlier ones; fault: why that could not be done, or "".

    withdrawn: what became of the orders whose reason has gone. halted: why no further act was tried (the batch system
    as a whole did not answer, or refuses whoever gives orders), or "". parts: what became of asking
    pilots to return cores.
    """

    acts: tuple[Act, ...]
    followups: tuple[str, ...] = ()
    fault: str = ""
    withdrawn: tuple[WithdrawalResult, ...] = ()
    halted: str = ""
    parts: tuple[PartAct, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 when the batch system refused or failed anything, else 0."""
        outcomes = {act.outcome for act in self.acts} | {one.outcome for one in self.withdrawn}
        outcomes |= {one.outcome for one in self.parts}
        return 1 if self.fault or self.halted or outcomes - {DONE, SKIPPED} else 0

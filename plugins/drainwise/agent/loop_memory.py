"""What a loop remembers of its own cycles: what is to be confirmed, and when to ask again how a run ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from drainwise.agent.act_outcome import CycleOutcome
from drainwise.common.backoff import Backoff
from drainwise.journal.event import REFUSED
from drainwise.reclaim.plan import Plan

_MOMENT = 30
"""Seconds for which what is asked of a pilot must be too much: what a batch system shows may be so old."""


class ConfirmedWithdrawals:
    """What a loop remembers of its own cycles; losing it costs one cycle."""

    def __init__(self) -> None:
        self._found: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        self._lowered: dict[str, int] = {}  # by run: since when fewer of its cores were needed, UNIX s

    def confirmed(self, plan: Plan) -> Plan:
        """Return the plan with only the withdrawals that the cycle before found too and that were not refused.

        A pilot that is asked for cores is asked for fewer, too, only when two cycles in a row found that, half a minute
        apart: a demand may be gone for a moment, and what a pilot has begun to free it would fill again.
        """
        plan = self._with_lowered(plan)
        found = frozenset(one.pilot.run for one in plan.withdrawals)
        ready = (found & self._found) - self._refused
        self._found = found
        self._refused &= found
        users = tuple(
            replace(one, orders=tuple(it for it in one.orders if ready.issuperset(it.instead_of))) for one in plan.users
        )
        return replace(plan, users=users, withdrawals=tuple(one for one in plan.withdrawals if one.pilot.run in ready))

    def _with_lowered(self, plan: Plan) -> Plan:
        fewer = {one.pilot.run for one in plan.returns if one.in_all < one.pilot.asked}
        fewer |= {one.run for one in plan.asked_no_more}
        self._lowered = {run: min(plan.taken, self._lowered.get(run, plan.taken)) for run in fewer}
        before = {run for run, since in self._lowered.items() if plan.taken - since >= _MOMENT}
        users = tuple(
            replace(one, returns=tuple(it if it.pilot.run in before else it.at_least_asked() for it in one.returns))
            for one in plan.users
        )
        return replace(plan, users=users, asked_no_more=tuple(one for one in plan.asked_no_more if one.run in before))

    def interrupted(self) -> None:
        """Forget what was found before a cycle that saw nothing: it must be found twice again."""
        self._found, self._lowered = frozenset(), {}

    def note(self, outcome: CycleOutcome) -> None:
        """Remember what was refused."""
        self._refused |= {one.order.pilot.run for one in outcome.withdrawn if one.outcome == REFUSED}


_FIRST, _LONGEST = 60, 3600  # seconds


class AskAgain:
    """The times at which a loop asks how a run ended; losing them costs some queries."""

    def __init__(self) -> None:
        self._known: dict[str, Backoff] = {}

    def due(self, runs: Iterable[str], now: int) -> list[str]:
        """Return those of the ended runs to ask for at `now` (UNIX s); others than these are forgotten."""
        self._known = {run: self._known.get(run) or Backoff(_FIRST, _LONGEST) for run in runs}
        due = [run for run, backoff in self._known.items() if backoff.is_over(now)]
        for run in due:
            self._known[run].failed(now)
        return due

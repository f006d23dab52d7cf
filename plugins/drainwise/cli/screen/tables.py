"""The tables of a plan and of its outcome: complete also where they go into a pipe, where nothing is folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drainwise.agent.act_outcome import CycleOutcome
from drainwise.cli.screen.columns import Row, columns_called
from drainwise.cli.screen.layout import BOLD, Heading, Paper, table
from drainwise.common.printable import printable
from drainwise.facts.units import duration
from drainwise.reclaim.candidates import KILL, Candidate
from drainwise.reclaim.plan import Order, Plan, UserPlan

_FIGURES = columns_called("cores,used,report,remaining,drainwaste,killwaste,priority")
_HEADINGS = tuple(Heading(column.heading, column.number) for column in _FIGURES)
_BECAUSE = Heading("because", folded=True)
MOST_SPARED = 50
"""Spared pilots of a user that a plan shows."""


def _titled(title: str, headings: Sequence[Heading], rows: Iterable[Sequence[str]], paper: Paper) -> list[str]:
    """Return a blank line, a title and a table."""
    return ["", paper.styled(printable(title), BOLD), *table(headings, list(rows), paper)[0]]


def _figures(one: Candidate, now: int) -> tuple[str, ...]:
    """Write a pilot's figures as text; `?` is what is not known or not believed."""
    return tuple(column.text(Row(one, now)) for column in _FIGURES)


def plan_lines(plan: Plan, now: int, paper: Paper, whole: bool = False) -> list[str]:
    """Return the plan: the balance, then per user who gets an order and who is spared, each with figures and rule.

    Of the spared pilots of a user MOST_SPARED are shown, unless the plan is to be shown as a `whole`.
    """
    balance = plan.balance
    wanted = f"what if {balance.deficit} cores were needed"
    if plan.usable is not None:
        wanted = f"cores: {balance.demand:.1f} owed to those who wait, {balance.free:.1f} of them free"
        wanted += f", {balance.leaving} on their way"
    lines = [
        paper.styled(printable(f"policy {plan.policy}: {plan.summary}"), BOLD),
        f"{wanted}; {balance.surplus:.1f} held beyond the quotas: {balance.deficit} to give back now",
        *map(printable, plan.notices),
    ]
    for user in plan.users:
        lines += _user_lines(user, now, paper, None if whole else MOST_SPARED)
    if plan.withdrawals:
        headings = (Heading("pilot"), Heading("user"), Heading("cores", number=True), _BECAUSE)
        rows = ((one.pilot.name, one.pilot.user, str(one.pilot.cores), one.reason) for one in plan.withdrawals)
        lines += _titled("Orders to withdraw", headings, rows, paper)
    if plan.asked_no_more:
        names = ", ".join(one.name for one in plan.asked_no_more)
        lines.append(printable(f"asked for no cores any more: {names}"))
    return lines


def _user_lines(user: UserPlan, now: int, paper: Paper, most: int | None) -> list[str]:
    given = user.cores_given + user.cores_returned
    title = f"{user.user} ({user.account}) gives back {given} of {user.cores} cores"
    rows = [
        (order.pilot.name, *_figures(order.candidate, now), _decision(order, now), order.reason)
        for order in user.orders
    ]
    rows += [
        (one.pilot.name, *_figures(one.candidate, now), f"return {one.cores} of {one.pilot.cores} cores", one.reason)
        for one in user.returns
    ]
    spared = user.spared[:most]
    rows += [(one.candidate.pilot.name, *_figures(one.candidate, now), "spare", one.reason) for one in spared]
    lines = _titled(title, (Heading("pilot"), *_HEADINGS, Heading("decision"), _BECAUSE), rows, paper)
    further = len(user.spared) - len(spared)
    return [*lines, f"and {further} more that are spared; plan --all shows them"] if further else lines


def _decision(order: Order, now: int) -> str:
    return f"{'vacate' if order.kind == KILL else 'drain'}, {duration(order.deadline - now)} left"


def outcome_lines(outcome: CycleOutcome, paper: Paper) -> list[str]:
    """Write the outcome of each act and of the follow-up; nothing where there was nothing to do."""
    withdrawn = [(one.withdrawal.pilot, one.outcome, one.detail) for one in outcome.withdrawn]
    given = [(act.order.pilot, act.outcome, act.detail) for act in outcome.acts]
    parts = [(one.pilot, one.outcome, one.detail) for one in outcome.parts]
    headings = (*map(Heading, ("pilot", "run", "outcome")), Heading("detail", folded=True))
    lines: list[str] = []
    for title, acts in (("Orders that were to be withdrawn", withdrawn), ("Orders", given), ("Parts", parts)):
        if acts:
            rows = [(pilot.name, pilot.run, became, detail) for pilot, became, detail in acts]
            lines += _titled(title, headings, rows, paper)
    halted = f"no further order was given: {outcome.halted}" if outcome.halted else ""
    return lines + [printable(line) for line in (*outcome.followups, outcome.fault, halted) if line]

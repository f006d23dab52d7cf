"""Tables for people: complete also when they go into a pipe or a file, where nothing is cut or folded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drainwise.cli.columns import Row, columns_called
from drainwise.cli.text import printable
from drainwise.reclaim.action import Outcome
from drainwise.reclaim.candidates import KILL, Candidate
from drainwise.reclaim.plan import Order, Plan, UserPlan
from drainwise.reclaim.words import duration

_ENDLESS = 10_000  # columns; what is no terminal has no width

_FIGURES = columns_called("cores,used,report,remaining,drainwaste,killwaste,priority")
_HEADINGS = tuple((">" if column.number else "") + column.heading for column in _FIGURES)
"""`>` stands before a column of numbers."""

_FOLDED = "because"
"""The heading of the one column whose text is long."""


def console() -> Console:
    """Where tables go; in a terminal, or where COLUMNS is set, what is too wide is folded: nothing is left out."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, width=None if known else _ENDLESS, highlight=False, markup=False)


def show(out: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print one table; where the window is too narrow the longest column is folded, then the terminal wraps."""
    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left", pad_edge=False)
    cells = [[Text(printable(cell)) for cell in row] for row in rows]
    for place, heading in enumerate(headings):
        name = heading.lstrip(">")
        longest = max([len(name), *(row[place].cell_len for row in cells)])
        table.add_column(
            name,
            justify="right" if heading.startswith(">") else "left",
            min_width=min(longest, 30) if name == _FOLDED else longest,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*row)
    out.print(table, crop=False)


def _figures(one: Candidate, now: int) -> tuple[str, ...]:
    """A pilot's figures as text; `?` is what is not known or not believed."""
    return tuple(column.text(Row(one, now)) for column in _FIGURES)


def show_plan(out: Console, plan: Plan, now: int) -> None:
    """The plan: the balance, then per user who is asked and who is spared, each with figures and rule."""
    balance = plan.balance
    out.print(Text(f"policy {plan.policy}: {plan.summary}", style="bold"))
    out.print(
        f"cores: {balance.demand:.1f} owed to those who wait, {balance.free:.1f} of them free,"
        f" {balance.leaving} on their way, {balance.surplus:.1f} held beyond the quotas:"
        f" {balance.deficit} to give back now"
    )
    for notice in plan.notices:
        out.print(printable(notice))
    for user in plan.users:
        _show_user(out, user, now)
    if plan.cancels:
        _show_cancels(out, plan)


def _show_cancels(out: Console, plan: Plan) -> None:
    rows = ((one.pilot.name, one.pilot.user, str(one.pilot.cores), one.reason) for one in plan.cancels)
    show(out, "Requests to take back", ("pilot", "user", ">cores", _FOLDED), rows)


def _show_user(out: Console, user: UserPlan, now: int) -> None:
    title = printable(f"{user.user} gives back {user.cores_given} of {user.cores} cores of {user.principal}")
    rows = [
        (order.pilot.name, *_figures(order.candidate, now), _decision(order, now), order.reason)
        for order in user.orders
    ]
    rows += [(one.candidate.pilot.name, *_figures(one.candidate, now), "spare", one.reason) for one in user.spared]
    show(out, title, ("pilot", *_HEADINGS, "decision", _FOLDED), rows)


def _decision(order: Order, now: int) -> str:
    return f"{'vacate' if order.kind == KILL else 'ask'}, {duration(order.deadline - now)} left"


def show_outcome(out: Console, outcome: Outcome) -> None:
    """What became of each act, and what was finished of earlier ones; nothing where there was nothing to do."""
    released = [(one.cancel.pilot, one.outcome, one.detail) for one in outcome.released]
    asked = [(act.order.pilot, act.outcome, act.detail) for act in outcome.acts]
    for title, acts in (("Requests that were to be taken back", released), ("Orders", asked)):
        if acts:
            rows = [(pilot.name, pilot.run, became, detail) for pilot, became, detail in acts]
            show(out, title, ("pilot", "run", "outcome", "detail"), rows)
    halted = f"no further order was given: {outcome.halted}" if outcome.halted else ""
    for line in (*outcome.tended, outcome.fault, halted):
        if line:
            out.print(printable(line))

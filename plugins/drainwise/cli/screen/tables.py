"""The screens of a plan and of its outcome: in a pipe one complete line per pilot, in a window no line is wider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Union, cast

from drainwise.agent.cycle_facts import CycleOutcome
from drainwise.cli.screen.columns import Row, columns_called
from drainwise.cli.screen.layout import BOLD, YELLOW, Heading, Paper, folded, left_out, noted_table
from drainwise.cli.screen.wanted import PilotFilter
from drainwise.facts.units import duration
from drainwise.reclaim.plan import Order, PartOrder, Plan, Spared, UserPlan
from drainwise.reclaim.plan_json import as_json

Shown = Union[Order, PartOrder, Spared]
Plain = dict[str, object]


def plan_as_json(plan: Plan, wanted: PilotFilter) -> Plain:
    """Return the plan as plain values: users, pilots and withdrawals that are wanted; all sums are of the whole."""
    found = as_json(plan)
    if not wanted.is_some and wanted.limit is None:
        return found
    users = zip(cast("list[Plain]", found["users"]), plan.users)
    found["users"] = [_user(one, user, wanted) for one, user in users if wanted.fits_user(user.account, user.user)]
    gone = zip(cast("list[Plain]", found["withdrawals"]), plan.withdrawals)
    found["withdrawals"] = [one for one, order in gone if wanted.fits(order.pilot, is_draining=False)]
    return found


def _user(plain: Plain, user: UserPlan, wanted: PilotFilter) -> Plain:
    """Return one user's part with no more pilots than the limit, those with an order first."""
    room, found = wanted.limit, dict(plain)
    lists: tuple[tuple[str, Sequence[Shown]], ...] = (
        ("orders", user.orders),
        ("returns", user.returns),
        ("spared", user.spared),
    )
    for name, shown in lists:
        if name not in plain:
            continue
        pairs = zip(cast("list[Plain]", plain[name]), shown)
        fits = [one for one, it in pairs if wanted.fits(it.candidate.pilot, it.candidate.draining)]
        found[name] = fits[:room]
        room = None if room is None else max(0, room - len(fits))
    return found


MOST_SPARED = 50
"""Spared pilots of a user that a plan shows."""

_PILOT = Heading("pilot", cuttable=True, shortest=20)
_NUMBERS = (Heading("deadline", number=True), Heading("cores back", number=True), Heading("horizon", True, spare=1))
_FIGURES = columns_called("used,report,remaining,drainwaste,killwaste,priority")
_SPARE = {"drainwaste": 2, "killwaste": 3, "used": 4, "remaining": 5, "priority": 6, "report": 7}
_HEADINGS = (
    _PILOT,
    Heading("cores", number=True),
    Heading("way"),
    *_NUMBERS,
    Heading("would waste", number=True),
    *(Heading(column.heading, column.number, spare=_SPARE[column.name]) for column in _FIGURES),
)
_BECAUSE, _NONE = "because", "-"
_TIMES = "deadline, cores back and horizon are times from now; within the horizon the cores must be back"
_NO_KILL = "no pilot is killed at once ([reclaim] drain_only), whatever its kill waste"
_WIDER = "a wider window or a pipe shows them"


@dataclass(frozen=True)
class PlanRow:
    """One pilot of a plan: its row, its reason, and whether anything is asked of it."""

    cells: tuple[str, ...]
    reason: str
    is_asked: bool


def plan_lines(
    plan: Plan, now: int, paper: Paper, wanted: PilotFilter | None = None, most: int | None = None
) -> list[str]:
    """Return the plan: the balance, then per user who gets an order and who is spared, each with figures and rule.

    wanted: which pilots are shown. most: spared pilots of a user that are shown, None for all.
    """
    wanted = wanted or PilotFilter()
    lines = [paper.styled(line, BOLD) for line in folded(f"policy {plan.policy}: {plan.summary}", paper)]
    for text in (_balance(plan), *plan.notices):
        lines += folded(text, paper)
    users = [user for user in plan.users if wanted.fits_user(user.account, user.user)]
    missing = dict[str, None]()  # each once
    tables = [line for user in users for line in _user_lines(user, now, paper, wanted, most, missing)]
    drained = all(user.open.settings.drain_only for user in users)
    lines += [*folded(f"{_TIMES}; {_NO_KILL}" if drained else _TIMES, paper), *tables] if tables else []
    if withdrawals := [one for one in plan.withdrawals if wanted.fits(one.pilot, is_draining=False)]:
        headings = (
            _PILOT,
            Heading("user", cuttable=True),
            Heading("cores", number=True),
            Heading("deadline", number=True),
        )
        rows = [
            (one.pilot.name, one.pilot.user, str(one.pilot.cores), _left(one.pilot.deadline, now))
            for one in withdrawals
        ]
        reasons = [one.reason for one in withdrawals]
        lines += _titled("Orders to withdraw", headings, rows, reasons, paper, missing)
    if plan.asked_no_more:
        names = ", ".join(one.name for one in plan.asked_no_more)
        lines += folded(f"asked for no cores any more: {names}", paper)
    if wanted.is_some or wanted.limit is not None:
        shown = "a part of the plan" if tables or withdrawals else "no pilot"
        lines += ["", *folded(f"{shown} is shown, by the filters; all sums are of the whole plan", paper)]
    return [*lines, *left_out(list(missing), paper, _WIDER)]


def _balance(plan: Plan) -> str:
    balance = plan.balance
    needed = f"what if {balance.deficit} cores were needed"
    if plan.usable is not None:
        needed = f"cores: {balance.demand:g} owed to those who wait, {balance.free:g} of them free"
        needed += f", {balance.leaving} on their way"
    return f"{needed}; {balance.surplus:g} held beyond the quotas: {balance.deficit} to give back now"


def _user_lines(
    user: UserPlan, now: int, paper: Paper, wanted: PilotFilter, most: int | None, missing: dict[str, None]
) -> list[str]:
    asked = [_order(one, user, now) for one in user.orders if wanted.fits(one.pilot, one.candidate.draining)]
    asked += [_part(one, now) for one in user.returns if wanted.fits(one.pilot, one.candidate.draining)]
    room = most if wanted.limit is None else max(0, wanted.limit - len(asked))
    spared, spared_count = user.spared_first(wanted.fits, room)
    parts = [*asked, *(_spared(one, now) for one in spared)][: wanted.limit]
    given = user.cores_given + user.cores_returned
    title = f"{user.user} ({user.account}) gives back {given} of {user.cores} cores"
    if not parts:
        return [] if wanted.is_some else ["", *_bold(title, paper)]
    rule = _shared_rule([one.reason for one in parts if one.is_asked]) if paper.width is not None else ""
    reasons = [one.reason.removesuffix(f"; {rule}") if rule else one.reason for one in parts]
    styles = [YELLOW if one.is_asked else "" for one in parts]
    lines = _titled(title, _HEADINGS, [one.cells for one in parts], reasons, paper, missing, styles)
    lines += folded(f"these orders: {rule}", paper) if rule else []
    further = len(asked) + spared_count - len(parts)
    if not further:
        return lines
    cut_at = "a higher --limit" if wanted.limit is not None and len(parts) == wanted.limit else "plan --all"
    what = "that are spared" if sum(one.is_asked for one in parts) == len(asked) else "with and without an order"
    return [*lines, *folded(f"and {further} more {what}; {cut_at} shows them", paper)]


def _order(order: Order, user: UserPlan, now: int) -> PlanRow:
    times = (_left(order.deadline, now), _left(order.cores_back, now), duration(user.open.settings.horizon))
    cells = (order.pilot.name, str(order.pilot.cores), order.kind, *times, order.candidate.in_unit(order.waste))
    return PlanRow((*cells, *_figures(Row(order.candidate, now))), order.reason, is_asked=True)


def _part(one: PartOrder, now: int) -> PlanRow:
    times = (_NONE, _left(one.cores_back, now) if one.cores_back is not None else "?", _left(one.by, now))
    cells = (one.pilot.name, str(one.pilot.cores), f"return {one.cores}", *times, one.candidate.in_unit(one.waste))
    return PlanRow((*cells, *_figures(Row(one.candidate, now))), one.reason, is_asked=True)


def _spared(one: Spared, now: int) -> PlanRow:
    pilot, best = one.candidate.pilot, one.candidate.best
    cells = (pilot.name, str(pilot.cores), "spare", *[_NONE] * len(_NUMBERS), one.candidate.in_unit(best.waste))
    return PlanRow((*cells, *_figures(Row(one.candidate, now))), one.reason, is_asked=False)


def _left(moment: int | None, now: int) -> str:
    return _NONE if moment is None else duration(moment - now)


def _figures(row: Row) -> tuple[str, ...]:
    """Write a pilot's figures as text; `?` is what is not known or not believed."""
    return tuple(column.text(row) for column in _FIGURES)


def _shared_rule(reasons: Sequence[str]) -> str:
    """Return the end that several reasons have alike, from a `; ` on; "" where they have none."""
    if len(reasons) < 2:
        return ""
    shared: list[str] = []
    for clauses in zip(*(reason.split("; ")[:0:-1] for reason in reasons)):
        if len(set(clauses)) > 1:
            break
        shared.append(clauses[0])
    return "; ".join(reversed(shared))


def _bold(title: str, paper: Paper) -> list[str]:
    return [paper.styled(line, BOLD) for line in folded(title, paper)]


def _titled(
    title: str,
    headings: Sequence[Heading],
    rows: Iterable[Sequence[str]],
    notes: Sequence[str],
    paper: Paper,
    missing: dict[str, None],
    styles: Sequence[str] = (),
    note: str = _BECAUSE,
) -> list[str]:
    """Return a blank line, a title and a table with a sentence for each row; add what it leaves out to `missing`."""
    lines, left = noted_table(headings, list(rows), notes, paper, note, styles)
    missing.update(dict.fromkeys(left))
    return ["", *_bold(title, paper), *lines]


def outcome_lines(outcome: CycleOutcome, paper: Paper) -> list[str]:
    """Write the outcome of each act and of the follow-up; nothing where there was nothing to do."""
    headings = (_PILOT, Heading("run", cuttable=True, spare=1, shortest=20), Heading("outcome"))
    lines, missing = list[str](), dict[str, None]()
    titled = ("Orders that were to be withdrawn", outcome.withdrawn), ("Orders", outcome.acts), ("Parts", outcome.parts)
    for title, acts in titled:
        if acts:
            rows = [(act.order.pilot.name, act.order.pilot.run, act.outcome) for act in acts]
            lines += _titled(title, headings, rows, [act.detail for act in acts], paper, missing, note="detail")
    lines += left_out(list(missing), paper, _WIDER)
    halted = f"no further order was given: {outcome.halted}" if outcome.halted else ""
    for text in (*outcome.followups, outcome.fault, halted):
        lines += folded(text, paper)
    return lines

"""Replace orders that have become the worse choice by far: another pilot of the same user gets one in their place.

As many cores go as before, the same user gives them back, and nobody waits longer than until the deadlines of the
orders that are replaced. Claims decide which of one user's pilots go, and nothing else. An order is replaced only where
the other costs less by far (`open_need.worth_replacing`), and its pilot gets no other one for a while
(`history.PAUSE`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.facts.units import core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.decide.core_plans import orders_of
from drainwise.reclaim.decide.standing import Standing, standing_orders
from drainwise.reclaim.history import History, cores_allowed, left_of_cycle
from drainwise.reclaim.open_need.threshold import worth_replacing
from drainwise.reclaim.plan import Need, Order, Plan, UserPlan
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, UnmetDemand
from drainwise.reclaim.withdrawal import Withdrawal


@dataclass(frozen=True)
class Replacement:
    """Orders that are withdrawn, and those that are given in their place, of one user: `part` has the orders."""

    part: UserPlan
    withdrawals: tuple[Withdrawal, ...]


def core_replacements(snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History) -> list[Replacement]:
    """Return the replacements at `now` (UNIX s) where cores are counted: a pilot by one of as many cores."""
    found, cycle = [], left_of_cycle(history, now, settings)
    for user in standing_orders(snapshot, now, settings, history):
        allowed = min(cycle, cores_allowed(user.user, history, now, settings))
        pairs = within(cheaper_pairs(user), user, allowed)
        if pairs:
            one = replacement(user, [((row,), (other,)) for row, other in pairs])
            cycle -= one.part.cores_given
            found.append(one)
    return found


def cheaper_pairs(user: Standing) -> list[tuple[int, int]]:
    """Return the rows of orders to withdraw, the dearest first, each with the row of the pilot of `able` in its place.

    The dearest for each core against the cheapest of as many cores.
    """
    pairs = []
    each, others = user.cost / user.ordered.sizes, user.able_cost / user.able.sizes
    for size in np.unique(user.ordered.sizes).tolist():
        mine, theirs = np.flatnonzero(user.ordered.sizes == size), np.flatnonzero(user.able.sizes == size)
        mine = mine[np.argsort(-each[mine], kind="stable")]
        theirs = theirs[np.argsort(others[theirs], kind="stable")]
        for row, other in zip(mine.tolist(), theirs.tolist()):
            if others[other] >= worth_replacing(float(each[row])):
                break
            pairs.append((row, other))
    return sorted(pairs, key=lambda pair: -each[pair[0]])


def within(pairs: Sequence[tuple[int, int]], user: Standing, allowed: int) -> list[tuple[int, int]]:
    """Return the first of these pairs whose cores are `allowed` in this cycle."""
    sums = np.cumsum([user.ordered.sizes[row] for row, _ in pairs])
    return [pair for pair, cores in zip(pairs, sums) if cores <= allowed]


def replacement(user: Standing, groups: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Replacement:
    """Return the orders and withdrawals of groups: rows of `user.ordered` and the rows of `able` in their place."""
    withdrawals = list[Withdrawal]()
    stead: dict[str, tuple[str, ...]] = {}
    said: dict[str, str] = {}
    for rows, others in groups:
        mine, theirs = (
            [among.pilots[row] for row in some] for among, some in ((user.ordered, rows), (user.able, others))
        )
        runs, instead = tuple(one.run for one in mine), tuple(one.run for one in theirs)
        price = core_hours(int(user.able_spent[list(others)].sum()))
        for row, pilot in zip(rows, mine):
            withdrawals.append(_withdrawal(user, row, pilot, f"{_named(theirs)} {price}", instead))
        spent = core_hours(int(user.spent[list(rows)].sum()))
        stead |= dict.fromkeys(instead, runs)
        said |= dict.fromkeys(instead, f"in place of {_named(mine)}, whose order would cost {spent} from now on")
    able = user.able
    some = candidates_of(
        (one for one in able.pilots if one.run in stead), able.figures.now, able.settings, able.history
    )
    total = int(some.sizes.sum())
    orders = tuple(
        replace(one, reason=f"{one.reason}; {said[one.pilot.run]}", instead_of=stead[one.pilot.run])
        for one in orders_of(some)
    )
    part = UserPlan(user.account, user.user, total, 0, "", orders, able, user.closed, Need(total, total))
    return Replacement(part, tuple(withdrawals))


def _withdrawal(user: Standing, row: int, pilot: Pilot, others: str, instead: tuple[str, ...]) -> Withdrawal:
    spent, saved = core_hours(int(user.spent[row])), int(user.ordered.figures.drained[row])
    which = "another pilot costs" if len(instead) == 1 else "other pilots cost"
    reason = f"{which} less by far: {others}, this one {spent} from now on; going on saves {core_hours(saved)}"
    return Withdrawal(pilot, saved, reason, instead)


_NAMED = 3


def _named(pilots: Sequence[Pilot]) -> str:
    names = [one.name for one in pilots]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def parts_of(orders: Sequence[Order], unmet: Mapping[str, UnmetDemand]) -> dict[str, dict[str, AccountPart]]:
    """Return for whom pilots go that replace others, by account and run: for whom those went."""
    found: dict[str, dict[str, AccountPart]] = {}
    for order in orders:
        for name, known in unmet.items():
            cores = sum(known.runs[run].cores for run in order.instead_of if run in known.runs)
            if cores:
                part = AccountPart(" ".join(order.pilot.nodes), order.pilot.cores, min(cores, float(order.pilot.cores)))
                found.setdefault(name, {})[order.pilot.run] = part
    return found


def with_replacements(plan: Plan, found: Sequence[Replacement], unmet: Mapping[str, UnmetDemand]) -> Plan:
    """Return the plan with these replacements; unmet: for whom orders stand, by account or kind of jobs."""
    if not found:
        return plan
    users = list(plan.users)
    for one in found:
        whose = one.part.account, one.part.user, ""
        place = next((row for row, it in enumerate(users) if (it.account, it.user, it.request) == whose), None)
        if place is None:
            users.append(one.part)
        else:
            cores, more = users[place].cores + one.part.cores, (*users[place].orders, *one.part.orders)
            users[place] = replace(users[place], cores=cores, orders=more)
    orders = [order for one in found for order in one.part.orders]
    withdrawals = [one for some in found for one in some.withdrawals]
    number = len(withdrawals)
    words = "1 order is" if number == 1 else f"{number} orders are"
    parts = {name: dict(one) for name, one in plan.parts.items()}
    for name, by_run in parts_of(orders, unmet).items():
        parts.setdefault(name, {}).update(by_run)
    return replace(
        plan,
        users=tuple(users),
        withdrawals=(*plan.withdrawals, *withdrawals),
        summary=f"{plan.summary}; {words} withdrawn, as others cost less by far",
        parts=parts,
    )

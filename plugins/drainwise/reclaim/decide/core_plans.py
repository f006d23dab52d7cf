"""Decide by cores alone, user after user: where what waits is not told by kind, for a what-if and for a request.

All users are one decision (`choose.by_cores`): facts say how many cores each gives, reports which pilots go for that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from drainwise.pool.facts import Snapshot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidates, in_order
from drainwise.reclaim.candidates import in_words as words_of
from drainwise.reclaim.choose.by_cores import CoresNeed, cores_by_claims, cores_by_facts, whole_pilots
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import CORES, STANDING, Limits, Real, Whole, sums
from drainwise.reclaim.decide.by_user import able_and_closed
from drainwise.reclaim.decide.limits import Allowances
from drainwise.reclaim.decide.open_until import OpenUntil
from drainwise.reclaim.decide.parts import PartsAhead
from drainwise.reclaim.figures import cut_wastes, figures_of
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.prices import policy_called, prices_of
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.room.user_pilots import with_parts


def core_plans(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    until: OpenUntil | None = None,
) -> list[UserPlan]:
    """Return each user's part in turn, until the deficit is met; what a limit delays falls on nobody else.

    until: how long parts of pilots count, None where they go as a whole.
    """
    if balance.deficit <= 0:
        return []
    names = {over.account for over in balance.over}
    pilots = [one for one in snapshot.pilots if one.account in names]
    by_user = able_and_closed(pilots, now, settings, history)
    users = [(over.account, user) for over in balance.over for user in over.users]
    every = [one for user in users for one in by_user[user][0].pilots]
    whose = np.repeat(np.arange(len(users)), [len(by_user[user][0]) for user in users])
    count, cores = len(every), balance.deficit
    sizes = np.array([one.cores for one in every], dtype=float)
    age = np.array([max(0, now - one.started) for one in every], dtype=float)
    rows = whole_pilots(sizes, whose, sizes * age, 0 * sizes)
    if until is not None:
        ahead = PartsAhead(in_order(tuple(every), now, settings, history), until)
        rows = with_parts(rows, ahead.by_cores(cores))
        cores -= cores % until.chunk if len(rows) > count else 0
    stand = sums(rows.user, rows.spends[:, CORES] * (rows.way == STANDING), len(users))
    allowances = Allowances(history, now, settings)
    limits, need = _limits(users, cores, balance, allowances, settings, stand)
    facts = cores_by_facts(rows, limits, need)
    mine = np.flatnonzero((facts.asked > 0)[whose])
    table = in_order(tuple([every[row] for row in mine.tolist()]), now, settings, history)
    if facts.given.any():
        rows.claim[mine] = prices_of(table.figures, settings, whose[mine])
    plan = cores_by_claims(rows, limits, facts, Rules(compete=settings.reports_compete))
    whole, parts = np.flatnonzero(plan.gone[:count]), count + np.flatnonzero(plan.gone[count:])
    whole = whole[np.lexsort((whole, rows.claim[whole] / rows.spends[whole, CORES], whose[whole]))]
    ordered = orders_of(table, np.searchsorted(mine, whole))
    of_able, of_orders, of_parts = (_begins(some, users) for some in (whose[mine], whose[whole], rows.user[parts]))
    cycle, taken, found = settings.max_cores, Counter[str](), list[UserPlan]()
    for row in np.flatnonzero(facts.asked > 0).tolist():
        user: tuple[str, str] = users[row]
        orders = ordered[of_orders[row] : of_orders[row + 1]]
        asked, wanted, given, most = (int(some[row]) for some in (facts.asked, facts.wanted, facts.given, facts.most))
        parted = parts[of_parts[row] : of_parts[row + 1]]
        wishes = zip(rows.pilot[parted].tolist(), rows.spends[parted, CORES].tolist())
        returns = tuple(ahead.needed(pilot, int(cores)) for pilot, cores in wishes)
        extra = max(0, sum(one.pilot.cores for one in orders) + sum(one.cores for one in returns) - given)
        if extra and orders:
            orders = (replace(orders[0], extra=extra), *orders[1:])
        allowed, later = allowances.of(user[1], cycle, taken[user[1]]), max(0, int(facts.later[row]) - extra)
        limit, key = (allowed.words, allowed.key) if asked > allowed.cores else ("", "")
        of_user = Need(min(wanted, given) if returns else wanted, most)
        some, closed = table.some(range(of_able[row], of_able[row + 1])), by_user[user][1]
        part = UserPlan(*user, asked, later, limit, orders, some, closed, of_user, limited_by=key, returns=returns)
        found.append(part)
        cycle -= part.cores_given + part.cores_returned
        taken[user[1]] += part.cores_given + part.cores_returned
    return found


def _begins(whose: Whole, users: Sequence[tuple[str, str]]) -> list[int]:
    """Return where what belongs to each user begins, and the end of all; whose: ascending."""
    found: list[int] = np.searchsorted(whose, np.arange(len(users) + 1)).tolist()
    return found


def _limits(
    users: Sequence[tuple[str, str]],
    cores: int,
    balance: Balance,
    allowances: Allowances,
    settings: ReclaimSettings,
    stand: Real,
) -> tuple[Limits, CoresNeed]:
    """Return what users may lose: all together, each account, and each user under all of its accounts.

    But no less than what stands of each user, of which no more is returned than is needed.
    """
    accounts = {one.account: 1 + place for place, one in enumerate(balance.over)}
    begin = 1 + len(accounts)
    names = {name: begin + place for place, name in enumerate(dict.fromkeys(user for _, user in users))}
    each = [allowances.of(name, settings.max_cores, 0).cores for name in names]
    binds = np.array([(0, accounts[account], names[user]) for account, user in users], dtype=np.int64).reshape(-1, 3)
    standing = np.zeros(begin + len(names))
    np.add.at(standing, binds, stand[:, None])
    most, wider = (
        np.maximum([allowances.together(), *some, *each], standing)
        for some in ([one.cores for one in balance.over], [one.most for one in balance.over])
    )
    delays = np.ones(len(most), dtype=bool)
    delays[1:begin] = False
    limits = Limits(
        np.array([accounts[account] - 1 for account, _ in users], dtype=np.int64),
        np.arange(len(users), dtype=float),
        binds,
        most,
        np.full(len(most), CORES),
        np.full(len(users), float(allowances.most_extra)),
        np.array([allowances.extra[user] for _, user in users], dtype=float),
    )
    return limits, CoresNeed(cores, balance.below_share, wider, delays)


def orders_of(among: Candidates, rows: Whole | None = None) -> tuple[Order, ...]:
    """Return the orders for pilots that go, in the order of these rows; None: for all, the cheapest core first.

    Each has what its pilot would waste by its own claims: without doubt, each promise kept.
    """
    it, settings = among.figures, among.settings
    if rows is None:
        rows = np.argsort(prices_of(it, settings) / among.sizes, kind="stable")
    policy = policy_called(settings.policy)
    chosen = [among[row] for row in rows.tolist()]
    ways = [policy.way_of(one, it, row, settings) for one, row in zip(chosen, rows.tolist())]
    nothing = np.zeros(len(rows))
    claimed = figures_of(replace(it.columns.rows(rows), doubt=nothing, broken=nothing), it.now, settings)
    # At its deadline, and not when it would be cut by its claims alone.
    cut = cut_wastes(claimed.columns, it.now, np.array([way.deadline for way in ways], dtype=float), settings.margin)
    wastes = {LEAVE: claimed.leave, CUT: cut, KILL: claimed.kill}
    promised = (float(wastes[way.kind][row]) for row, way in enumerate(ways))
    return tuple(
        Order(
            one,
            way.kind,
            way.deadline,
            way.cores_back,
            way.waste,
            way.waste if math.isinf(waste) else int(waste),
            f"{words_of(one, way, it.now)}; {policy.rule}",
        )
        for one, way, waste in zip(chosen, ways, promised)
    )

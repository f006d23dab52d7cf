"""Decide by cores alone, user after user: where what waits is not told by kind, for a what-if and for a request.

All users are one decision (`choose.by_cores`): facts say how many cores each gives, reports which pilots go for that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidate, Candidates, Option, in_order
from drainwise.reclaim.candidates import in_words as words_of
from drainwise.reclaim.choose.by_cores import CoresNeed, cores_by_claims, cores_by_facts
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import CORES, Limits, Rows, Whole
from drainwise.reclaim.choose.problem import KILL as KILLED
from drainwise.reclaim.cut_wastes import cut_wastes
from drainwise.reclaim.decide.by_user import Closed, able_and_closed_by_user
from drainwise.reclaim.decide.limits import Allowances, Allowed
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.history import History
from drainwise.reclaim.parts.part_plans import PartsUntil, mix_with_standing
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.prices import BY_WASTE, policy_called, prices_of
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.settings import ReclaimSettings


def core_plans(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    wait: str,
    until: PartsUntil | None = None,
) -> list[UserPlan]:
    """Return each user's part in turn, until the deficit is met; what a limit delays falls on nobody else.

    wait: why no order may be given yet, or "". until: how long parts of pilots count, None where they go as a whole.
    """
    if balance.deficit <= 0:
        return []
    names = {over.account for over in balance.over}
    pilots = [one for one in snapshot.pilots if one.account in names]
    by_user = able_and_closed_by_user(pilots, now, settings, history)
    users = [_User(one.account, user, *by_user[one.account, user]) for one in balance.over for user in one.users]
    left = _Left(balance, Allowances(history, now, settings), wait, now, settings, history)
    if until is None:
        return left.plans(users)
    return [
        part
        for user in users
        for part in left.plans([user], lambda part: _with_mix(part, left.allowed(part.user), until))
    ]


class _User(NamedTuple):
    """One user's pilots, as of `able_and_closed`."""

    account: str
    name: str
    able: Candidates
    closed: Closed


class _Left:
    """What is still to be given back, and by whom it may be, after what others give."""

    def __init__(
        self,
        balance: Balance,
        allowances: Allowances,
        wait: str,
        now: int,
        settings: ReclaimSettings,
        history: History,
    ) -> None:
        self._cores, self._own, self._cycle, self._wait = balance.deficit, balance.below_share, settings.max_cores, wait
        self._usual = {one.account: one.cores for one in balance.over}
        self._most = {one.account: one.most for one in balance.over}
        self._allowances, self._taken = allowances, Counter[str]()
        self._now, self._settings, self._history = now, settings, history

    def allowed(self, user: str) -> Allowed:
        """Return what a user may be ordered to give back now."""
        return self._allowances.of(user, self._cycle, self._taken[user], self._wait)

    def plans(
        self, users: Sequence[_User], changed: Callable[[UserPlan], UserPlan] = lambda part: part
    ) -> list[UserPlan]:
        """Return the parts of those of these users that are asked for any cores; changed: what becomes of each."""
        able = [user.able.pilots for user in users]
        whose = np.repeat(np.arange(len(users)), [len(some) for some in able])
        rows = _rows([one for some in able for one in some], whose, self._now)
        limits, need = self._limits(users)
        facts = cores_by_facts(rows, limits, need)
        asked = np.flatnonzero(facts.asked > 0).tolist()
        mine = np.flatnonzero((facts.asked > 0)[whose])
        table = in_order(tuple([one for user in asked for one in able[user]]), self._now, self._settings, self._history)
        if facts.given.any():
            rows.claim[mine] = prices_of(table.figures, self._settings, whose[mine])
        plan = cores_by_claims(rows, limits, facts, Rules(compete=self._settings.reports_compete))
        gone = np.flatnonzero(plan.gone)
        gone = gone[np.lexsort((gone, rows.claim[gone] / rows.spends[gone, CORES], whose[gone]))]
        orders = orders_of(table, np.searchsorted(mine, gone))
        begin, of_user = (
            np.searchsorted(one, np.arange(len(users) + 1)).tolist() for one in (whose[mine], whose[gone])
        )
        parts = []
        for user in asked:
            theirs, given, later = orders[of_user[user] : of_user[user + 1]], facts.given[user], int(facts.later[user])
            extra = max(0, sum(one.pilot.cores for one in theirs) - int(given))
            if extra:
                theirs = (replace(theirs[0], extra=extra), *theirs[1:])
            some = table.some(range(begin[user], begin[user + 1]))
            need_of = Need(int(facts.wanted[user]), int(facts.most[user]))
            part = self._part(users[user], int(facts.asked[user]), max(0, later - extra), theirs, some, need_of)
            parts.append(changed(part))
            self._take(parts[-1])
        return parts

    def _part(
        self, user: _User, cores: int, later: int, orders: tuple[Order, ...], able: Candidates, need: Need
    ) -> UserPlan:
        allowed = self.allowed(user.name)
        limit, key = (allowed.words, allowed.key) if cores > allowed.cores else ("", "")
        return UserPlan(user.account, user.name, cores, later, limit, orders, able, user.closed, need, limited_by=key)

    def _take(self, part: UserPlan) -> None:
        given = part.cores_given + part.cores_returned
        self._cycle -= given
        self._taken[part.user] += given
        gone = given + part.later
        self._cores, self._own = self._cores - gone, self._own - gone
        self._usual[part.account] -= gone
        self._most[part.account] -= gone

    def _limits(self, users: Sequence[_User]) -> tuple[Limits, CoresNeed]:
        """Return what users may lose: all together, each account, and each user under all of its accounts."""
        accounts = {name: 1 + place for place, name in enumerate(dict.fromkeys(one.account for one in users))}
        begin = 1 + len(accounts)
        names = {name: begin + place for place, name in enumerate(dict.fromkeys(one.name for one in users))}
        each = [self.allowed(name).cores for name in names]
        everybody = self._allowances.together(self._cycle, self._wait)
        most, wider = (
            np.array([everybody, *(some[name] for name in accounts), *each], dtype=float)
            for some in (self._usual, self._most)
        )
        delays = np.ones(len(most), dtype=bool)
        delays[1:begin] = False
        extra = self._settings.extra_cores if self._settings.policy in BY_WASTE else 0  # another price is no waste
        limits = Limits(
            np.array([accounts[one.account] - 1 for one in users], dtype=np.int64),
            np.arange(len(users), dtype=float),
            np.array([(0, accounts[one.account], names[one.name]) for one in users], dtype=np.int64).reshape(-1, 3),
            most,
            np.full(len(most), CORES),
            np.full(len(users), math.nan if extra is None else extra),
            np.array([self._allowances.extra[one.name] for one in users], dtype=float),
        )
        return limits, CoresNeed(self._cores, self._own, wider, delays)


def _rows(pilots: Sequence[Pilot], user: Whole, now: int) -> Rows:
    """Return pilots as rows in one place, each to go as a whole; of no claim yet."""
    every = np.arange(len(pilots))
    cores = np.array([pilot.cores for pilot in pilots], dtype=float)
    age = np.array([max(0, now - pilot.started) for pilot in pilots], dtype=float)
    spends = np.column_stack((cores, 0 * cores))
    ways = np.full(len(pilots), KILLED)
    return Rows(every, ways, user, spends, cores * age, 0 * cores, every, 0 * every, cores[:, None])


def _with_mix(part: UserPlan, allowed: Allowed, until: PartsUntil) -> UserPlan:
    """Return the part with parts of pilots in it, where any return some. What a limit delays is asked for later."""
    able = part.open
    need = Need(min(part.cores, allowed.cores), min(part.need.most, allowed.cores))
    mix = mix_with_standing(able, need, until, able.settings)
    if mix is None:
        return part
    orders = orders_of(able.some(mix.whole))
    found = replace(part, orders=orders, need=need, returns=mix.parts, later=0)
    possible = min(part.cores, int(able.sizes.sum()))
    return replace(found, later=max(0, possible - found.cores_given - found.cores_returned)) if found.limit else found


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
        _order(one, way, way.waste if math.isinf(waste) else int(waste), f"{words_of(one, way, it.now)}; {policy.rule}")
        for one, way, waste in zip(chosen, ways, promised)
    )


def _order(one: Candidate, way: Option, promised: int, reason: str) -> Order:
    return Order(one, way.kind, way.deadline, way.cores_back, way.waste, promised, reason)

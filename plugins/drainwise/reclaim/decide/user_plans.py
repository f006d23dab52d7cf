"""Decide what each user gives back: by the room that waiting jobs need where that is known, elsewhere by cores alone.

All users are one decision (`reclaim.choose`). By room what is free and what comes back anyway serves those who wait
first, place by place, and for the rest pilots go whose places then have the room. By cores all are on one place. Facts
say how many cores each user gives, reports which pilots go for that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import CORES_ALONE
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.candidates import COMMIT, CUT, KILL, LEAVE, Candidates
from drainwise.reclaim.candidates import in_words as words_of
from drainwise.reclaim.choose.by_cores import CoresNeed, cores_by_claims, cores_by_facts
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import (
    CORES,
    STANDING,
    Limits,
    Mask,
    Real,
    Rows,
    Whole,
    sums,
    whole_pilots,
    with_parts,
)
from drainwise.reclaim.decide.open_until import OpenUntil
from drainwise.reclaim.decide.parts import PartsAhead, part_orders, room_parts
from drainwise.reclaim.figures import cut_wastes, figures_of
from drainwise.reclaim.history import HOUR, History, PastOrder, why_closed
from drainwise.reclaim.plan import Need, Order, PartOrder, UserPlan
from drainwise.reclaim.prices import BY_WASTE, policy_called, prices_of
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.reasons import NO_PLACE, REASONS, Reason
from drainwise.reclaim.room import DemandLeft, PlaceRoom, RoomMade, kept_rooms, make_room, rows_of
from drainwise.reclaim.settings import LIMITS, ReclaimSettings

_NO_LIMIT = float(1 << 53)  # cores


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What is chosen: rows that have gone, and would by facts alone (n); cores that each gives, of parts those that are
    needed, and of these those of use together (n).

    of: the pilots that were looked at, numbers; table: these, as candidates. asked, later: cores by user (U), and of
    these what a limit leaves to later. need: the least and the most of each user, U × 2. made: the room, if any.
    """

    of: Whole
    table: Candidates
    gone: Mask
    by_facts: Mask
    cores: Real
    together: Whole
    asked: Real
    later: Real
    need: Real
    made: RoomMade | None = None


def user_plans(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    until: OpenUntil | None = None,
    left: DemandLeft | None = None,
) -> tuple[list[UserPlan], RoomMade | None]:
    """Return each user's part in turn, and the room that all make together.

    What a limit delays falls on nobody else. until: how long parts of
    pilots count, None where they go as a whole. left: the jobs without room, None where cores are counted.
    """
    if left is None and balance.deficit <= 0:
        return [], None
    names, index = {over.account for over in balance.over}, None if left is None else left.facts.index
    among = (one for one in snapshot.pilots if one.account in names)
    by_user = able_and_closed(among, now, settings, history, index)
    users = [(over.account, user) for over in balance.over for user in over.users]
    each = [by_user[user][0] for user in users]
    whose = np.repeat(np.arange(len(users)), [len(pilots) for pilots in each])
    table = Candidates(tuple(chain.from_iterable(each)), now, settings, history)
    ahead = None if until is None else PartsAhead(table, until)
    rows = _rows(table.pilots, whose, now, left, ahead, balance.deficit)
    allowances = Allowances(history, now, settings)
    limits, need = _limits(users, rows, balance, allowances, settings)
    if left is None:
        if until is not None and len(rows) > len(table):
            need = replace(need, cores=need.cores - need.cores % until.chunk)
        chosen = _by_cores(table, rows, limits, need)
    else:  # room may need more cores than the job has, where its memory or devices are what pilots hold
        limits = replace(limits, most=need.wider) if balance.below_share else limits
        chosen = _by_room(table, rows, limits, left, len(balance.over))
    gone, parts = np.flatnonzero(chosen.gone), defaultdict[int, "list[tuple[int, int, int]]"](list)
    given = sums(rows.user[gone], chosen.cores[gone], len(users))
    by_facts = sums(rows.user, rows.spends[:, CORES] * chosen.by_facts, len(users))
    for row in gone[gone >= len(table)].tolist():
        parts[int(rows.user[row])].append((int(rows.pilot[row]), int(chosen.cores[row]), int(chosen.together[row])))
    whole = gone[gone < len(table)]
    whole = whole[np.lexsort((whole, rows.claim[whole] / chosen.cores[whole], whose[whole]))]
    rooms = {} if chosen.made is None else {run: one.room for one in chosen.made.places for run in one.runs}
    ordered = orders_of(chosen.table, np.searchsorted(chosen.of, whole), rooms)
    of_able, of_orders = (
        np.searchsorted(some, np.arange(len(users) + 1)).tolist() for some in (whose[chosen.of], whose[whole])
    )
    of_user, plans, cycle = Counter[str](), list[UserPlan](), settings.max_cores - int(given.sum())
    for (_, user), cores in zip(users, given.astype(int).tolist()):
        of_user[user] += cores
    for number in np.flatnonzero(chosen.asked > 0).tolist():
        (account, user), own, later = users[number], int(given[number]), int(chosen.later[number])
        wanted, most = chosen.need[number].astype(int).tolist()
        orders = ordered[of_orders[number] : of_orders[number + 1]]
        if orders and (extra := own - int(by_facts[number])) > 0:
            orders = (replace(orders[0], extra=extra), *orders[1:])
        allowed = allowances.of(user, cycle + own, of_user[user] - own)
        returns = list[PartOrder]()
        if ahead is not None and parts[number]:
            others = (whose == number) & ~chosen.gone[: len(table)]
            returns, wanted = part_orders(ahead, parts[number], left, others), min(wanted, own)
        plans.append(
            UserPlan(
                account,
                user,
                int(chosen.asked[number]),
                later,
                allowed.words if later else "",
                orders,
                chosen.table.some(range(of_able[number], of_able[number + 1])),
                by_user[account, user][1],
                Need(wanted, most),
                returns=tuple(returns),
                limited_by=allowed.key if later else "",
            )
        )
    if left is not None and chosen.made is not None:
        plans = with_kept_rooms(plans, left, chosen.made.places, snapshot.pilots, settings.time_to_start)
    return plans, chosen.made


def _by_cores(table: Candidates, rows: Rows, limits: Limits, need: CoresNeed) -> _Chosen:
    """Choose by cores; of users that are asked for nothing no figure is calculated."""
    settings, cores = table.settings, rows.spends[:, CORES]
    facts = cores_by_facts(rows, limits, need)
    of = np.flatnonzero((facts.asked > 0)[rows.user[: len(table)]])
    table = table.some(of.tolist())
    if facts.given.any():
        rows.claim[of] = prices_of(table.figures, settings, rows.user[of])
    plan = cores_by_claims(rows, limits, facts, Rules(compete=settings.reports_compete))
    given = sums(rows.user, cores * plan.gone, len(limits.rank))
    later = np.maximum(facts.later - np.maximum(given - facts.given, 0), 0)
    need_of, none = np.column_stack((facts.wanted, facts.most)), np.zeros(len(rows), dtype=np.int64)
    return _Chosen(of, table, plan.gone, plan.by_facts, cores, none, facts.asked, later, need_of)


def _by_room(table: Candidates, rows: Rows, limits: Limits, left: DemandLeft, accounts: int) -> _Chosen:
    """Choose by room; accounts: how many limits are those of accounts, the first."""
    settings, every = table.settings, np.arange(len(table))
    runs, rules = [one.run for one in table.pilots], Rules(compete=settings.reports_compete)
    rows.claim[every] = prices_of(table.figures, settings, rows.user[every])
    whole = made = make_room(left, rows, limits, runs, rules)
    if made.missing and (limits.most[accounts:] < limits.most[limits.binds[:, 0]].sum()).any():
        bound = np.arange(len(limits.most)) < accounts
        whole = make_room(left, rows, replace(limits, most=np.where(bound, limits.most, _NO_LIMIT)), runs, rules)
    given, could = (sums(rows.user, one.cores * one.plan.gone, len(limits.rank)) for one in (made, whole))
    later, plan, need_of = np.maximum(could - given, 0), made.plan, np.column_stack((given, given))
    return _Chosen(
        every, table, plan.gone, plan.by_facts, made.cores, made.together, given + later, later, need_of, made
    )


def _rows(
    pilots: Sequence[Pilot], whose: Whole, now: int, left: DemandLeft | None, ahead: PartsAhead | None, cores: int
) -> Rows:
    """Return the rows of whole pilots and of their parts; their claims are 0."""
    none = np.zeros(len(pilots))
    if left is not None:
        rows, names = rows_of(left.facts, pilots, whose, none, now), left.facts.resources
        memory = names.index("memory") if "memory" in names else None
        return rows if ahead is None else with_parts(rows, room_parts(ahead, left), memory)
    sizes = np.array([one.cores for one in pilots], dtype=float)
    age = np.array([max(0, now - one.started) for one in pilots], dtype=float)
    rows = whole_pilots(sizes, whose, sizes * age, none)
    return rows if ahead is None else with_parts(rows, ahead.by_cores(cores))


def _limits(
    users: Sequence[tuple[str, str]],
    rows: Rows,
    balance: Balance,
    allowances: Allowances,
    settings: ReclaimSettings,
) -> tuple[Limits, CoresNeed]:
    """Return what users may lose: each account, all together, and each user under all of its accounts.

    But no less than what stands of each user, of which no more is returned than is needed. The need, where cores are
    counted, lets an account lose more for others' own shares.
    """
    accounts = {one.account: place for place, one in enumerate(balance.over)}
    count = len(accounts)
    names = {name: count + 1 + place for place, name in enumerate(dict.fromkeys(user for _, user in users))}
    each = [allowances.of(name, settings.max_cores, 0).cores for name in names]
    binds = np.array([(accounts[account], count, names[user]) for account, user in users], dtype=np.int64)
    binds, standing = binds.reshape(-1, 3), np.zeros(count + 1 + len(names))
    stand = sums(rows.user, rows.spends[:, CORES] * (rows.way == STANDING), len(users))
    np.add.at(standing, binds, stand[:, None])
    most, wider = (
        np.maximum([*some, allowances.together(), *each], standing)
        for some in ([one.cores for one in balance.over], [one.most for one in balance.over])
    )
    limits = Limits(
        np.array([accounts[account] for account, _ in users], dtype=np.int64),
        np.arange(len(users), dtype=float),
        binds,
        most,
        np.full(len(most), CORES),
        np.full(len(users), float(allowances.most_extra)),
        np.array([allowances.extra[user] for _, user in users], dtype=float),
    )
    return limits, CoresNeed(balance.deficit, balance.below_share, wider, np.arange(len(most)) >= count)


def orders_of(
    among: Candidates,
    rows: Whole | None = None,
    rooms: Mapping[str, RoomFor] = MappingProxyType({}),
) -> tuple[Order, ...]:
    """Return the orders for pilots that go, in the order of these rows; None: for all, the cheapest core first.

    Each has what its pilot would waste by its own claims: without doubt, each promise kept. rooms: that they make, by
    run.
    """
    it, settings = among.figures, among.settings
    if rows is None:
        rows = np.argsort(prices_of(it, settings) / among.sizes, kind="stable")
    policy = policy_called(settings.policy)
    chosen = among.at(rows.tolist())
    ways = [policy.way_of(one, it, row, settings) for one, row in zip(chosen, rows.tolist())]
    nothing = np.zeros(len(rows))
    claimed = figures_of(replace(it.columns.rows(rows), doubt=nothing, broken=nothing), it.now, settings)
    # At its deadline, and not when it would be cut by its claims alone.
    cut = cut_wastes(claimed.columns, it.now, np.array([way.deadline for way in ways], dtype=float), settings.margin)
    wastes = {LEAVE: claimed.leave, CUT: cut, COMMIT: claimed.cut, KILL: claimed.kill}
    promised = (float(wastes[way.kind][row]) for row, way in enumerate(ways))
    rule = policy.rule if settings.billing == CORES_ALONE else f"{policy.rule}, by what [reclaim] billing makes of it"
    said = {name: room.in_words() for name, room in {room.place: room for room in rooms.values()}.items()}
    return tuple(
        Order(
            one,
            way.kind,
            way.deadline,
            way.cores_back,
            way.waste,
            way.waste if math.isinf(waste) else int(waste),
            "; ".join((words_of(one, way, it.now), rule, *([said[room.place]] if room else []))),
            room=room,
        )
        for one, way, waste, room in zip(chosen, ways, promised, (rooms.get(one.pilot.run) for one in chosen))
    )


def with_kept_rooms(
    plans: Sequence[UserPlan],
    left: DemandLeft,
    places: Sequence[PlaceRoom],
    pilots: Iterable[Pilot],
    time_to_start: int,
) -> list[UserPlan]:
    """Return the plans; each order says what must be kept on its place, until `time_to_start` s after the last one.

    places: where room is made. pilots: of the snapshot.
    """
    orders = [order for one in plans for order in one.orders]
    going: dict[str, list[tuple[Amounts, int]]] = {order.pilot.place: [] for order in orders}
    for order in orders:
        going[order.pilot.place].append((order.pilot.holds or Amounts(), order.deadline + time_to_start))
    for one in pilots:
        if one.deadline is not None and one.place in going and not one.reserved:
            going[one.place].append((one.holds or Amounts(), one.deadline + time_to_start))
    kept = kept_rooms(left.facts, places, left.served, going)
    if not kept:
        return list(plans)
    return [
        replace(one, orders=tuple(replace(order, kept=kept.get(order.pilot.place)) for order in one.orders))
        for one in plans
    ]


def able_and_closed(
    pilots: Iterable[Pilot],
    now: int,
    settings: ReclaimSettings,
    history: History,
    places: Container[str] | None = None,
) -> Mapping[tuple[str, str], tuple[list[Pilot], list[tuple[Pilot, Reason]]]]:
    """Return the pilots of each user that may get an order at `now` (UNIX s), and the others with why, by account and
    user, in the order of their runs.

    places: names of those where room is made, where only pilots there may get one; None: all may.
    """
    found: dict[tuple[str, str], tuple[list[Pilot], list[tuple[Pilot, Reason]]]] = defaultdict(lambda: ([], []))
    for pilot in sorted(pilots, key=lambda pilot: pilot.run):
        reason = why_closed(pilot, now, settings, history)
        if places is not None and not reason:
            known = (pilot.holds and pilot.place in places) or any(one.place in places for one in pilot.pieces)
            reason = reason if known else Reason(REASONS[NO_PLACE], NO_PLACE)
        able, closed = found[pilot.account, pilot.user]
        if reason:
            closed.append((pilot, reason))
        else:
            able.append(pilot)
    return found


def within_hour(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Snapshot:
    """Return the snapshot in which nobody can lose more GPUs, or of what is billed, within the hour at `now` (UNIX s)
    than the site allows.

    Of the pilots those that have run for the shortest time may be ordered, by facts alone.
    """
    past = [one for one in history.orders if one.time > now - HOUR]

    def billed(one: Pilot | PastOrder) -> float:
        return one.cores * (one.billed if isinstance(one, PastOrder) else settings.billing.each_core(one))

    def everybody(_: Pilot | PastOrder) -> str:
        return ""

    user, gpus = attrgetter("user"), attrgetter("gpus")
    for key, most, amount_of, whose in (
        ("max_gpus_per_user_per_hour lets no more GPUs", settings.max_gpus_user_hour, gpus, user),
        ("max_billing_per_user_per_hour lets no more billing", settings.max_billing_user_hour, billed, user),
        ("max_billing_per_hour lets no more billing", settings.max_billing_hour, billed, everybody),
    ):
        if most == ReclaimSettings.max_gpus_user_hour:
            continue  # as by default, which is no limit
        left, barred = defaultdict[str, float](partial(float, most)), dict[str, str]()
        for order in past:
            left[whose(order)] -= amount_of(order)
        for pilot in sorted(snapshot.pilots, key=lambda pilot: (-pilot.started, pilot.run)):
            amount = 0 if why_closed(pilot, now, settings, history) else amount_of(pilot)
            if amount > left[whose(pilot)]:
                barred[pilot.run] = f"[reclaim] {key} of {pilot.user} be taken now"
            else:
                left[whose(pilot)] -= amount
        snapshot = with_barred(snapshot, barred)
    return snapshot


def with_barred(snapshot: Snapshot, barred: Mapping[str, str]) -> Snapshot:
    """Return the snapshot in which these runs can get no order, each with why."""
    pilots = (replace(one, cannot=barred[one.run]) if one.run in barred else one for one in snapshot.pilots)
    return replace(snapshot, pilots=tuple(pilots)) if barred else snapshot


class Allowed(NamedTuple):
    """So many `cores`; `key` of [reclaim] is the bound, and `words` say so."""

    cores: int
    key: str
    words: str


class Allowances:
    """What users may be ordered to give back at `now` (UNIX s).

    most_extra: cores beyond what facts take that reports may cost a user, not a number where its pilots say it; extra:
    what they have cost it within the hour, by user.
    """

    def __init__(self, history: History, now: int, settings: ReclaimSettings) -> None:
        self._settings, self._lately, self.extra = settings, Counter[str](), Counter[str]()
        most = math.nan if settings.extra_cores is None else settings.extra_cores
        self.most_extra = most if settings.policy in BY_WASTE else 0  # another policy's price is no waste
        for one in history.orders:
            if one.time > now - HOUR:
                self._lately[one.user] += one.cores
                self.extra[one.user] += one.extra
        self._hour = settings.max_cores_hour - sum(self._lately.values())

    def together(self) -> int:
        """Return what all users together may be ordered to give back in one cycle."""
        return max(0, min(self._settings.max_cores, self._hour))

    def of(self, user: str, cycle: int, taken: int) -> Allowed:
        """Return what one user may be ordered to give back.

        cycle: cores that this cycle may still order. taken: cores of the user that it has ordered already.
        """
        site = self._settings
        mine = (site.max_cores_per_user, site.max_cores_per_user_hour - self._lately[user])
        together = (cycle, self._hour - (site.max_cores - cycle))  # without what this cycle has ordered
        bounds = dict(zip(LIMITS, (*together, *(most - taken for most in mine))))
        key = min(bounds, key=bounds.__getitem__)
        cores = max(0, bounds[key])
        return Allowed(cores, key, f"[reclaim] {key} allows {cores} cores now")

"""Decide by the room that waiting jobs need, where the batch system tells what waits by kind and where it could start.

What is free and what comes back anyway serves those who wait first, place by place. For the rest pilots go whose places
then have the room. The batch system's facts decide how many cores each user gives back; claims decide which pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, RoomFor
from drainwise.reclaim.candidates import Candidates, in_order
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.decide.by_user import able_and_closed
from drainwise.reclaim.decide.core_plans import orders_of
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.decide.limits import Allowances
from drainwise.reclaim.decide.open_until import OpenUntil
from drainwise.reclaim.decide.parts import PartsAhead, room_parts, with_single_cores
from drainwise.reclaim.history import History, why_closed
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.prices import prices_of
from drainwise.reclaim.quota import Balance, Over
from drainwise.reclaim.reasons import NO_PLACE, REASONS, Reason
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart
from drainwise.room.choice import PlaceRoom, RoomMade, make_room
from drainwise.room.kept_rooms import kept_rooms
from drainwise.room.user_pilots import UserPilots


def room_plans(
    kinds: KindsLeft,
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    until: OpenUntil | None = None,
) -> tuple[list[UserPlan], RoomMade]:
    """Return each user's part, and the room that all make together.

    until: how long parts of pilots count, None where they go as a whole.
    """
    facts, left, rules = kinds.facts, kinds.left, Rules(compete=settings.reports_compete)
    names = {over.account for over in balance.over}
    pilots = [one for one in snapshot.pilots if one.account in names]
    by_user = able_and_closed(pilots, now, settings, history, why_closed_for_room)
    users = [(over.account, user) for over in balance.over for user in over.users]
    count = [len(by_user[whose][0]) for whose in users]
    begin = np.cumsum([0, *count]).tolist()
    able = in_order(tuple([one for whose in users for one in by_user[whose][0].pilots]), now, settings, history)
    prices = prices_of(able.figures, settings, np.repeat(np.arange(len(users)), count))
    each = [able.some(range(first, last)) for first, last in zip(begin, begin[1:])]
    ahead = [None if until is None else PartsAhead(some, until) for some in each]
    places = Counter(place for pilot in able.pilots for place, _ in pilot.returns()) if until is not None else {}
    on_places = np.array([places.get(one.name, 0) for one in facts.places], dtype=np.int64)
    allowances = Allowances(history, now, settings)
    rows = [
        UserPilots(
            *whose,
            (f"account {whose[0]}", f"user {whose[1]}", "cycle"),
            able.pilots[begin[number] : begin[number + 1]],
            prices[begin[number] : begin[number + 1]],
            allowances.most_extra,
            allowances.extra[whose[1]],
            None if some is None else room_parts(some, facts, left, on_places),
        )
        for number, (whose, some) in enumerate(zip(users, ahead))
    ]
    most = {f"account {over.account}": most_of(over, balance) for over in balance.over}
    limits = {"cycle": allowances.together()}
    limits |= {f"user {user}": allowances.of(user, settings.max_cores, 0).cores for _, user in users}
    whole = made = make_room(facts, left, rows, {**most, **limits}, now, rules)
    beyond = sum(most_of(over, balance) * len(over.users) for over in balance.over)
    if made.missing and any(limit < beyond for limit in limits.values()):
        whole = make_room(facts, left, rows, {**most, **dict.fromkeys(limits, 1 << 53)}, now, rules)
    orders = _orders(able, begin, made, {kind.name: kind for kind in facts.kinds})
    of_user, plans = Counter[str](), list[UserPlan]()
    for (_, user), gives in zip(users, made.users):
        of_user[user] += gives.cores
    cycle = settings.max_cores - sum(of_user.values())
    for number, (whose, gives, could, ahead_of) in enumerate(zip(users, made.users, whole.users, ahead)):
        later, own = max(0, could.cores - gives.cores), gives.cores
        if not (own or later):
            continue
        allowed = allowances.of(whose[1], cycle + own, of_user[whose[1]] - own)
        limit, key = (allowed.words, allowed.key) if later else ("", "")
        returns = with_single_cores(ahead_of, gives.parts, facts, left, gives.runs) if ahead_of and gives.parts else ()
        closed, need = by_user[whose][1], Need(own, own)
        plan = UserPlan(*whose, own + later, later, limit, orders[number], each[number], closed, need, limited_by=key)
        plans.append(replace(plan, returns=tuple(returns)) if returns else plan)
    return with_kept_rooms(plans, kinds, made.places, snapshot.pilots, settings.time_to_start), made


def _orders(
    able: Candidates, begin: Sequence[int], made: RoomMade, kinds: Mapping[str, JobKind]
) -> list[tuple[Order, ...]]:
    """Return the orders of each user, the cheapest core first; able: the pilots of all users, of each from `begin`."""
    rooms = {
        run: RoomFor(place.place, tuple((kinds[name], jobs) for name, jobs in place.jobs))
        for place in made.places
        for run in place.runs
    }
    rows = np.array([row for row, pilot in enumerate(able.pilots) if pilot.run in rooms], dtype=np.int64)
    some = able.some(rows.tolist())
    user = np.searchsorted(begin, rows, side="right") - 1
    order = np.lexsort((prices_of(some.figures, some.settings, user) / some.sizes, user))
    found: list[list[Order]] = [[] for _ in made.users]
    for number, one in zip(user[order].tolist(), orders_of(some, order)):
        room = rooms[one.pilot.run]
        extra = 0 if found[number] else made.users[number].extra
        found[number].append(replace(one, room=room, reason=f"{one.reason}; {room.in_words()}", extra=extra))
    return [tuple(orders) for orders in found]


def with_kept_rooms(
    plans: Sequence[UserPlan],
    kinds: KindsLeft,
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
        if one.place in going and one.deadline is not None and not one.reserved:
            going[one.place].append((one.holds or Amounts(), one.deadline + time_to_start))
    kept = kept_rooms(kinds.facts, places, kinds.left.served, going)
    if not kept:
        return list(plans)
    return [
        replace(one, orders=tuple(replace(order, kept=kept.get(order.pilot.place)) for order in one.orders))
        for one in plans
    ]


def why_closed_for_room(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Reason:
    """Return why a pilot may get no order where room is made, as `why_closed`; "" when it may."""
    why = why_closed(pilot, now, settings, history)
    return why or (Reason() if any(True for _ in pilot.returns()) else Reason(REASONS[NO_PLACE], NO_PLACE))


def most_of(over: Over, balance: Balance) -> int:
    """Return what an account can give back: more than it holds beyond what it is owed only for others' own shares.

    Room may need more cores than the job has, where its memory or devices are what pilots hold.
    """
    return over.most if balance.below_share else over.cores


def for_kinds(orders: Iterable[Order]) -> dict[str, dict[str, AccountPart]]:
    """Return for each kind of jobs its parts of the pilots that make room for it, by run.

    A job's cores are parted among the pilots that make its room together.
    """
    rooms = [(order.pilot, order.room) for order in orders if order.room is not None]
    going = Counter[str]()
    for pilot, room in rooms:
        going[room.place] += pilot.cores
    parts: dict[str, dict[str, AccountPart]] = {}
    for pilot, room in rooms:
        for kind, jobs in room.jobs:
            cores = jobs * max(1, kind.needs.cores) * pilot.cores / going[room.place]
            parts.setdefault(kind.name, {})[pilot.run] = AccountPart(
                " ".join(pilot.nodes), pilot.cores, min(cores, pilot.cores)
            )
    return parts

"""Decide by the room that waiting jobs need, where the batch system tells what waits by kind and where it could start.

What is free and what comes back anyway serves those who wait first, place by place. For the rest pilots go whose places
then have the room. The batch system's facts decide how many cores each user gives back; claims decide which pilots.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, RoomFor
from drainwise.reclaim.candidates import Candidates
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import Whole
from drainwise.reclaim.decide.by_user import Closed, able_and_closed_by_user
from drainwise.reclaim.decide.core_plans import orders_of
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.decide.limits import Allowances, cores_allowed, extra_taken, left_of_cycle
from drainwise.reclaim.decide.open_until import OpenUntil
from drainwise.reclaim.decide.parts import PartsAhead, room_parts, with_single_cores
from drainwise.reclaim.history import History, why_closed
from drainwise.reclaim.plan import Need, Order, UserPlan
from drainwise.reclaim.prices import BY_WASTE, prices_of
from drainwise.reclaim.quota import Balance, Over
from drainwise.reclaim.reasons import NO_PLACE, REASONS, Reason
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart
from drainwise.room.choice import PlaceRoom, RoomMade, UserLoss, make_room
from drainwise.room.kept_rooms import kept_rooms
from drainwise.room.user_pilots import NO_PARTS, UserPilots, user_pilots


@dataclass(frozen=True)
class _User:
    """One user who can give back cores, with the pilots among which is chosen."""

    account: str
    name: str
    able: Candidates
    closed: Closed
    allowed: int
    most: int


def room_plans(
    kinds: KindsLeft,
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    wait: str,
    until: OpenUntil | None = None,
) -> tuple[list[UserPlan], RoomMade]:
    """Return each user's part, and the room that all make together; wait: why no order may be given yet, or "".

    until: how long parts of pilots count, None where they go as a whole.
    """
    users = _users(snapshot, balance, now, settings, history)
    most = {f"account {one.account}": one.most for one in users}
    limits = {"cycle": 0 if wait else left_of_cycle(history, now, settings)}
    limits |= {f"user {one.name}": one.allowed for one in users}
    facts, left, rules = kinds.facts, kinds.left, Rules(compete=settings.reports_compete)
    ahead = [None if until is None else PartsAhead(one.able, until) for one in users]
    places = Counter(place for one in users for pilot in one.able.pilots for place, _ in pilot.returns())
    on_places = np.array([places[one.name] for one in facts.places], dtype=np.int64)
    rows = [_pilots(kinds, one, some, on_places, now, settings, history) for one, some in zip(users, ahead)]
    whole = made = make_room(facts, left, rows, {**most, **limits}, rules)
    beyond = sum(one.most for one in users)
    if made.missing and any(limit < beyond for limit in limits.values()):
        whole = make_room(facts, left, rows, {**most, **dict.fromkeys(limits, 1 << 53)}, rules)
    asked = {kind.name: kind for kind in facts.kinds}
    rooms = {run: _room_for(place, asked) for place in made.places for run in place.runs}
    of_user = Counter[str]()
    for user, gives in zip(users, made.users):
        of_user[user.name] += gives.cores
    cycle, plans = settings.max_cores - sum(of_user.values()), []
    allowances = Allowances(history, now, settings)
    for user, gives, could, some in zip(users, made.users, whole.users, ahead):
        later = max(0, could.cores - gives.cores)
        if not (gives.cores or later):
            continue
        orders, own = _orders(user, gives, rooms), gives.cores
        allowed = allowances.of(user.name, cycle + own, of_user[user.name] - own, wait)
        limit, key = (allowed.words, allowed.key) if later else ("", "")
        returns = with_single_cores(some, gives.parts, facts, left, gives.runs) if some and gives.parts else ()
        whose, need = (user.account, user.name), Need(own, own)
        plan = UserPlan(*whose, own + later, later, limit, orders, user.able, user.closed, need, limited_by=key)
        plans.append(replace(plan, returns=tuple(returns)))
    return with_kept_rooms(plans, kinds, made.places, snapshot.pilots, settings.time_to_start), made


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


def _users(snapshot: Snapshot, balance: Balance, now: int, settings: ReclaimSettings, history: History) -> list[_User]:
    names = {over.account for over in balance.over}
    pilots = [one for one in snapshot.pilots if one.account in names]
    by_user = able_and_closed_by_user(pilots, now, settings, history, why_closed_for_room)
    found = []
    for over in balance.over:
        for user in over.users:
            able, closed = by_user[over.account, user]
            allowed = cores_allowed(user, history, now, settings)
            found.append(_User(over.account, user, able, closed, allowed, most_of(over, balance)))
    return found


def why_closed_for_room(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Reason:
    """Return why a pilot may get no order where room is made, as `why_closed`; "" when it may."""
    why = why_closed(pilot, now, settings, history)
    return why or (Reason() if any(True for _ in pilot.returns()) else Reason(REASONS[NO_PLACE], NO_PLACE))


def most_of(over: Over, balance: Balance) -> int:
    """Return what an account can give back: more than it holds beyond what it is owed only for others' own shares.

    Room may need more cores than the job has, where its memory or devices are what pilots hold.
    """
    return over.most if balance.below_share else over.cores


def _pilots(
    kinds: KindsLeft,
    user: _User,
    ahead: PartsAhead | None,
    on_places: Whole,
    now: int,
    settings: ReclaimSettings,
    history: History,
) -> UserPilots:
    limits, taken = (f"account {user.account}", f"user {user.name}", "cycle"), extra_taken(user.name, history, now)
    extra = math.nan if settings.extra_cores is None else settings.extra_cores
    extra = extra if settings.policy in BY_WASTE else 0  # another policy's order is no waste
    costs, whose = prices_of(user.able.figures, settings), (user.account, user.name)
    parts = NO_PARTS if ahead is None else room_parts(ahead, kinds.facts, kinds.left, on_places)
    return user_pilots(kinds.facts, whose, user.able.pilots, costs, now, limits, extra, taken, parts)


def _orders(user: _User, gives: UserLoss, rooms: Mapping[str, RoomFor]) -> tuple[Order, ...]:
    chosen, able = frozenset(gives.runs), user.able
    some = able.some([row for row, pilot in enumerate(able.pilots) if pilot.run in chosen])
    found = [_with_room(order, rooms[order.pilot.run]) for order in orders_of(some)]
    return (*(replace(one, extra=gives.extra) for one in found[:1]), *found[1:])


def _with_room(order: Order, room: RoomFor) -> Order:
    return replace(order, room=room, reason=f"{order.reason}; {room.in_words()}")


def _room_for(place: PlaceRoom, kinds: Mapping[str, JobKind]) -> RoomFor:
    return RoomFor(place.place, tuple((kinds[name], jobs) for name, jobs in place.jobs))


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

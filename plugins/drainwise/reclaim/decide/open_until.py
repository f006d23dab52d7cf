"""Let a need stay open until its moment: what comes by itself counts, and who is dear now waits for a cheaper one.

A job that only a whole set of pilots serves, on several places or on a place for itself, waits for none: all of its set
go at once, and leases that end on its places count for nothing before they have ended.

The need of an account is open since it first was owed cores that it waits for, until `horizon` later. The journal
remembers since when; without it that is now. Leases that end by then give their cores back by themselves, and other
pilots end, too. Who goes, and how many, is decided as ever; each of them is ordered when ending it is cheap now, as
`threshold_of` says, and at the last moment whatever it costs. Claims have a part only in when a user's own pilots go.

Where every pilot gets time to drain, the last moment is earlier by the least of it, so that the cores are back in time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Snapshot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.history import History
from drainwise.reclaim.open_need.ends_seen import EndsSeen
from drainwise.reclaim.open_need.natural_ends import cores_that_end, likely
from drainwise.reclaim.open_need.threshold import LAST_MOMENTS, open_since, threshold_of
from drainwise.reclaim.plan import Order, UserPlan
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.room.choice import PlaceRoom, RoomMade

_FIRST_PAYLOADS = 600  # seconds of a pilot's run within which its first payloads start


@dataclass(frozen=True)
class OpenUntil:
    """The need of all who wait: `since` when that of each account is open, and the first moment, `due`; UNIX s."""

    since: Mapping[str, int]
    due: int


def open_until(snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History) -> OpenUntil | None:
    """Return the need that is open at `now` (UNIX s); None by another policy."""
    if settings.policy != OPEN_NEED:
        return None
    waiting = [one.name for one in snapshot.accounts if owed(one) > 0]
    since = open_since(history.since, waiting, now, settings.horizon)
    return OpenUntil(since, min(since.values(), default=now) + settings.horizon)


def with_ending_leases(snapshot: Snapshot, need: OpenUntil | None) -> Snapshot:
    """Return the snapshot in which pilots whose lease ends by the moment of the need are leaving; itself by another
    policy.

    Not those on places that a set is needed of.
    """
    if need is None or not need.since:
        return snapshot
    due, of_sets = need.due, _places_of_sets(snapshot, need)
    pilots = tuple(
        replace(one, leaving=True)
        if one.lease_end is not None
        and one.lease_end <= due
        and one.deadline is None
        and not any(place in of_sets for place, _ in one.returns())
        and not (one.leaving or one.reserved or one.unanswered is not None)
        else one
        for one in snapshot.pilots
    )
    return replace(snapshot, pilots=pilots)


def _places_of_sets(snapshot: Snapshot, need: OpenUntil) -> set[str]:
    """Return the places where waiting jobs could start that only a whole set of pilots serves."""
    pilots = Counter(place for one in snapshot.pilots for place, _ in one.returns())
    classes, alone = set[str](), set[str]()
    for kind in snapshot.kinds or ():
        if kind.jobs and kind.account in need.since:
            several = kind.places > 1
            (classes if several else alone).update(kind.classes if several or kind.whole else ())
    return {
        one.name
        for one in snapshot.places
        if one.node_class in classes or (one.node_class in alone and pilots[one.name] > 1)
    }


def coming(seen: Snapshot, counted: Snapshot, need: OpenUntil | None) -> list[str]:
    """Return a sentence that tells the cores of leases that end in time, if there are any."""
    cores = sum(
        after.cores for before, after in zip(seen.pilots, counted.pilots) if after.leaving and not before.leaving
    )
    if need is None or not cores:
        return []
    return [f"{cores} cores come back by themselves until {clock(need.due)}, as leases end: no pilot goes for these"]


def within(settings: ReclaimSettings, need: OpenUntil | None, now: int) -> ReclaimSettings:
    """Return the settings for ways to end a pilot at `now` (UNIX s): what takes longer than the need is open is none.

    But where every pilot gets time to drain each has the least of it, as far as the horizon lets it.
    """
    if need is None:
        return settings
    left = max(0, need.due - now)
    return replace(settings, need_left=left) if settings.drain_only else replace(settings, horizon=left)


def least_time(settings: ReclaimSettings) -> int:
    """Return how long a pilot has from its order on, at least (s): 0 where not every pilot gets time to drain."""
    if not settings.drain_only:
        return 0
    return min(settings.horizon, settings.min_grace + settings.vacate + settings.order_latency)


def last_moment(due: int, settings: ReclaimSettings) -> int:
    """Return from when on (UNIX s) what is missing is ordered whatever it costs, where the need's moment is `due`."""
    return due - LAST_MOMENTS - least_time(settings)


def waits_for_cheaper(
    users: Sequence[UserPlan], need: OpenUntil | None, now: int, settings: ReclaimSettings, history: History
) -> list[UserPlan]:
    """Return each user's part at `now` (UNIX s) without the orders that are better given later."""
    if need is None or now >= last_moment(need.due, settings):
        return list(users)
    users_of: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for part in users:
        for order in part.orders:
            users_of[_unit(order)].add((part.account, part.user))
    shared = {unit for unit, whose in users_of.items() if len(whose) > 1}
    return [_of_user(part, shared, need.due, now, settings, history) for part in users]


def _unit(order: Order) -> str:
    """Return what is ordered as a whole: a place where room is made, or one run."""
    return order.pilot.run if order.room is None else f"place {order.room.place}"


def _is_of_set(room: RoomFor | None, pilots: int) -> bool:
    """Return whether a room is for a job that only a whole set of pilots serves; pilots: that make it."""
    if room is None:
        return False
    return not room.jobs or any(kind.places > 1 or (kind.whole and pilots > 1) for kind, _ in room.jobs)


def _of_user(
    part: UserPlan, shared: set[str], due: int, now: int, settings: ReclaimSettings, history: History
) -> UserPlan:
    waste, cores, pilots = Counter[str](), Counter[str](), Counter[str]()
    for order in part.orders:
        unit = _unit(order)
        waste[unit] += order.waste
        cores[unit] += order.pilot.cores
        pilots[unit] += 1
    it = part.open.figures.columns
    ends = cores_that_end(it.cores, it.started, now, due - now, history.ends.get(part.user, EndsSeen()))
    # Pilots that end anywhere make no room that needs several pilots of one place.
    alone, together = (_price(part, one, due - now, settings) for one in (ends, (0.0, 0.0)))
    prices = {unit: together if number > 1 else alone for unit, number in pilots.items()}
    first = part.open.figures.unprotected
    if settings.drain_only:  # nothing says how long who reports nothing needs: it has all the time that is left
        first = first | (it.silent & it.drains)
    at_once = {one.run for one, is_first in zip(part.open.pilots, first) if is_first}
    at_once |= {one.pilot.run for one in part.orders if _is_of_set(one.room, pilots[_unit(one)])}
    not_later = shared | {_unit(order) for order in part.orders if order.pilot.run in at_once}
    held = {unit for unit in cores if unit not in not_later and waste[unit] > prices[unit] * cores[unit]}
    if not held:
        return part
    reasons = {
        order.pilot.run: f"not yet: now it would waste {core_hours(int(waste[unit] / cores[unit]))} for each core, and"
        f" {core_hours(int(prices[unit]))} is worth it; decided again until {clock(due)}"
        for order in part.orders
        if (unit := _unit(order)) in held
    }
    later = part.later + sum(order.pilot.cores for order in part.orders if order.pilot.run in reasons)
    limit = part.limit or f"waits for pilots that cost less, until {clock(due)} at most"
    orders = tuple(order for order in part.orders if order.pilot.run not in reasons)
    return replace(part, orders=orders, later=later, limit=limit, held=reasons)


def _price(part: UserPlan, ends: tuple[float, float], left: int, settings: ReclaimSettings) -> float:
    """Return the core-seconds a core that ending a pilot now is worth, with what waiting for another one is worth.

    ends: cores that should come by themselves within the `left` seconds, and the standard deviation. Where more come
    than are missing, nobody waits for all of that time. Who is ended later loses what it does in its least time, too.
    """
    it, missing = part.open.figures.columns, part.cores_given + part.later
    again = it.believed & (it.last_job_start > it.started + _FIRST_PAYLOADS)
    kill, price, least = part.open.figures.kill_waste, 0.0, least_time(settings)
    for others, share in likely(*ends):
        found = threshold_of(kill, it.cores, again, missing, others, left)
        price += share * (found + least if missing > others else 0.0)
    return price + settings.waiting_cost * left / 2 * min(1.0, missing / max(1.0, ends[0]))


def held_cores(users: Sequence[UserPlan]) -> int:
    """Return the cores of the pilots that are better ordered later."""
    return sum(pilot.cores for part in users if part.held for pilot in part.open.pilots if pilot.run in part.held)


def room_now(made: RoomMade | None, users: Sequence[UserPlan]) -> RoomMade | None:
    """Return the room that is made now: without the places whose pilots are better ordered later."""
    held = {run for part in users for run in part.held}
    if made is None or not held:
        return made
    later = [one for one in made.places if held.intersection(one.runs)]
    jobs = Counter(dict(made.jobs))
    for place in later:
        jobs.subtract(dict(place.jobs))
    kept: tuple[PlaceRoom, ...] = tuple(one for one in made.places if one not in later)
    return replace(made, places=kept, jobs={name: number for name, number in jobs.items() if number > 0})

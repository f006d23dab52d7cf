"""Let a need stay open until its moment: what comes by itself counts, and who is dear now waits for a cheaper one.

A job that only a whole set of pilots serves, on several places or on a place for itself, waits for none: all of its set
go at once, and leases that end on its places count for nothing before they have ended.

The need of an account is open since it first was owed cores that it waits for, until `horizon` later. The journal
remembers since when; without it that is now. Leases that end by then give their cores back by themselves, other pilots
end, too, and so do jobs of those who wait, in whose cores others of theirs start. Who goes, and how many, is decided as
ever; each of them is ordered when ending it is cheap now, as `threshold_of` says, and at the last moment whatever it
costs. Claims have a part only in when a user's own pilots go.

Where every pilot gets time to drain, the last moment is earlier by the least of it, so that the cores are back in time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Snapshot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.decide.by_user import pilots_by_user
from drainwise.reclaim.history import History
from drainwise.reclaim.open_need.pilots_look import EndsSeen
from drainwise.reclaim.open_need.threshold import (
    LAST_MOMENTS,
    cores_that_end,
    likely,
    open_since,
    rate_of_ends,
    threshold_of,
)
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
    snapshot: Snapshot,
    users: Sequence[UserPlan],
    need: OpenUntil | None,
    now: int,
    settings: ReclaimSettings,
    history: History,
) -> list[UserPlan]:
    """Return each user's part at `now` (UNIX s) without the orders that are better given later."""
    if need is None or now >= last_moment(need.due, settings):
        return list(users)
    units = defaultdict[str, "list[tuple[int, Order]]"](list)  # of orders that are given as a whole
    for number, part in enumerate(users):
        for order in part.orders:
            units[order.pilot.run if order.room is None else f"place {order.room.place}"].append((number, order))
    own, missing = _own_ends(snapshot, need, now, history), sum(part.cores_given + part.later for part in users)
    prices = [
        _prices(part, own, missing, need.due - now, now, settings, history) if part.orders else (0.0, 0.0)
        for part in users
    ]
    not_later = {
        part.open.pilots[row].run for part in users for row in part.open.figures.unprotected.nonzero()[0].tolist()
    }
    held: list[dict[str, str]] = [{} for _ in users]
    places = set[str]()  # where room waits
    for orders in units.values():
        (number, first), *others = orders
        runs = {order.pilot.run for _, order in orders}
        if any(other != number for other, _ in others) or _is_of_set(first.room, len(orders)) or runs & not_later:
            continue
        each = sum(order.waste for _, order in orders) / sum(order.pilot.cores for _, order in orders)
        price = prices[number][len(orders) > 1]
        if each > price:
            reason = (
                f"not yet: now it would waste {core_hours(int(each))} for each core, and {core_hours(int(price))} is"
                f" worth it; decided again until {clock(need.due)}"
            )
            held[number] |= dict.fromkeys(runs, reason)
            places |= {first.room.place} if first.room is not None else set()
    limit = f"waits for pilots that cost less, until {clock(need.due)} at most"
    return [_without(part, reasons, places, limit) for part, reasons in zip(users, held)]


def _without(part: UserPlan, held: Mapping[str, str], places: Collection[str], limit: str) -> UserPlan:
    """Return the part without these pilots, and without new parts of others on places where room waits."""
    orders = tuple(order for order in part.orders if order.pilot.run not in held)
    returns = tuple(one for one in part.returns if one.stands or one.pilot.place not in places)
    if len(orders) == len(part.orders) and len(returns) == len(part.returns):
        return part
    found = replace(part, orders=orders, returns=returns, limit=part.limit or limit, held=held)
    waits = part.cores_given + part.cores_returned - found.cores_given - found.cores_returned
    return replace(found, later=part.later + max(0, waits))


def _own_ends(snapshot: Snapshot, need: OpenUntil, now: int, history: History) -> Sequence[float]:
    """Return the cores that should come free by then as jobs of those who wait end, and the variance of the number.

    What starts in them ends, too, so the third number is how often a core in which their jobs run comes free by then.
    """
    mean = variance = held = 0.0
    for (account, user), pilots in pilots_by_user(snapshot.pilots).items():
        if account in need.since:
            sizes = np.array([one.cores for one in pilots], dtype=np.int64)
            started = np.array([one.started for one in pilots], dtype=float)
            rate = rate_of_ends(sizes, started, now, history.ends.get(user, EndsSeen()))
            times, cores = rate * max(0, need.due - now), float(sizes.sum())
            mean, held = mean + cores * times, held + cores
            variance += float((sizes.astype(float) ** 2).sum()) * times
    return mean, variance, mean / max(1.0, held)


def _is_of_set(room: RoomFor | None, pilots: int) -> bool:
    """Return whether a room is for a job that only a whole set of pilots serves; pilots: that make it."""
    if room is None:
        return False
    return not room.jobs or any(kind.places > 1 or (kind.whole and pilots > 1) for kind, _ in room.jobs)


def _prices(
    part: UserPlan,
    own: Sequence[float],
    missing: int,
    left: int,
    now: int,
    settings: ReclaimSettings,
    history: History,
) -> tuple[float, float]:
    """Return what ending a pilot now is worth where one alone is enough, and where several of a place are needed.

    own: see `_own_ends`: for the `missing` cores of all users.
    """
    it, share = part.open.figures.columns, (part.cores_given + part.later) / max(1, missing)
    mean, spread = cores_that_end(it.cores, it.started, now, left, history.ends.get(part.user, EndsSeen()))
    ends = mean + own[0] * share, (spread**2 + own[1] * share) ** 0.5
    # Pilots that end anywhere make no room that needs several pilots of one place.
    return _price(part, ends, own[2], left, settings), _price(part, (0.0, 0.0), own[2], left, settings)


def _price(part: UserPlan, ends: tuple[float, float], times: float, left: int, settings: ReclaimSettings) -> float:
    """Return the core-seconds a core that ending a pilot now is worth, with what waiting for another one is worth.

    ends: cores that should come by themselves within the `left` seconds, and the standard deviation. times: how often
    a core that is taken now comes free again by then. Where more come than are missing, nobody waits for all of that
    time. Who is ended later loses what it does in its least time, too.
    """
    it, missing = part.open.figures.columns, part.cores_given + part.later
    again = it.believed & (it.last_job_start > it.started + _FIRST_PAYLOADS)
    kill, price, least = part.open.figures.kill_waste, 0.0, least_time(settings)
    for others, share in likely(*ends):
        found = threshold_of(kill, it.cores, again, missing, others, left, times)
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

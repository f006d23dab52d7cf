"""Let a need stay open until its moment: what comes by itself counts, and who is dear now waits for a cheaper one.

A job that only a whole set of pilots serves, on several places or on a place for itself, waits for none: all of its set
go at once, and leases that end on its places count for nothing before they have ended.

The need of an account is open since it first was owed cores that it waits for, until `horizon` later. The journal
remembers since when; without it that is now. Leases that end by then give their cores back by themselves, other pilots
end, too, and so do jobs of those who wait, in whose cores others of theirs start. Who goes, and how many, is decided as
ever; each of them is ordered when ending it is cheap now, as `threshold_of` says, and at the last moment whatever it
costs. Claims have a part only in when a user's own pilots go.

Where every pilot gets time to drain, the last moment is earlier by the least of it, so that the cores are back in time.

Before the moment pilots become cheap by themselves: a payload ends, and the next one has hardly begun. Who is killed is
below a threshold: what the cores that are missing should cost if the rest of them are taken later. What a kill loses
grows by a second each second on each busy core, so a pilot stays below x core-seconds a core for about x seconds: if C
cores are below x now, about C·R/x more will come below it within the R seconds that are left. The less time is left,
the higher is the threshold; in the end it is what the cheapest pilots cost that are there.

Pilots end also without an order, and not only with their lease: a pilot that runs one payload goes when that has ended.
How often that happens is learned from what was seen in the last days: the cores of pilots that ended by themselves
before their lease did, for each core-second for which pilots were seen. Before much is known the pilots that are there
tell something: as many should end as have begun.

A core that is taken now serves more than one job where jobs of those who wait are short: what ends in it within the
time that is left makes room for the next one.

How many it will be is uncertain: of few large pilots more than of many small ones. So a decision looks at three
numbers, each with its probability, and not at one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.choose.problem import Mask, Real, Whole
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Order, UserPlan
from drainwise.reclaim.quota import owed, with_changed
from drainwise.reclaim.room import RoomMade
from drainwise.reclaim.seen_pilots import WINDOW, EndsSeen
from drainwise.reclaim.settings import ReclaimSettings

LAST_MOMENTS = 300
"""Seconds before and after the moment of a need in which what is missing is taken whatever it costs."""
_COME_LATER = 0.5  # of those that should become cheap later, the share that is counted on
_PRIOR = 6 * 3600  # seconds for which all pilots must have been seen so that what was seen counts as much as the prior
_SHORTEST = 600.0  # seconds that a pilot lives on average, at least
_FIRST_PAYLOADS = 600  # seconds of a pilot's run within which its first payloads start


@dataclass(frozen=True)
class OpenUntil:
    """The need of all who wait: `since` when that of each account is open, and the first moment, `due`; UNIX s.

    chunk: cores of the largest job of those who wait, on average of each account.
    """

    since: Mapping[str, int]
    due: int
    chunk: int


def open_until(snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History) -> OpenUntil:
    """Return the need that is open at `now` (UNIX s).

    One that was not met within `horizon` and `LAST_MOMENTS` opens anew: no agent was there, or a limit held it up.
    """
    waiting = [one for one in snapshot.accounts if owed(one) > 0]
    since = {one.name: min(history.since.get(one.name, now), now) for one in waiting}
    longest = settings.horizon + LAST_MOMENTS
    since = {name: now if now > time + longest else time for name, time in since.items()}
    chunk = max((math.ceil(one.cores_per_job) for one in waiting), default=1)
    return OpenUntil(since, min(since.values(), default=now) + settings.horizon, max(1, chunk))


def pilots_by_user(pilots: Iterable[Pilot]) -> Mapping[tuple[str, str], Sequence[Pilot]]:
    """Return the pilots by account and user; none where there are none."""
    found: dict[tuple[str, str], list[Pilot]] = defaultdict(list)
    for pilot in pilots:
        found[pilot.account, pilot.user].append(pilot)
    return found


def with_ending_leases(snapshot: Snapshot, need: OpenUntil | None) -> Snapshot:
    """Return the snapshot in which pilots whose lease ends by the moment of the need are leaving; itself by another
    policy.

    Not those on places that a set is needed of.
    """
    if need is None or not need.since:
        return snapshot
    due, of_sets = need.due, _places_of_sets(snapshot, need)
    ending = {
        one.run
        for one in snapshot.pilots
        if one.lease_end is not None
        and one.lease_end <= due
        and one.deadline is None
        and not any(place in of_sets for place, _ in one.returns())
        and not (one.leaving or one.reserved or one.unanswered is not None)
    }
    return with_changed(snapshot, ending, leaving=True)


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
    pilots = zip(seen.pilots, counted.pilots)
    cores = sum(after.cores for before, after in pilots if after.leaving and not before.leaving)
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
    held: list[dict[str, str]] = [{} for _ in users]
    places = set[str]()  # where room waits
    for orders in units.values():
        (number, first), *others = orders
        runs = {order.pilot.run for _, order in orders}
        room = first.room
        is_of_set = room is not None and (  # a job that only a whole set of pilots serves
            not room.jobs or any(kind.places > 1 or (kind.whole and others) for kind, _ in room.jobs)
        )
        if any(other != number for other, _ in others) or is_of_set:
            continue
        each = sum(order.waste for _, order in orders) / sum(order.pilot.cores for _, order in orders)
        price = prices[number][len(orders) > 1]
        if each > price:
            reason = (
                f"not yet: now it would waste {core_hours(int(each))} for each core, and {core_hours(int(price))} is"
                f" worth it; decided again until {clock(need.due)}"
            )
            held[number] |= dict.fromkeys(runs, reason)
            places |= set() if room is None else {room.place}
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

    In core-seconds a core, with what waiting for another one is worth.
    own: see `_own_ends`: for the `missing` cores of all users. Pilots that end anywhere make no room that needs several
    pilots of one place. Where more come within the `left` seconds than are missing, nobody waits for all of that time.
    Who is ended later loses what it does in its least time, too.
    """
    it, mine, found = part.open.figures.columns, part.cores_given + part.later, list[float]()
    mean, spread = cores_that_end(it.cores, it.started, now, left, history.ends.get(part.user, EndsSeen()))
    again = it.believed & (it.last_job_start > it.started + _FIRST_PAYLOADS)
    kill, least, share = part.open.figures.kill_waste, least_time(settings), mine / max(1, missing)
    for ends, off in ((mean + own[0] * share, math.sqrt(spread**2 + own[1] * share)), (0.0, 0.0)):
        price = sum(
            probability * (threshold_of(kill, it.cores, again, mine, others, left, own[2]) + least)
            for others, probability in likely(ends, off)
            if mine > others
        )
        found.append(price + settings.waiting_cost * left / 2 * min(1.0, mine / max(1.0, ends)))
    return found[0], found[1]


def held_cores(users: Sequence[UserPlan]) -> int:
    """Return the cores of the pilots that are better ordered later."""
    return sum(pilot.cores for part in users if part.held for pilot in part.open.pilots if pilot.run in part.held)


def room_now(made: RoomMade, users: Sequence[UserPlan]) -> RoomMade:
    """Return the room with the jobs for which it is made now, without those whose pilots are better ordered later."""
    held, jobs = {run for part in users for run in part.held}, Counter(made.jobs)
    for place in made.places:
        if not held.isdisjoint(place.runs):
            jobs.subtract({kind.name: number for kind, number in place.room.jobs})
    return replace(made, jobs=+jobs)


def threshold_of(
    kill_waste: Real, cores: Whole, comes_again: Mask, wanted: float, others: float, left: int, times: float = 0.0
) -> float:
    """Return the least core-seconds a core below which as many cores should come within `left` seconds as are wanted.

    kill_waste (core-seconds), cores: of the pilots that may get an order. comes_again: whether a pilot starts payloads
    one after the other, so that it becomes cheap again. others: cores that should come by themselves; those of pilots
    that are ended now are none of them any more. times: how many more jobs, one after the other, a core serves that is
    taken now.
    """
    if wanted <= others or not len(cores):
        return 0.0
    each = kill_waste / cores
    order = np.argsort(each, kind="stable")
    threshold, sizes = each[order], cores[order]
    ended, flows = np.cumsum(sizes), np.cumsum(sizes * comes_again[order])
    reach = ended * (1 + times) + _COME_LATER * flows * left / np.maximum(threshold, LAST_MOMENTS)
    reach += others * (1 - ended / ended[-1])
    enough = np.flatnonzero(reach >= wanted)
    return float(threshold[enough[0]] if len(enough) else threshold[-1])


def rate_of_ends(cores: Whole, started: Real, now: int, seen: EndsSeen) -> float:
    """Return the share of their cores that should end by themselves in each second; from 0 to 1 / `_SHORTEST`.

    cores, started (UNIX s): of the user's pilots at `now`.
    """
    held = float(cores.sum())
    if not held:
        return 0.0
    began = float(cores[started > now - WINDOW].sum())
    watched = max(0.0, seen.core_seconds) + held * _PRIOR
    ended = max(0.0, seen.cores) + began / WINDOW * _PRIOR
    return min(1 / _SHORTEST, ended / watched)


def cores_that_end(cores: Whole, started: Real, now: int, left: int, seen: EndsSeen) -> tuple[float, float]:
    """Return the cores of these pilots that should come back by themselves within `left` seconds, and the standard
    deviation of that number.

    As many as if each pilot ended independently of the others.
    """
    held = float(cores.sum())
    if not held or left <= 0:
        return 0.0, 0.0
    expected = held * -math.expm1(-rate_of_ends(cores, started, now, seen) * left)
    one = float((cores.astype(float) ** 2).sum()) / held  # cores of the pilot that a core is of
    return expected, math.sqrt(expected * one)


def likely(mean: float, spread: float) -> tuple[tuple[float, float], ...]:
    """Return three numbers of cores, none below 0, each with its probability: a normal distribution's three points.

    By Gauss and Hermite: what changes evenly with the number is right on average.
    """
    far = math.sqrt(3) * spread
    return (max(0.0, mean - far), 1 / 6), (mean, 2 / 3), (mean + far, 1 / 6)

"""Look at who runs without an order, time after time, and count who has gone in between: the ends by themselves.

A look keeps sums by user and no names of pilots. Who began before the last look was there then, so what is missing of
its sum has gone; who got an order since did not go by itself. Those whose lease may end before the next look are not
watched, since a lease that ends is known beforehand. A pilot that is out of sight for a while counts as gone, and when
it is seen again as one that came back: over days the sums are right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from drainwise.pool.facts import Pilot

WINDOW = 3 * 86_400
"""Seconds for which what was seen counts."""


@dataclass(frozen=True)
class EndsSeen:
    """What was seen of one user's pilots without an order within `WINDOW`.

    cores: those of pilots that ended by themselves before their lease did. core_seconds: for which pilots were seen.
    """

    cores: float = 0.0
    core_seconds: float = 0.0

    def __add__(self, other: EndsSeen) -> EndsSeen:
        """Return what was seen of both."""
        return EndsSeen(self.cores + other.cores, self.core_seconds + other.core_seconds)


PERIOD = 1800
"""Seconds between two looks, at least."""
LONGEST = 4 * PERIOD
"""Seconds between two looks that say something: after more than that the next one begins anew."""
MOST_USERS = 200
"""Users that a look keeps, those with the most cores: of the others nothing is learned."""


@dataclass(frozen=True)
class UserLook:
    """One user's pilots at a look.

    cores: of those that are watched from then on. seen: what was seen since the look before. Of its cores those that
    came back into sight are taken off, so it may be below 0.
    """

    cores: int
    seen: EndsSeen = field(default_factory=EndsSeen)


@dataclass(frozen=True)
class PilotsLook:
    """A look at `time` (UNIX s), by user."""

    time: int
    users: Mapping[str, UserLook] = field(default_factory=dict)


@dataclass(frozen=True)
class OrderedPilot:
    """A pilot that got an order at `time`; times in UNIX s."""

    time: int
    user: str
    cores: int
    started: int


def next_look(
    before: PilotsLook | None, pilots: Iterable[Pilot], ordered: Mapping[str, OrderedPilot], now: int
) -> PilotsLook | None:
    """Return the look at `now` (UNIX s); None where the one before is not old enough.

    ordered: by run, all pilots that got an order since then.
    """
    if before is not None and 0 <= now - before.time < PERIOD:
        return None
    alone = [one for one in pilots if _is_alone(one)]
    cores = _sums(alone, now)
    if before is None or not 0 <= now - before.time <= LONGEST:
        return PilotsLook(now, {user: UserLook(cores[user]) for user in _largest(cores)})
    there = _sums(alone, before.time)
    runs = {one.run for one in alone}
    for run, one in ordered.items():
        if run not in runs and one.time > before.time >= one.started:
            there[one.user] += one.cores
    found = {}
    for user in _largest({**{name: one.cores for name, one in before.users.items()}, **cores}):
        was = before.users[user].cores if user in before.users else there[user]
        gone = was - there[user]
        seen = EndsSeen(gone, (was + max(0, min(was, there[user]))) / 2 * (now - before.time))
        found[user] = UserLook(cores[user], seen)
    return PilotsLook(now, found)


def _is_alone(pilot: Pilot) -> bool:
    return pilot.deadline is None and pilot.unanswered is None and not pilot.reserved


def _sums(pilots: Iterable[Pilot], since: int) -> defaultdict[str, int]:
    """Return by user the cores of pilots that have been there since then, and whose lease lasts to the next look."""
    found = defaultdict[str, int](int)
    for one in pilots:
        if one.started <= since and (one.lease_end is None or one.lease_end > since + LONGEST):
            found[one.user] += one.cores
    return found


def _largest(cores: Mapping[str, int]) -> list[str]:
    return sorted(cores, key=lambda user: (-cores[user], user))[:MOST_USERS]

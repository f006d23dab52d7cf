"""What is seen of pilots from one look to the next: ends of their payloads, which are stuck, who ends by itself. Pure.

A node tells when payloads began. Of those that this agent saw end it learns how long such payloads run, and each that
runs is expected to end as the reference pilot expects it of its own: `estimate.run_times`. Pilots in which nothing has
worked for hours are named.

Who runs without an order is looked at time after time, to count who has gone in between: the ends by themselves.
A look keeps sums by user and no names of pilots. Who began before the last look was there then, so what is missing of
its sum has gone; who got an order since did not go by itself. Those whose lease may end before the next look are not
watched, since a lease that ends is known beforehand. A pilot that is out of sight for a while counts as gone, and when
it is seen again as one that came back: over days the sums are right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.common.run_times import Kind, RunTimes
from drainwise.facts.units import duration
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot

_NAMED = 3


def kind_of_payload(user: str, client: str) -> Kind:
    """Return what a payload is one of many of: nobody's payloads change what is expected of another user's."""
    return user, client


def with_expected_ends(snapshot: Snapshot, times: RunTimes | None, now: int) -> Snapshot:
    """Return the snapshot with ends, at `now` (UNIX s), in the reports of the pilots that are seen and nothing else.

    One without a payload could leave at once. Of one for whose payloads nothing is learned yet no end is known.
    """
    if all(one.seen is None for one in snapshot.pilots):
        return snapshot
    times = times or RunTimes()
    return replace(snapshot, pilots=tuple(_with_ends(one, times, now) for one in snapshot.pilots))


def _with_ends(pilot: Pilot, times: RunTimes, now: int) -> Pilot:
    """Return a pilot with ends in its report; each payload keeps as many cores busy as any other (SPEC §2)."""
    seen, said = pilot.seen, pilot.report
    if seen is None or said is None or said.source != PROCESSES:
        return pilot
    kind, ends = kind_of_payload(pilot.user, seen.client), [] if seen.payloads else [float(now)]
    for begin in seen.begins if seen.payloads else ():
        lasts = times.expected(kind, max(0, now - begin))
        if lasts is None:
            return pilot
        ends.append(begin + lasts)
    if not ends:
        return pilot
    first, last = round(min(ends)), round(max(ends))
    used = min(float(pilot.cores), said.used_cpu or 0.0)
    busy = used / len(ends) * sum(end - first for end in ends)
    idle = max(0.0, pilot.cores * (last - first) - busy)
    known = (said.heartbeat, used, said.last_job_start, first, last, None, said.add_uncom_time, idle)
    return replace(pilot, report=PilotReport(*known, source=said.source))


@dataclass(frozen=True)
class StuckRules:
    """after: seconds without a payload that make a pilot stuck. heartbeat_limit: for which what a node told counts."""

    after: int = 14400
    heartbeat_limit: int = 4200


def is_stuck(pilot: Pilot, now: int, rules: StuckRules) -> bool:
    """Decide whether its node has seen no payload in it for long enough, and still tells of it, at `now` (UNIX s)."""
    seen = pilot.seen
    if seen is None or seen.payloads or not 0 <= now - seen.at <= rules.heartbeat_limit:
        return False
    return min(now - pilot.started, seen.idle + now - seen.at) >= rules.after


def stuck_pilots(snapshot: Snapshot, now: int, rules: StuckRules) -> tuple[Pilot, ...]:
    """Return those that are stuck."""
    return tuple(one for one in snapshot.pilots if is_stuck(one, now, rules))


def with_stuck(snapshot: Snapshot, now: int, rules: StuckRules) -> Snapshot:
    """Return the snapshot with a notice that names those that are stuck at `now` (UNIX s)."""
    stuck = stuck_pilots(snapshot, now, rules)
    if not stuck:
        return snapshot
    names = ", ".join(sorted(one.name for one in stuck)[:_NAMED]) + (", ..." if len(stuck) > _NAMED else "")
    who = "1 pilot is" if len(stuck) == 1 else f"{len(stuck)} pilots are"
    what = f"stuck ({sum(one.cores for one in stuck)} cores): no payload for {duration(rules.after)} or more"
    return replace(snapshot, notices=(*snapshot.notices, f"{who} {what}: {names}"))


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
    alone = [one for one in pilots if one.deadline is None and one.unanswered is None and not one.reserved]
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


def _sums(pilots: Iterable[Pilot], since: int) -> defaultdict[str, int]:
    """Return by user the cores of pilots that have been there since then, and whose lease lasts to the next look."""
    found = defaultdict[str, int](int)
    for one in pilots:
        if one.started <= since and (one.lease_end is None or one.lease_end > since + LONGEST):
            found[one.user] += one.cores
    return found


def _largest(cores: Mapping[str, int]) -> list[str]:
    return sorted(cores, key=lambda user: (-cores[user], user))[:MOST_USERS]

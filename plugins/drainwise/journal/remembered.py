"""What the journal remembers of the pool from one look to the next: each part reads and writes events of its own.

How long payloads run, of those that nodes saw begin and end. A payload has ended when its node tells of its pilot
again, without it. Of a pilot that has gone nobody knows whether its payloads had ended. When each began tells the node,
so an agent that starts anew misses only what ended meanwhile.

What was seen of pilots that end by themselves: sums by user.

What pilots have returned of their cores while they went on, and what idled for it. Each look shows what a pilot has
returned, what it is asked for, and by its report how many of its cores are in use. So from one look to the next at
least the smaller number of both was returned. What it was asked for at the earlier look, and had neither returned nor
in use, idled since: the realised waste of a part. Of a pilot that is not believed no waste is known, and what idles in
one that has an order is the order's.

How those who wait fare: accounts that orders were given for (`reclaim.unmet_demand`), and jobs that do not start where
they should (`reclaim.counted_demand`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from drainwise.common.run_times import RunTimes
from drainwise.journal.event import Event, Kind, moment, new_event, number, objects, text, values_in, whole
from drainwise.journal.explain import identity_in
from drainwise.journal.outcomes import OpenOrder
from drainwise.pilotad.observation import Observation
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.identity import ANYBODY, PilotIdentity, as_values
from drainwise.reclaim.columns import claimed_values
from drainwise.reclaim.counted_demand import UntakenRoom
from drainwise.reclaim.seen_pilots import (
    WINDOW,
    EndsSeen,
    OrderedPilot,
    PilotsLook,
    UserLook,
    kind_of_payload,
    next_look,
)
from drainwise.reclaim.unmet_demand import FAILED_ROUNDS, AccountPart, Round, UnmetDemand

MOST_WRITTEN = 200
"""Ended payloads of one cycle that are written and learned."""
_SAME = 3
"""Seconds by which two looks may differ about when a payload began: its start is counted from the machine's."""


class SeenPayloads:
    """What was learned so far, None for nothing, and what runs by the last snapshot."""

    def __init__(self) -> None:
        self.times = RunTimes()
        self.learned: RunTimes | None = None
        self._running: dict[str, Observation] = {}

    def seen(self, snapshot: Snapshot) -> list[dict[str, object]]:
        """Take in what runs now; return what has ended as at most one event, which is to be written and noted."""
        running = {one.run: (one.user, one.seen) for one in snapshot.pilots if one.seen is not None}
        ended: list[dict[str, object]] = []
        for run, (user, now) in running.items():
            before = self._running.get(run)
            if before is None or before.client != now.client or now.at <= before.at:
                continue
            ended += [
                {"run": run, "user": user, "client": now.client, "began": begin, "ended": now.at}
                for begin in gone(before, now)
            ]
        self._running = {run: seen for run, (_, seen) in running.items()}
        self.times.watch(
            (kind_of_payload(user, seen.client), max(0, snapshot.taken - begin))
            for user, seen in running.values()
            for begin in seen.begins
        )
        if not ended:
            return []
        return [new_event(Kind.PAYLOADS, snapshot.taken, ended=ended[:MOST_WRITTEN])]

    def note(self, event: Event) -> None:
        """Learn from an event. Raises ValueError for one that is not sound."""
        lives = [
            (kind_of_payload(text(one, "user"), text(one, "client")), moment(one, "ended") - moment(one, "began"))
            for one in objects(event, "ended")
        ]
        self.learned = self.times
        for kind, seconds in lives:
            self.times.learn(kind, max(0, seconds))


def gone(before: Observation, now: Observation) -> list[int]:
    """Return when the payloads began that were there before and are not now, UNIX s.

    The oldest ones are told, so one that is told once is told until it ends.
    """
    left = list(now.begins)
    found = []
    for begin in before.begins:
        same = next((one for one in left if abs(one - begin) <= _SAME), None)
        if same is None:
            found.append(begin)
        else:
            left.remove(same)
    return found


class PilotsSeen:
    """The looks of `WINDOW`, and the orders since the last one."""

    def __init__(self) -> None:
        self._looks: list[PilotsLook] = []
        self._ordered: dict[str, OrderedPilot] = {}

    def note(self, event: Event) -> None:
        """Take in the event of a look. Raises ValueError for one that is not sound."""
        users = {}
        for one in objects(event, "users"):
            cores, seconds = whole(one, "cores"), number(one, "core_seconds")
            if cores < 0 or seconds < 0:
                raise ValueError("cores, core_seconds: expected 0 or more")
            users[text(one, "user")] = UserLook(cores, EndsSeen(number(one, "ended"), seconds))
        look = PilotsLook(moment(event, "time"), users)
        self._looks.append(look)
        self._ordered = {run: one for run, one in self._ordered.items() if one.time > look.time}

    def ordered(self, order: OpenOrder) -> None:
        """Take in that a pilot got an order."""
        self._ordered[order.run] = OrderedPilot(order.ordered, order.user, order.cores, order.started)

    def looked(self, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Return the event of a look at `now` (UNIX s), if it is time for one.

        It has by user the cores that are watched, and what was seen since the look before.
        """
        look = next_look(self._looks[-1] if self._looks else None, snapshot.pilots, self._ordered, now)
        if look is None:
            return []
        users = list[dict[str, object]]()
        for user, one in sorted(look.users.items()):
            ends = {"ended": round(one.seen.cores), "core_seconds": round(one.seen.core_seconds)}
            users.append({"user": user, "cores": one.cores, **ends})
        return [new_event(Kind.PILOTS, look.time, users=users)]

    def ends(self, now: int) -> Mapping[str, EndsSeen]:
        """Return by user what was seen until `now` (UNIX s), and forget what is too old."""
        self._looks = [one for one in self._looks if one.time > now - WINDOW]
        found: dict[str, EndsSeen] = {}
        for look in self._looks:
            for user, one in look.users.items():
                found[user] = found.get(user, EndsSeen()) + one.seen
        return found


LONGEST_UNWRITTEN = 1800
"""Seconds after which the sums of a pilot are written although it has returned no more and no less."""
MOST_WRITTEN_AT_ONCE = 200
"""Pilots of one cycle that are written; the others have their turn in the next one."""


@dataclass(frozen=True)
class _LookedAt:
    """One pilot at its last look, `time`, and what was counted since it was written last, at `since`; UNIX s.

    whose: its facts as events have them. returned: cores; written: those of the last event. idle: cores that it was
    asked for and had neither returned nor in use. core_seconds: returned. wasted: core-seconds that idled.
    """

    whose: Mapping[str, object]
    time: int
    since: int
    returned: int = 0
    written: int = 0
    idle: float = 0.0
    core_seconds: float = 0.0
    wasted: float = 0.0

    def at(self, pilot: Pilot, now: int, idle: float) -> _LookedAt:
        """Return it after a look at `now`."""
        seconds = max(0, now - self.time)
        return replace(
            self,
            time=now,
            returned=pilot.returned,
            idle=idle,
            core_seconds=self.core_seconds + min(self.returned, pilot.returned) * seconds,
            wasted=self.wasted + self.idle * seconds,
        )

    def is_news(self, is_asked: bool) -> bool:
        """Return whether it is to be written: another number, a wish that is over, or after a while."""
        if self.returned != self.written:
            return True
        return self._is_counted and (not (is_asked or self.returned) or self.time - self.since >= LONGEST_UNWRITTEN)

    @property
    def _is_counted(self) -> bool:
        return bool(round(self.core_seconds) or round(self.wasted))

    @property
    def is_over(self) -> bool:
        """Whether nothing of it need be written any more once its pilot has gone."""
        return not (self.written or self._is_counted)

    def entry(self, returned: int) -> dict[str, object]:
        """Return its values for an event, with so many cores returned from now on."""
        sums = {"core_seconds": round(self.core_seconds), "wasted": round(self.wasted)}
        return {**self.whose, "returned": returned, "since": self.since, **sums}


class ReturnedSeen:
    """The pilots that have returned cores, or that are asked for some."""

    def __init__(self) -> None:
        self._pilots: dict[str, _LookedAt] = {}

    def looked(self, snapshot: Snapshot, now: int, heartbeat_limit: int) -> list[dict[str, object]]:
        """Take in a snapshot at `now` (UNIX s); return what is to be written as at most one event.

        heartbeat_limit: seconds that a report may be old.
        """
        entries = []
        running = set[str]()
        for pilot in snapshot.pilots:
            running.add(pilot.run)
            if pilot.run not in self._pilots and not (pilot.returned or pilot.asked):
                continue
            before = self._pilots.get(pilot.run) or _LookedAt(_whose(pilot), now, now)
            one = self._pilots[pilot.run] = before.at(pilot, now, _idle(pilot, now, heartbeat_limit))
            if one.is_news(bool(pilot.asked)):
                entries.append(one.entry(one.returned))
            elif one.is_over and not (pilot.returned or pilot.asked):
                del self._pilots[pilot.run]
        for run in self._pilots.keys() - running:
            one = self._pilots[run] if len(entries) >= MOST_WRITTEN_AT_ONCE else self._pilots.pop(run)
            if not one.is_over:
                entries.append(one.entry(0))
        if not entries:
            return []
        return [new_event(Kind.RETURNED, now, pilots=entries[:MOST_WRITTEN_AT_ONCE])]

    def note(self, event: Event) -> None:
        """Take in what was written. Raises ValueError for an event that is not sound."""
        time = moment(event, "time")
        for one in objects(event, "pilots"):
            run, part = text(one, "run"), part_of(one, time)
            known = self._pilots.get(run)
            if known is None and part.returned:
                whose = {name: one.get(name) for name in _WHOSE}
                known = _LookedAt(whose, time, time, part.returned)
            if known is not None:
                self._pilots[run] = replace(known, since=time, written=part.returned, core_seconds=0.0, wasted=0.0)


@dataclass(frozen=True)
class ReportedPart:
    """What the journal tells of one pilot at `time`, UNIX s: a wish for cores, or what was seen of it since before.

    is_wish: it was asked for more than it had returned. returned: cores. core_seconds: returned. wasted: core-seconds.
    """

    run: str
    account: str
    user: str
    time: int
    identity: PilotIdentity = ANYBODY
    is_wish: bool = False
    returned: int = 0
    core_seconds: int = 0
    wasted: int = 0
    node: str = ""


def named_part(one: Event, time: int) -> ReportedPart:
    """Return whose part an event of `time` (UNIX s) tells of. Raises ValueError for what is not sound."""
    node = text(one, "node") if "node" in one else ""
    return ReportedPart(text(one, "run"), text(one, "account"), text(one, "user"), time, identity_in(one), node=node)


def part_of(one: Event, time: int) -> ReportedPart:
    """Return what an event of `time` (UNIX s) tells of one pilot. Raises ValueError for what is not sound."""
    returned, core_seconds, wasted = whole(one, "returned"), number(one, "core_seconds"), number(one, "wasted")
    if returned < 0 or core_seconds < 0 or wasted < 0:
        raise ValueError("returned, core_seconds, wasted: expected 0 or more")
    return replace(named_part(one, time), returned=returned, core_seconds=round(core_seconds), wasted=round(wasted))


_WHOSE = ("run", "name", "node", "account", "user", "cores", "identity")


def _whose(pilot: Pilot) -> dict[str, object]:
    known = (pilot.run, pilot.name, pilot.node, pilot.account, pilot.user, pilot.cores + pilot.returned)
    return dict(zip(_WHOSE, (*known, as_values(pilot.identity))))


def _idle(pilot: Pilot, now: int, heartbeat_limit: int) -> float:
    """Return the cores that a pilot was asked for and has neither returned nor in use."""
    if not pilot.returning or pilot.leaving or pilot.deadline is not None:
        return 0.0
    said = claimed_values(pilot, now, heartbeat_limit)
    return 0.0 if said is None else max(0.0, min(pilot.returning, pilot.cores - said.used_cpu))


_SINCE_KINDS = {"kind": "", "spots": 0, "unused": 0.0}
"""What earlier events have not got."""
_ROUNDED = ("back", "settled", "wasted", "vain", "unused")


def unmet_event(one: UnmetDemand, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one account from `now` (UNIX s) on; cores, times in UNIX s."""
    runs = [{"run": run, **vars(part), "cores": round(part.cores, 6)} for run, part in one.runs.items()]
    facts = {name: value for name, value in vars(one).items() if name not in {"account", "runs", "round"}}
    facts |= vars(one.round)
    facts |= {"nodes": list(one.round.nodes), **{name: round(facts[name], 6) for name in _ROUNDED}}
    of_whom = {"account": one.account, "why": _why(one, now), "runs": runs}
    return new_event(Kind.DEMAND, now, **of_whom, **facts)


def _why(one: UnmetDemand, now: int) -> str:
    back, gained = one.round.back_in_all, one.round.gained_in_all
    if one.failed >= FAILED_ROUNDS and now < one.until:
        held = "all demand" if one.closed else f"demand of {one.held:g} cores"
        return f"{held} is paused: {one.vain:g} cores came back in {one.failed} rounds and its jobs did not start"
    if back:
        return f"{back:g} cores came back for it, its use grew by {gained:g}"
    if one.runs:
        return f"{sum(part.cores for part in one.runs.values()):g} cores are to come back for it"
    if one.failed:
        return "1 round did not help" if one.failed == 1 else f"{one.failed} rounds did not help"
    return "nothing is to be remembered of it"


def unmet_of(event: Event) -> UnmetDemand:
    """Return the unmet demand of an event of `unmet_event`. Raises ValueError for an event that is not sound."""
    event = {**_SINCE_KINDS, **event}
    runs = {
        text(one, "run"): AccountPart(text(one, "node"), whole(one, "whole"), number(one, "cores"))
        for one in objects(event, "runs")
    }
    came = Round(**_facts_in(event, Round))
    return UnmetDemand(runs=runs, round=came, **_facts_in(event, UnmetDemand, ("runs", "round")))


def _facts_in(event: Event, fact: type[Any], others: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a fact but the others. Raises ValueError for what is none, or a number below 0."""
    found = values_in(event, fact, *(one.name for one in fields(fact) if one.name not in others))
    for name, value in found.items():
        if isinstance(value, list):
            found[name] = tuple(value)
        elif isinstance(value, (int, float)) and value < 0:
            raise ValueError(f"{name}: expected 0 or more")
    return found


def untaken_event(one: UntakenRoom, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one kind from `now` (UNIX s) on; times in UNIX s."""
    places = [{"place": name, "cores": cores, "since": since} for name, (cores, since) in one.places.items()]
    return new_event(Kind.UNTAKEN, now, **{**vars(one), "places": places})


def untaken_of(event: Event) -> UntakenRoom:
    """Return what an event of `untaken_event` remembers. Raises ValueError for an event that is not sound."""
    event = {"made": 0, **event}
    places = {text(one, "place"): (whole(one, "cores"), whole(one, "since")) for one in objects(event, "places")}
    return UntakenRoom(places=places, **_facts_in(event, UntakenRoom, ("places",)))

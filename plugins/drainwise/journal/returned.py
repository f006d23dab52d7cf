"""What pilots have returned of their cores while they went on, and what idled for it: seen and remembered.

Each look shows what a pilot has returned, what it is asked for, and by its report how many of its cores are in use. So
from one look to the next at least the smaller number of both was returned. What it was asked for at the earlier look,
and had neither returned nor in use, idled since: the realised waste of a part. Of a pilot that is not believed no waste
is known, and what idles in one that has an order is the order's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from drainwise.identity.identity import as_values
from drainwise.journal.event import RETURNED, VERSION, Event, moment, objects, text
from drainwise.journal.history import part_of
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.columns import claimed_values

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
        return [{"event": RETURNED, "version": VERSION, "time": now, "pilots": entries[:MOST_WRITTEN_AT_ONCE]}]

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

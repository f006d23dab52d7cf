"""How long payloads run, of those that nodes saw begin and end: learned from one snapshot to the next.

A payload has ended when its node tells of its pilot again, without it. Of a pilot that has gone nobody knows whether
its payloads had ended. When each began tells the node, so an agent that starts anew misses only what ended meanwhile.
"""

from __future__ import annotations

from drainwise.estimate.run_times import RunTimes
from drainwise.journal.event import PAYLOADS, VERSION, Event, moment, objects, text
from drainwise.pilotad.observation import Observation
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.seen_payloads import kind_of_payload

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
        return [{"event": PAYLOADS, "version": VERSION, "time": snapshot.taken, "ended": ended[:MOST_WRITTEN]}]

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

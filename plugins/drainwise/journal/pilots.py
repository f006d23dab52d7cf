"""Remember what was seen of pilots that end by themselves: an event for each look, and their sums by user."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.journal.event import PILOTS, VERSION, Event, moment, number, objects, text, whole
from drainwise.journal.outcomes import OpenOrder
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.pilots_look import WINDOW, EndsSeen, OrderedPilot, PilotsLook, UserLook, next_look


def pilots_event(look: PilotsLook) -> dict[str, object]:
    """Return the event of a look: by user the cores that are watched, and what was seen since the look before."""
    return {
        "event": PILOTS,
        "version": VERSION,
        "time": look.time,
        "users": [
            {
                "user": user,
                "cores": one.cores,
                "ended": round(one.seen.cores),
                "core_seconds": round(one.seen.core_seconds),
            }
            for user, one in sorted(look.users.items())
        ],
    }


def look_of(event: Event) -> PilotsLook:
    """Return the look that an event tells of. Raises ValueError for one that is not sound."""
    users = {}
    for one in objects(event, "users"):
        cores, seconds = whole(one, "cores"), number(one, "core_seconds")
        if cores < 0 or seconds < 0:
            raise ValueError("cores, core_seconds: expected 0 or more")
        users[text(one, "user")] = UserLook(cores, EndsSeen(number(one, "ended"), seconds))
    return PilotsLook(moment(event, "time"), users)


class PilotsSeen:
    """The looks of `WINDOW`, and the orders since the last one."""

    def __init__(self) -> None:
        self._looks: list[PilotsLook] = []
        self._ordered: dict[str, OrderedPilot] = {}

    def note(self, event: Event) -> None:
        """Take in the event of a look. Raises ValueError for one that is not sound."""
        look = look_of(event)
        self._looks.append(look)
        self._ordered = {run: one for run, one in self._ordered.items() if one.time > look.time}

    def ordered(self, order: OpenOrder) -> None:
        """Take in that a pilot got an order."""
        self._ordered[order.run] = OrderedPilot(order.ordered, order.user, order.cores, order.started)

    def looked(self, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Return the event of a look at `now` (UNIX s), if it is time for one."""
        look = next_look(self._looks[-1] if self._looks else None, snapshot.pilots, self._ordered, now)
        return [] if look is None else [pilots_event(look)]

    def ends(self, now: int) -> Mapping[str, EndsSeen]:
        """Return by user what was seen until `now` (UNIX s), and forget what is too old."""
        self._looks = [one for one in self._looks if one.time > now - WINDOW]
        found: dict[str, EndsSeen] = {}
        for look in self._looks:
            for user, one in look.users.items():
                found[user] = found.get(user, EndsSeen()) + one.seen
        return found

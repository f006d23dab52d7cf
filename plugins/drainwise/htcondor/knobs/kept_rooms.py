"""Write the text of PILOT_RECLAIM_ROOM: the room that a node keeps for jobs that need all of it.

A 1 and a blank-separated list, one word for a partitionable slot: `<slot>=<sure>:<until>:<least>:<total>`, two UNIX
times and twice `<cores>:<MiB>:<GPUs>`. The drop-in of the execute nodes says what follows from it. As the orders beside
it, it becomes part of a daemon's configuration: nothing enters it that does not match a strict pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.facts.errors import ActionRefused
from drainwise.pool.amounts import Amounts
from drainwise.pool.kept_room import KeptRoom

ROOM_KNOB = "PILOT_RECLAIM_ROOM"

MOST_ROOMS = 16
"""Partitionable slots of one node with kept room; of more the ones that end last."""

_FORMAT = "1"
_SURE_SECONDS, _ORDER_SECONDS = 60, 10  # for which it is kept in any case: at least, and for each order
_WORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._@-]{0,254})=([1-9][0-9]{8,9}):([1-9][0-9]{8,9})((?::[0-9]{1,9}){6})")


@dataclass(frozen=True)
class RoomEntry:
    """One word: a slot, two times (UNIX s), the smallest job's cores, MiB and GPUs, and those of all jobs.

    sure: until when the room is kept, whatever runs there: the first pilot may have left before the next one has its
    order. until: the latest time at which it is kept for ordered pilots that are still there.
    """

    slot: str
    sure: int
    until: int
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.slot}={self.sure}:{self.until}:{':'.join(map(str, self.numbers))}"


def room_entry(room: KeptRoom, now: int) -> RoomEntry:
    """Return the word for a room whose orders are given from `now` (UNIX s) on."""
    sure = now + max(_SURE_SECONDS, _ORDER_SECONDS * room.pilots)
    return RoomEntry(room.place, min(sure, room.until), room.until, (*_numbers(room.least), *_numbers(room.total)))


def parse_rooms(value: str) -> tuple[RoomEntry, ...]:
    """Read the words in a knob's value; what is none means nothing to a node and is passed over."""
    found = (_WORD.fullmatch(word) for word in value.split())
    return tuple(
        RoomEntry(one[1], int(one[2]), int(one[3]), tuple(int(number) for number in one[4][1:].split(":")))
        for one in found
        if one
    )


def rooms_text(rooms: Iterable[RoomEntry]) -> str:
    """Write the knob's value. Raises ActionRefused for a slot, time or number that no word may have."""
    words = [str(room) for room in rooms]
    for word in words:
        if not _WORD.fullmatch(word):
            raise ActionRefused(f"{word[:80]!r} cannot be kept room: not a slot, a time and six numbers")
    return " ".join((_FORMAT, *words)) if words else ""


def with_room(present: Iterable[RoomEntry], new: RoomEntry, now: int) -> tuple[RoomEntry, ...]:
    """Return the list at `now` (UNIX s) with `new` in it, in place of what its slot had, without what is over."""
    kept = {one.slot: one for one in present if one.until > now and one.slot != new.slot}
    latest = sorted(kept.values(), key=lambda one: (-one.until, one.slot))[: MOST_ROOMS - 1]
    return tuple(sorted((*latest, new), key=lambda one: one.slot))


def _numbers(some: Amounts) -> tuple[int, ...]:
    return some.cores, some.memory, some.gpus

"""Write and read the texts of the knobs by which a node is told something. Nothing enters one but by a strict pattern.

    PILOT_RECLAIM        orders: `<GlobalJobId>@<JobStart>=<deadline>`, blanks between; 0 for one that was withdrawn
    PILOT_RETURN         what runs are asked to return, as `PartialReturn` has it: `<run>=<cores>:<by>:<chunk>`; by is 0
                         where the wish has no end
    PILOT_RECLAIM_ROOM   room that is kept for jobs that need all of it: a 1, then for each partitionable slot
                         `<slot>=<sure>:<until>:<least>:<total>`, two UNIX times and twice `<cores>:<MiB>:<GPUs>`

Each becomes part of a daemon's configuration: a blank, `$(`, a quote or a newline would be more than is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from drainwise.facts.errors import ActionRefused
from drainwise.htcondor.node import ORDERS
from drainwise.htcondor.node.order_list import ENDLESS, WITHDRAWN, deadline_of, entries
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.facts import Pilot, Snapshot

KNOB = "PILOT_RECLAIM"
TRIAL_KNOB = "PILOT_RECLAIM_TRIAL"
"""Nothing reads it: a node that takes a value for it takes orders, too."""

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+~%,;!/&-]{0,254}#[0-9]{1,10}\.[0-9]{1,10}#[0-9]{1,12}@[0-9]{9,10}")
_ORDER = re.compile(f"({_RUN.pattern})=([1-9][0-9]{{8,9}}|{WITHDRAWN})")
_OURS = ("pilotreclaimdeadline", str(ENDLESS))  # of the drop-ins that were and are, in small letters

SETTLED_AFTER = 120
"""Seconds after the deadline of an order within which a slot may still change hands because of it."""

KEPT = 3600
"""Seconds after its deadline for which the order of a run that has ended stays: by it the run's node is found again."""

RETURN_KNOB = "PILOT_RETURN"

_PART = re.compile(rf"{_RUN.pattern}=[0-9]{{1,9}}:(0|[1-9][0-9]{{8,9}}):[1-9][0-9]{{0,8}}")

ROOM_KNOB = "PILOT_RECLAIM_ROOM"

MOST_ROOMS = 16
"""Partitionable slots of one node with kept room; of more the ones that end last."""

_FORMAT = "1"
_SURE_SECONDS, _ORDER_SECONDS = 60, 10  # for which it is kept in any case: at least, and for each order
_WORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._@-]{0,254})=([1-9][0-9]{8,9}):([1-9][0-9]{8,9})((?::[0-9]{1,9}){6})")


@dataclass(frozen=True)
class OrderEntry:
    """One run of a job (`<GlobalJobId>@<JobStart>`) and when it must be gone (UNIX s); WITHDRAWN: it need not."""

    run: str
    deadline: int

    def __str__(self) -> str:
        return f"{self.run}={self.deadline}"


def is_run(name: str) -> bool:
    """Decide whether this names one run of a job, as an order may name it."""
    return _RUN.fullmatch(name) is not None


def run_name(job: str | None, start: int | None) -> str | None:
    """Name one run of a job by GlobalJobId and JobStart; None when it could not be put into an order."""
    run = f"{job}@{start}"
    return run if job is not None and start is not None and is_run(run) else None


def parse_orders(value: str) -> tuple[OrderEntry, ...]:
    """Read the orders in a knob's value; what is no order cannot match any slot and is passed over."""
    return tuple(OrderEntry(run, deadline) for run, deadline in entries(value) if is_run(run))


def orders_text(orders: Iterable[OrderEntry]) -> str:
    """Write the knob's value. Raises ActionRefused when an order has a run or a deadline that no order may have."""
    return _written(map(str, orders), _ORDER, "an order: not a job id, start and deadline of HTCondor")


def _written(words: Iterable[str], pattern: re.Pattern[str], what: str) -> str:
    """Write words with blanks between. Raises ActionRefused for one that is not as the pattern has it; what: it is."""
    found = list(words)
    for word in found:
        if not pattern.fullmatch(word):
            raise ActionRefused(f"{word[:80]!r} cannot be {what}")
    return " ".join(found)


def with_order(
    present: Iterable[OrderEntry], new: OrderEntry, running: Collection[str], now: int
) -> tuple[OrderEntry, ...]:
    """Return the list at `now` (UNIX s) with `new` in it and without what is spent (`running` = the node's runs).

    What is spent stays for a while: it tells why the cores of a run that has left change hands. The latest deadline
    stands last, where the node looks for it. A deadline may come nearer, never move away: whoever has an order counts
    on it, and a pilot must not gain time by another one. Raises ActionRefused when `new` would be later than what
    stands there. To be withdrawn is no deadline.
    """
    kept = []
    for order in present:
        if order.run != new.run:
            if order.run in running or now <= order.deadline + KEPT:
                kept.append(order)
        elif WITHDRAWN not in {order.deadline, new.deadline} and order.deadline < new.deadline:
            raise ActionRefused(
                f"{new.run} is already ordered to end by {order.deadline}; cannot be moved later to {new.deadline}"
            )
    return tuple(sorted((*kept, new), key=lambda order: order.deadline))


def why_at_once(written: str | None) -> str:
    """Say why a slot would end an ordered run at once instead of at its deadline, and what to do; "" when it would not.

    written: the slot's MaxJobRetirementTime as its startd has it, not evaluated; None when it has none. The drop-in's
    is known by what it alone has. A number stands there when another file sets it, or a drain was cancelled: from then
    on that startd puts 0 over its configuration.
    """
    if written is None:
        return "it has no MaxJobRetirementTime: install the drop-in of drainwise there"
    if any(name in written.casefold() for name in _OURS):
        return ""
    what = f"its MaxJobRetirementTime is {written[:80]} and names no deadline: "
    if written.strip().isdigit():
        return (
            f"{what}restart its startd if a drain was cancelled there, else install the drop-in, after what sets"
            " MAXJOBRETIREMENTTIME"
        )
    return f"{what}install the drop-in there, after what sets MAXJOBRETIREMENTTIME"


MOST = 32
"""Nodes that are asked for one snapshot; what more show is believed."""


def to_be_asked(snapshot: Snapshot) -> dict[str, str]:
    """Return the nodes whose orders are in doubt, each with one of its slots."""
    found: dict[str, str] = {}
    for pilot in snapshot.pilots:
        if pilot.deadline is not None and not pilot.leaving and (pilot.node in found or len(found) < MOST):
            found.setdefault(pilot.node, pilot.name)
    return found


def with_knobs(snapshot: Snapshot, knobs: Mapping[str, str]) -> Snapshot:
    """Leave out the orders that their startds do not have; `knobs` is PILOT_RECLAIM of the queried nodes."""
    pretended: set[str] = set()

    def checked(pilot: Pilot) -> Pilot:
        if pilot.deadline is None or pilot.leaving or pilot.node not in knobs:
            return pilot
        if deadline_of(pilot.run, knobs[pilot.node]) is not None:
            return pilot
        pretended.add(pilot.node)
        lease_end = None if pilot.lease_end == pilot.deadline else pilot.lease_end
        return replace(pilot, deadline=None, lease_end=lease_end)

    pilots = tuple(checked(pilot) for pilot in snapshot.pilots)
    if not pretended:
        return snapshot
    notices = (
        f"{node} shows orders that were never given: somebody with level WRITE at its startd set {ORDERS};"
        " restrict ALLOW_WRITE_STARTD there and restart the startd when it is next empty"
        for node in sorted(pretended)
    )
    return replace(snapshot, pilots=pilots, notices=(*snapshot.notices, *notices))


def with_part(present: str, run: str, wish: PartialReturn, running: Collection[str]) -> str:
    """Return the knob's value with this wish to a run in the place of an earlier one, and those of the other runs.

    running: the node's runs; what stands for others is spent, and left out with what is no wish. A wish for 0 cores
    stays as such, so that the list is never empty. Raises ActionRefused for a run or a number that no wish may have.
    """
    word = f"{run}={wish.cores}:{wish.by or 0}:{wish.chunk}"
    others = {one.rpartition("=")[0]: one for one in present.split() if _PART.fullmatch(one)}
    kept = [one for name, one in others.items() if name in running and name != run]
    return _written((*kept, word), _PART, "asked of a run: not a job id, start and three numbers")


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
    numbers = tuple(number for some in (room.least, room.total) for number in (some.cores, some.memory, some.gpus))
    return RoomEntry(room.place, min(sure, room.until), room.until, numbers)


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
    words = _written(map(str, rooms), _WORD, "kept room: not a slot, a time and six numbers")
    return f"{_FORMAT} {words}" if words else ""


def with_room(present: Iterable[RoomEntry], new: RoomEntry, now: int) -> tuple[RoomEntry, ...]:
    """Return the list at `now` (UNIX s) with `new` in it, in place of what its slot had, without what is over."""
    kept = {one.slot: one for one in present if one.until > now and one.slot != new.slot}
    latest = sorted(kept.values(), key=lambda one: (-one.until, one.slot))[: MOST_ROOMS - 1]
    return tuple(sorted((*latest, new), key=lambda one: one.slot))

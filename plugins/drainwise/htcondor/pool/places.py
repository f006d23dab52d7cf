"""Find the places of a pool and what is free there, in accord with the slots that the same snapshot shows. Pure.

Where pilots may return some of their cores, a node has two partitionable slots over the same cores, which count once.
The second one is nobody's capacity: it leaves every sum, and what is free stands on the first one. Who has returned
cores is charged for those that nobody else holds, whatever it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from drainwise.htcondor.ads.values import moment, text, whole
from drainwise.htcondor.demand.told import SeenPlace
from drainwise.htcondor.node import RETURNED_AT, RETURNED_BY, RETURNED_CPUS
from drainwise.htcondor.pool.slots import Slot
from drainwise.htcondor.pool.startds import Startds
from drainwise.pool.amounts import NOTHING, Amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import Place


def places_of(
    seen: Iterable[SeenPlace], claimed: Iterable[Slot], back: Collection[str], startds: Startds, now: int
) -> tuple[Place, ...]:
    """Return the places that were heard of lately at `now` (UNIX s).

    claimed: the slots in use; back: the names of those whose run has left as ordered. The places were asked for at
    another moment than the slots: what a slot of the snapshot holds is not free, whatever its place says.
    """
    held, left = defaultdict[str, "list[Amounts]"](list), defaultdict[str, "list[Amounts]"](list)
    for slot in claimed:
        if slot.holds is not None:
            (left if slot.name in back else held)[startds.place_of(slot.name)].append(slot.holds)
    found, shared = [], set(startds.second.values())
    for one in seen:
        if startds.speaks(one.machine, one.heard, now):
            open_room = one.total.minus(sum_of(held[one.name]))
            # Of two slots over the same cores neither tells alone what is free.
            own = one.total if one.name in shared else one.free
            free = sum_of((own, *left[one.name])).at_most(open_room)
            unseen = open_room.minus(free) if one.divisible and one.is_unclaimed else NOTHING
            unseen = unseen if unseen.cores else NOTHING  # what is told of a disk is never exact
            found.append(Place(one.name, one.machine, one.node_class, free, one.total, one.divisible, unseen))
    return tuple(found)


def lent_cores(slot: Slot, age: int, now: int) -> int:
    """Return how many cores a slot's own run has returned, as its node believes it at `now` (UNIX s).

    age: for how long (s) the node believes what its cron has read. At least one core stays with the run.
    """
    at, run = moment(slot.ad, RETURNED_AT), slot.run
    if at is None or run is None or text(slot.ad, RETURNED_BY) != run or at + age <= now:
        return 0
    return min(whole(slot.ad, RETURNED_CPUS) or 0, slot.cores - 1)


def counted_once(slots: Sequence[Slot], startds: Startds, now: int) -> Sequence[Slot]:
    """Return the slots without the second ones: what is lent of each, and on each first one what is really free.

    now: UNIX s. Where a pool has no such node, the slots are returned as they are.
    """
    if not startds.second:
        return slots
    shared: dict[str, list[Slot]] = defaultdict(list)
    found: list[Slot] = []
    firsts = set(startds.second.values())
    for slot in slots:
        first = startds.place_of(slot.name)
        (shared[first] if first in firsts else found).append(slot)
    for first, there in shared.items():
        found += _of_node(first, there, startds, now)
    return found


def _of_node(first: str, there: Iterable[Slot], startds: Startds, now: int) -> Iterator[Slot]:
    undivided: dict[str, Slot] = {}
    parts: list[Slot] = []
    for slot in there:
        if slot.ad.get("PartitionableSlot") is True:
            undivided[slot.name] = slot
        else:
            parts.append(slot)
    cores, age = startds.cores_of(first), startds.returned_age(first)
    lent = [lent_cores(slot, age, now) for slot in parts]
    claimed = sum(slot.cores for slot in parts)
    borrowed = max(0, claimed - cores)
    for slot, given in zip(parts, lent):
        unpaid = min(given, borrowed)
        borrowed -= unpaid
        holds = None if slot.holds is None else slot.holds.minus(Amounts(cores=given))
        yield replace(slot, lent=given, unpaid=unpaid, holds=holds) if given else slot
    free = max(0, cores - claimed + sum(lent))
    stands = undivided.get(first) or next(iter(undivided.values()), None)
    if free and stands is not None:  # one that has nothing left of its own is not among the slots that were asked for
        yield replace(stands, name=first, cores=free, weight=float(free))


def without_lent(pilots: Iterable[Pilot], slots: Iterable[Slot]) -> Iterator[Pilot]:
    """Yield the pilots with what comes back when they leave: not what they have returned already."""
    lenders = {slot.name: slot for slot in slots if slot.lent}
    for pilot in pilots:
        slot = lenders.get(pilot.name)
        yield (
            pilot
            if slot is None
            else replace(pilot, cores=slot.cores - slot.lent, returned=slot.lent, holds=slot.holds)
        )

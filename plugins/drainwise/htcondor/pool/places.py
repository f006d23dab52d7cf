"""Find the places of a pool and what is free there, in accord with the slots that the same snapshot shows. Pure.

Where pilots may return some of their cores, a node has two partitionable slots over the same cores, which count once.
The second one is nobody's capacity: it leaves every sum, and what is free stands on the first one. Who has returned
cores is charged for those that nobody else holds, whatever it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from drainwise.htcondor import node as names
from drainwise.htcondor.ads.values import moment, named, shown, text, whole
from drainwise.htcondor.demand.demand import SeenPlace
from drainwise.htcondor.node.parts import asked_of
from drainwise.htcondor.pool.slots import Slot
from drainwise.htcondor.pool.startds import Startds
from drainwise.pilotad.partial_return import asked
from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import Place

NO_MORE_LENT = "not lent any more"


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
    for place, heard, is_unclaimed in seen:
        if startds.speaks(place.node, heard, now):
            # Of two slots over the same cores neither tells alone what is free.
            own = place.total if place.name in shared else place.free
            told = replace(place, free=sum_of((own, *left[place.name])))
            found.append(told.beside(held[place.name], tells_all=place.divisible and is_unclaimed))
    return tuple(found)


def lent_cores(slot: Slot, age: int, now: int) -> int:
    """Return how many cores a slot's own run has returned, as its node believed it when the slot was heard of.

    age: for how long (s) the node believes what its cron has read. now: UNIX s, of a slot that does not say when it was
    heard of. At least one core stays with the run.
    """
    at, run = moment(slot.ad, names.RETURNED_AT), slot.run
    if (
        at is None
        or run is None
        or text(slot.ad, names.RETURNED_BY) != run
        or at + age <= (now if slot.heard is None else slot.heard)
    ):
        return 0
    return min(whole(slot.ad, names.RETURNED_CPUS) or 0, slot.cores - 1)


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
    cores, age = startds.shared(first)
    lent = [lent_cores(slot, age, now) for slot in parts]
    claimed = sum(slot.cores for slot in parts)
    borrowed = max(0, claimed - cores)
    for slot, given in zip(parts, lent):
        unpaid = min(given, borrowed)
        borrowed -= unpaid
        if not given:
            yield slot
            continue
        # Of the memory that was returned no more is lent than belongs to the cores.
        most = (whole(slot.ad, "Memory") or 0) * given // slot.cores
        amounts = Amounts(cores=given, memory=min(most, whole(slot.ad, names.RETURNED_MEMORY) or 0))
        holds = None if slot.holds is None else slot.holds.minus(amounts)
        yield replace(slot, lent=given, unpaid=unpaid, holds=holds)
    free = max(0, cores - claimed + sum(lent))
    stands = undivided.get(first) or next(iter(undivided.values()), None)
    if free and stands is not None:  # one that has nothing left of its own is not among the slots that were asked for
        yield replace(stands, name=first, cores=free, weight=float(free))


def with_parts(pilots: Iterable[Pilot], slots: Iterable[Slot], startds: Startds, now: int) -> Iterator[Pilot]:
    """Yield the pilots with what comes back when they leave: not what they have returned already.

    Those whose node really has the second slot, and lends what they return, can return more if they state what they
    have returned; they are shown with what they are asked for at `now` (UNIX s).
    """
    seen = {slot.name: slot for slot in slots} if startds.second else {}
    lending = set(startds.second.values())
    for pilot in pilots:
        slot = seen.get(pilot.name)
        if slot is None or slot.run != pilot.run or pilot.place not in lending:
            yield pilot
            continue
        cores, report = slot.cores - slot.lent, pilot.report
        states = report is not None and report.returned_cores is not None
        can = cores - 1 if states and not pilot.cannot and moment(slot.ad, names.LENDS_NO_MORE) is None else 0
        wish = asked_of(pilot.run, text(slot.ad, names.RETURN_ASKED) or "")
        in_all = asked(wish, slot.cores, now, slot.lent).cores
        yield replace(pilot, cores=cores, returned=slot.lent, holds=slot.holds, can_return=can, asked=in_all)


def no_more_lent_notices(slots: Iterable[Slot]) -> tuple[str, ...]:
    """Write a sentence for each user of whom nodes lend nothing any more, as a pilot broke its word."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for slot in slots:
        if moment(slot.ad, names.LENDS_NO_MORE) is not None and slot.submitter is not None:
            nodes[slot.owner].add(slot.machine)
    return tuple(
        f"cores that pilots of {shown(owner)} return are {NO_MORE_LENT} on {named(machines)}: a pilot there went on"
        " using what it had returned"
        for owner, machines in sorted(nodes.items())
    )

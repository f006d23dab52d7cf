"""Find the places of a pool and what is free there, in accord with the slots that the same snapshot shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from drainwise.htcondor.demand.told import SeenPlace
from drainwise.htcondor.pool.slots import Slot
from drainwise.htcondor.pool.startds import Startds
from drainwise.pool.amounts import NOTHING, Amounts, sum_of
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
    found = []
    for one in seen:
        if startds.speaks(one.machine, one.heard, now):
            open_room = one.total.minus(sum_of(held[one.name]))
            free = sum_of((one.free, *left[one.name])).at_most(open_room)
            unseen = open_room.minus(free) if one.divisible and one.is_unclaimed else NOTHING
            unseen = unseen if unseen.cores else NOTHING  # what is told of a disk is never exact
            found.append(Place(one.name, one.machine, one.node_class, free, one.total, one.divisible, unseen))
    return tuple(found)

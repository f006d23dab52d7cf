"""Find the places where pilots make room together that none of them makes alone: there the pieces must be kept.

The first piece comes back before the waiting job fits. Whoever is smaller could start in it, such as the next pilot of
the account that gives it back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from drainwise.pool.amounts import PLAIN, Amounts, amounts, sum_of
from drainwise.pool.kept_room import KeptRoom
from drainwise.room.choice import PlaceRoom
from drainwise.room.demand import RoomFacts, ServedJobs


def kept_rooms(
    facts: RoomFacts,
    made: Iterable[PlaceRoom],
    served: Iterable[ServedJobs],
    going: Mapping[str, Sequence[tuple[Amounts, int]]],
) -> dict[str, KeptRoom]:
    """Return the room to keep by the name of its place, of those that `going` names.

    made, served: the jobs for which room is made now, and those that use what is free or on its way. going: of each
    pilot that has an order there or gets one what it gives back, and until when room is kept for its sake (UNIX s).
    """
    jobs: dict[str, Counter[str]] = defaultdict(Counter)
    for room in made:
        jobs[room.place].update(dict(room.jobs))
    for use in served:
        jobs[use.place][use.kind] += use.jobs
    needs = {kind.name: kind.needs for kind in facts.kinds}
    found: dict[str, KeptRoom] = {}
    for name, pilots in going.items():
        if name not in facts.index:
            continue
        place, alone = facts.places[facts.index[name]], _is_made_alone((held for held, _ in pilots), jobs[name], needs)
        if place.divisible and not alone:
            total = sum_of(needs[kind] for kind in jobs[name].elements())
            least, until = _least([needs[kind] for kind in jobs[name]]), max(end for _, end in pilots)
            found[name] = KeptRoom(name, place.node, len(pilots), until, least, total)
    return found


def _is_made_alone(holds: Iterable[Amounts], jobs: Iterable[str], needs: Mapping[str, Amounts]) -> bool:
    """Decide whether what each pilot gives back is room for each of the jobs."""
    return all(one.covers(needs[kind]) for kind in jobs for one in holds)


def _least(each: Sequence[Amounts]) -> Amounts:
    """Return of everything the smallest amount; no others than the plain ones."""
    return amounts(*(min(getattr(one, name) for one in each) for name in PLAIN))

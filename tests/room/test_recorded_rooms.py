"""Which waiting jobs use what is free or comes back, for which of the others pilots go, and what is kept for them.

After a change that is meant to decide otherwise: `PYTHONPATH=plugins:tests/support python
tests/room/test_recorded_rooms.py` prints the lines anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Piece, Pilot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import Limits
from drainwise.reclaim.room import DemandLeft, demand_left, kept_rooms, make_room, named, room_facts, rows_of

NOW = 1_795_249_000
RECORDED = Path(__file__).parent / "rooms.txt"
DEAR = "gpu:a100", "licence"


def amounts(dice: Random, cores: int, *, many: bool = False) -> Amounts:
    """So many cores with memory, and now and then something dear."""
    some = tuple((name, 1 + many) for name in DEAR if dice.random() < (0.5 if many else 0.12))
    gpus = dice.randint(0, 2) if many else int(dice.random() < 0.15)
    return Amounts(
        cores, dice.choice((40_000, 50_000)) if many else cores * dice.choice((0, 1000, 2000)), gpus, 0, some
    )


def pool(dice: Random) -> DemandLeft:
    """What is left of a demand when what is free, and what comes back, has served some of it."""
    names = [f"n{one}" for one in range(dice.choice((2, 4, 24)))]
    places = []
    for name in dice.sample(names, len(names)):
        total = amounts(dice, dice.choice((8, 16, 24)), many=True)
        used = Amounts(
            dice.choice((0, 4, total.cores, total.cores)), dice.choice((0, 20_000)), dice.choice((0, total.gpus))
        )
        places.append(Place(name, name, dice.choice("xy"), total.minus(used), total, dice.random() < 0.85))
    kinds = []
    for number in range(dice.randint(1, 4)):
        classes = frozenset(dice.choice(("x", "y", "xy", "xy", "z")))
        one = JobKind(
            f"k{number}", dice.choice("vw"), dice.choice((1, 3, 9)), amounts(dice, dice.randint(1, 6)), classes
        )
        some, roll = frozenset(names[:1]), dice.random()
        places_of, whole = (dice.choice((2, 3)), False) if roll < 0.2 else (1, roll < 0.35)
        barred, at = some if 0.35 < roll < 0.5 else frozenset(), some if 0.5 < roll < 0.55 else frozenset()
        needs = one.needs if roll < 0.9 else Amounts(0, 2000, 1)
        kinds.append(JobKind(one.name, one.account, one.jobs, needs, classes, places_of, whole, barred=barred, at=at))
    owed = {"v": float(dice.choice((0, 7, 20, 90))), "w": dice.choice((11.5, 40.0, 90.0))}
    returning = {dice.choice((*names, "away")): amounts(dice, dice.choice((4, 9))) for _ in range(3)}
    intended = {f"k{dice.randrange(4)}": {dice.choice((*names, "away")): dice.choice((1, 2))} for _ in range(2)}
    return demand_left(room_facts(kinds, places), owed, returning, dice.choice(({}, intended)))


def text(some: object) -> str:
    """A checksum of it."""
    return f"{zlib.crc32(repr(some).encode()):08x}"


def lines(number: int) -> Iterator[str]:
    """What is decided for a pool by its number."""
    dice = Random(number)
    left, facts = (it := pool(dice)), it.facts
    at = zip(*(one.tolist() for one in (it.served.kind, it.served.place, it.served.jobs)))
    served = " ".join(f"{facts.kinds[kind].name}@{facts.places[place].name}={jobs}" for kind, place, jobs in at)
    without = named(facts, left.without_room())
    every = left.jobs, left.owed, left.room, left.closed, left.served.free, left.served.returning
    yield f"{number}: {served or 'none'} without {without} {text([one.tolist() for one in every])}"
    pilots = []
    for one in range(dice.choice((4, 9))):
        where, cores, held = dice.choice(facts.places), dice.choice((2, 4, 8)), None
        pieces, roll = tuple[Piece, ...](), dice.random()
        if roll < 0.15:
            pieces = tuple(Piece(name, name, Amounts(cores // 2, 900)) for name in ("n0", dice.choice(("n1", "away"))))
        elif roll < 0.9:
            held = amounts(dice, cores)
        there, started = "" if pieces else where.name, NOW - dice.choice((-9, 50, 7000))
        alone = Pilot(f"r{one}", f"p{one}", where.node, "a", "ann", cores, started)
        pilots.append(replace(alone, place=there, holds=held, pieces=pieces))
    whose = np.sort([dice.randrange(2) for _ in pilots])
    claims = np.array([float(dice.randrange(90_000)) for _ in pilots])
    rows = rows_of(facts, pilots, whose, claims, NOW)
    most = np.array([dice.choice((8.0, 99.0)) for _ in range(2)])
    limits = Limits(
        np.zeros(2, dtype=np.int64),
        np.arange(2.0),
        np.array([[0], [1]]),
        most,
        np.zeros(2, dtype=np.int64),
        np.full(2, np.nan),
    )
    made = make_room(left, rows, limits, [one.run for one in pilots], Rules())
    rooms = "; ".join(f"{one.room.place}: {one.room.in_words()} by {'+'.join(one.runs)}" for one in made.places)
    given = rows.gives, rows.spends, rows.loss, rows.row, rows.place, made.cores, made.together, made.plan.budget
    yield f"  {rooms or 'none'} missing {dict(made.missing)} {text([one.tolist() for one in given])}"
    going = {
        place.name: [
            (amounts(dice, dice.choice((2, 4))), NOW + dice.choice((60, 900))) for _ in range(dice.choice((1, 2)))
        ]
        for place in (*facts.places[:4], Place("away", "away", "x", Amounts(), Amounts(8)))
    }
    kept = kept_rooms(facts, made.places, dice.choice((left.served, None)), going)
    for room in kept.values():
        words = f"{room.least.in_words()} of {room.total.in_words()}"
        yield f"  kept {room.place} on {room.node} of {room.pilots} for {room.until - NOW}: {words}"


def every() -> Iterator[str]:
    """All lines of the file."""
    for number in range(64):
        yield from lines(number)


def test_it_makes_room_as_recorded() -> None:
    assert list(every()) == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    print(*every(), sep="\n")

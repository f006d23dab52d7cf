"""What is remembered from look to look of a pool that changes by dice: rounds, pauses, room, ends, and promises.

After a change that is meant to remember otherwise: `PYTHONPATH=plugins:tests/support python
tests/reclaim/test_recorded_memories.py` prints the lines anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.counted_demand import (
    UntakenRoom,
    intended_room,
    nodes_with_cores_back,
    paused,
    runs_beside,
    unplaced,
    watched_room,
    weighed,
    with_untaken,
)
from drainwise.reclaim.history import PilotOutcome, doubt, doubt_in_words, trust_by_user
from drainwise.reclaim.seen_pilots import OrderedPilot, PilotsLook, next_look
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, UnmetDemand, for_whom, watched, with_orders

NOW, DAY = 1_795_249_000, 86_400
RECORDED = Path(__file__).parent / "memories.txt"
SETTINGS = ReclaimSettings("least-waste", 7200, 7200, 86_400, 3600, 100, 100, 100)
NODES = "n0", "n1", "n2"


class Play:
    """A pool by its number: with kinds of jobs where that is odd. Those who wait are w, or w's kinds k0 and k1."""

    def __init__(self, number: int) -> None:
        self.dice, self.has_kinds, self.now, self.count = Random(number), bool(number % 2), NOW, 0
        self.pilots = [self._pilot(NOW - 9000) for _ in range(9)]
        self.unmet: dict[str, UnmetDemand] = {}
        self.untaken: dict[str, UntakenRoom] = {}
        self.look: PilotsLook | None = None
        self.ordered: dict[str, OrderedPilot] = {}
        self.jobs, self.free, self.is_busy = 3, 0, number % 5 > 2

    def _pilot(self, started: int) -> Pilot:
        dice, self.count = self.dice, self.count + 1
        user, node, cores = dice.choice(("ann", "amy", "wil")), dice.choice(NODES), dice.choice((2, 4, 8))
        lease = dice.choice((None, None, self.now + 5000, self.now + 90_000))
        one = Pilot(
            f"r{self.count}", f"p{self.count}", node, "w" if user == "wil" else "a", user, cores, started, lease
        )
        return replace(one, place=node, holds=Amounts(cores))

    def step(self) -> int | None:
        """Let time go on, pilots come and go, and jobs wait; since when no look succeeded, None: the last one did."""
        dice = self.dice
        self.now += dice.choice(
            (60, 100, 170) if self.is_busy else (30, 60, 60, 100, 200, 900, 1900, 1900, 20_000, -400)
        )
        gone = {run for one in self.unmet.values() for run in one.runs} if dice.random() < 0.5 else set()
        self.pilots = [one for one in self.pilots if one.run not in gone and dice.random() < 0.92]
        self.pilots += [self._pilot(self.now - dice.choice((5, 50, 4000))) for _ in range(dice.choice((0, 0, 1, 3)))]
        self.jobs = max(0, self.jobs + dice.choice((-1, 0, 0, 0, 1)))
        self.free = dice.choice((0, self.free, self.free, 6))
        return dice.choice((None, None, None, self.now - 100, self.now - 180))

    def snapshot(self) -> Snapshot:
        """The pool as it is now."""
        dice, held = self.dice, {name: sum(one.cores for one in self.pilots if one.account == name) for name in "aw"}
        running = dice.choice((None, max(0.0, held["w"] - 2.0)))
        accounts = (
            Account("a", held["a"], held["a"] // 2, 0.0, 900.0),
            Account("w", held["w"], 60.0, 4.0 * self.jobs, 500.0, 4.0, dice.choice((None, 8.0)), running),
        )
        if not self.has_kinds:
            seen = accounts[: dice.choice((1, 2, 2, 2, 2))]
            return Snapshot(self.now, tuple(self.pilots), seen, float(self.free))
        places = tuple(
            Place(name, name, "x" if name < "n2" else "y", Amounts(self.free), Amounts(40)) for name in NODES
        )
        first = JobKind("k0", "w", self.jobs, Amounts(4), frozenset("x"), starting=dice.choice((0, 0, 1)))
        fits = frozenset("y" if self.count % 5 else "")
        other = JobKind(
            "k1", "w", dice.choice((1, 2)), Amounts(6), fits, planned=frozenset({"n2"}), whole=self.count % 2 > 0
        )
        return Snapshot(
            self.now,
            tuple(self.pilots),
            accounts,
            3.0 * self.free,
            kinds=(first, other)[: dice.choice((1, 2, 2))],
            places=places,
        )

    def order(self, seen: Snapshot, deficit: int) -> None:
        """Give a pilot of a's an order, for those who wait."""
        some = [one for one in self.pilots if one.account == "a" and one.deadline is None][
            : self.dice.choice((0, 1, 2))
        ]
        if not some or not deficit:
            return
        parts = for_whom(seen, some, deficit, self.unmet)
        if self.has_kinds:
            parts = {self.dice.choice(("k0", "k1")): {one.run: AccountPart(one.node, one.cores, 4.0) for one in some}}
        self.unmet |= {one.key: one for one in with_orders(self.unmet, seen, parts, self.now)}
        self.ordered |= {one.run: OrderedPilot(self.now, one.user, one.cores, one.started) for one in some}
        shown = {one.run for one in some if self.dice.random() < 0.8}
        self.pilots = [replace(one, deadline=self.now + 600) if one.run in shown else one for one in self.pilots]


def lines(number: int) -> Iterator[str]:
    """What is remembered after each look of a play, with a checksum of all of it."""
    it = Play(number)
    for _ in range(30):
        blind, seen = it.step(), it.snapshot()
        tells = it.dice.choice((None, 0.0, 4.0))
        ended = None if it.dice.random() < 0.5 else lambda _, tells=tells: tells
        it.unmet = watched(it.unmet, seen, it.now, SETTINGS, blind, ended)
        it.untaken = watched_room(it.untaken, it.unmet, seen, it.now)
        named = unplaced(seen, it.untaken, it.now, SETTINGS), paused(seen, it.unmet, it.now)
        counts, to_order, balance = weighed(
            with_untaken(seen, it.untaken, it.unmet, it.now, SETTINGS), it.unmet, it.now, SETTINGS
        )
        look = next_look(it.look, it.pilots, it.ordered, it.now)
        it.look = look or it.look
        back = sorted(nodes_with_cores_back(it.unmet, it.now, SETTINGS))
        others = (
            sorted(runs_beside(counts, it.unmet, it.now, SETTINGS)),
            intended_room(seen, it.unmet, it.now, SETTINGS),
        )
        kinds = [(one.name, one.jobs, sorted(one.barred), sorted(one.at)) for one in to_order.kinds or ()]
        every = it.unmet, it.untaken, [one.sentence for some in named for one in some], to_order.accounts, balance
        words = zlib.crc32(repr([*every, kinds, back, others, look]).encode())
        known = (
            f"{name} {'+'.join(one.runs) or '-'} back {one.round.back_in_all:g} gained {one.round.gained_in_all:g}"
            f" failed {one.failed} for {max(0, one.until - it.now)}"
            for name, one in sorted(it.unmet.items())
        )
        yield f"{number} {it.now - NOW}: {'; '.join((*known, f'deficit {balance.deficit}'))} {words:08x}"
        it.order(seen, balance.deficit)


def promises(number: int) -> str:
    """How far a user is believed after outcomes by dice."""
    dice = Random(number)
    outcomes = []
    for _ in range(dice.choice((4, 5, 6, 30))):
        run, user = f"r{dice.randrange(40)}", dice.choice(("ann", "ann", "amy"))
        ago, said, lost = dice.choice((-5, 0, 3, 7, 8, 60, 71)) * DAY, dice.randint(-50, 5000), dice.randint(-50, 6000)
        kept = dice.choice((None, number % 3 > 0, False))
        outcomes.append(PilotOutcome(run, user, NOW - ago, said, lost, 9000, kept))
    found = trust_by_user(outcomes, NOW)
    words = [(user, f"{doubt(one):.6f}", doubt_in_words(one, doubt(one)), one) for user, one in sorted(found.items())]
    shares = " ".join(f"{user} {doubt(one):.3f}" for user, one in sorted(found.items()))
    return f"promises {number}: {shares} {zlib.crc32(repr(words).encode()):08x}"


def every() -> Iterator[str]:
    """All lines of the file."""
    for number in range(20):
        yield from lines(number)
    yield from map(promises, range(40))


def test_it_remembers_as_recorded() -> None:
    assert list(every()) == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    print(*every(), sep="\n")

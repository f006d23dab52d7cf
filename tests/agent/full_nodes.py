"""Nodes full of pilots that report, played minute by minute, and one job that starts on several whole nodes at once.

The pilots state with the reference pilot's own code what runs in them. Who has an order takes no payload, and leaves
when its last one has ended, at its deadline at the latest; who has none any more takes payloads again.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import Workload, report_of, running_since
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from memory_pool import MemoryPool

CORES = 8
"""Of a node."""
MINUTE = 60


class FullPilot:
    """A pilot with two payloads at a time on half of its cores each, for so many minutes, by chance between `long`;
    estimates are right.
    """

    def __init__(
        self,
        number: int,
        node: str,
        cores: int,
        lease: Lease,
        chance: random.Random,
        now: int,
        long: tuple[int, int],
    ) -> None:
        self.run, self.node, self.cores, self.lease = f"ce#{number}.0#{now}@{now}", node, cores, lease
        self._long = long
        self.deadline: int | None = None
        self.workload, self._chance, self._number = Workload(lease.start), chance, 0
        for _ in range(2):
            self._begin(now - MINUTE * chance.randrange(long[0]))

    def _begin(self, now: int) -> None:
        self._number += 1
        seconds = MINUTE * self._chance.randint(*self._long)
        self.workload.add(running_since(Payload(str(self._number), self.cores // 2, ("true",), seconds, seconds), now))

    def step(self, now: int) -> bool:
        """End and start what is due; return whether the pilot is there still."""
        for one in self.workload.past_estimate(now):
            self.workload.remove(one.payload.name)
        while self.deadline is None and self.workload.used < self.cores:
            self._begin(now)
        ends = [one for one in (self.deadline, self.lease.end) if one is not None]
        return self.workload.used > 0 and now < min(ends, default=now + 1)

    def seen(self, now: int) -> Pilot:
        """What the batch system shows of it."""
        said = report_of(self.workload, self.lease, True, 3, now)
        name, end = f"slot_{self.run.partition('.')[0]}@{self.node}", self.lease.end
        lease_end = None if end is None else int(end)
        seen = Pilot(self.run, name, self.node, "a", "alice", self.cores, int(self.lease.start), lease_end, said)
        return replace(seen, deadline=self.deadline, place=self.node, holds=Amounts(self.cores))


class FullNodes(MemoryPool):
    """`nodes` nodes with `each` pilots of alice's on each; bob waits for one job on `wanted` whole nodes, or for none.

    What comes back stays free until the job starts: the scheduler keeps it. started: when it did, UNIX s.
    up: the seconds, UNIX, in which an empty node is there beside them, which starts nothing.
    leases: seconds that each pilot has left, by chance between these two; None: for ever.
    """

    def __init__(
        self,
        now: int,
        nodes: int,
        wanted: int,
        each: int = 1,
        seed: int = 0,
        leases: tuple[int, int] | None = None,
        long: tuple[int, int] = (5, 60),
    ) -> None:
        super().__init__()
        chance = random.Random(seed)
        self.now, self.wanted, self.started, self.names = now, wanted, 0, [f"n{one:02d}" for one in range(nodes)]
        self.pilots: dict[str, FullPilot] = {}
        self.taken, self.up = frozenset[str](), range(0)
        for number in range(nodes * each):
            end = None if leases is None else now + chance.randint(*leases)
            lease = Lease(CORES // each, now - MINUTE * chance.randint(60, 600), end)
            one = FullPilot(number, self.names[number // each], CORES // each, lease, chance, now, long)
            self.pilots[one.run] = one

    def pass_to(self, now: int) -> None:
        """Let the time pass: payloads and pilots end, and the job starts where enough nodes are empty."""
        self.now = now
        for run, one in list(self.pilots.items()):
            if not one.step(now):
                del self.pilots[run]
                self.ended[run] = Ending(run, now, vacated=False)
        empty = [name for name, free in self._free().items() if free == CORES]
        if self.wanted and not self.taken and len(empty) >= self.wanted:
            self.taken, self.started = frozenset(empty[: self.wanted]), now

    def _free(self) -> dict[str, int]:
        held = Counter[str]()
        for one in self.pilots.values():
            held[one.node] += one.cores
        return {name: 0 if name in self.taken else CORES - held[name] for name in self.names}

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        free, jobs = self._free(), int(bool(self.wanted) and not self.taken)
        places = tuple(Place(name, name, "plain", Amounts(cores), Amounts(CORES)) for name, cores in free.items())
        if now in self.up:
            places = (*places, Place("other", "other", "plain", Amounts(CORES), Amounts(CORES)))
        needs = Amounts(CORES)
        name = kind_name("b", needs, "", max(1, self.wanted), whole=True)
        kind = JobKind(name, "b", jobs, needs, frozenset({"plain"}), max(1, self.wanted), whole=True, example="17")
        running = tuple(one.seen(now) for one in self.pilots.values())
        accounts = (
            Account("a", float(sum(one.cores for one in running)), 0.0, 0.0, 900.0),
            Account("b", float(CORES * len(self.taken)), 1000.0, float(jobs * kind.cores), 500.0, float(kind.cores)),
        )
        kinds = (kind,) if jobs else ()
        return Snapshot(now, running, accounts, float(sum(free.values())), {"alice": 900.0}, kinds=kinds, places=places)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        super().give_order(pilot, deadline, reason)
        self.pilots[pilot.run].deadline = deadline

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        super().withdraw_order(pilot, reason)
        self.pilots[pilot.run].deadline = None

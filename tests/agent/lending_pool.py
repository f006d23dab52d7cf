"""A pool of nodes, played second by second, in which pilots return cores and others start on them, each a while later.

The pilots decide with the reference pilot's own code. What anybody learns of another is late: a pilot of what it is
asked, the node of what a pilot states, the scheduler of what is free, the agent of all of it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace

from drainwise.pilot.decide.lease import Lease, ReturnedCores
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import Workload, report_of, running_since
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn, ReturnedPart, acknowledgement, asked
from drainwise.pilotad.report import PilotReport
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from memory_pool import MemoryPool

MEMORY = 256
"""MiB with each core."""
LEASE = 80_000


@dataclass(frozen=True)
class Delays:
    """Seconds: from the agent's word to the pilot, between two looks of a cron at reports, between two rounds of the
    scheduler, and by which a snapshot is old."""

    told: int = 5
    cron: int = 2
    scheduler: int = 5
    seen: int = 2


class PlayedPilot:
    """A pilot of `cores` on a node: some long payloads first, and then short ones for ever; estimates are right."""

    def __init__(self, number: int, node: str, cores: int, long: int, seconds: tuple[int, ...], now: int) -> None:
        self.number, self.node, self.cores, self.lease = number, node, cores, Lease(cores, now, now + LEASE)
        self.run = f"ce#{number}.0#{now}@{now}"
        self.part, self.workload = ReturnedCores(cores, now, MEMORY), Workload(now)
        self._long, self._seconds, self._started = long, seconds, 0

    def step(self, wish: PartialReturn | None, answer: Acknowledgement | None, now: int) -> None:
        """End, return and start what is due."""
        for name in [one.payload.name for one in self.workload.past_estimate(now)]:
            self.workload.remove(name)
        self.part.settle(wish, answer, self.workload.used, now)
        assert self.workload.used <= self.part.usable
        while self.workload.used < self.part.fillable:
            seconds = 4000 if self._started < self._long else self._seconds[self._started % len(self._seconds)]
            payload = Payload(str(self._started), 1, ("true",), seconds, seconds + 60)
            self.workload.add(running_since(payload, now))
            self._started += 1

    def report(self, now: int) -> PilotReport:
        """What it states."""
        return report_of(self.workload, self.lease, True, 3, now, part=self.part.stated)


@dataclass
class Shown:
    """What the collector shows of the pool at one moment."""

    pilots: tuple[Pilot, ...]
    free: dict[str, int]
    held: int


class LendingNodes(MemoryPool):
    """The pool: alice's pilots fill its nodes, and bob's jobs of so many cores each wait, the larger ones first.

    smallest_first: the scheduler starts bob's smallest jobs first. log: what was asked, with the time and run.
    """

    def __init__(
        self,
        pilots: list[PlayedPilot],
        cores: dict[str, int],
        bobs: list[int],
        now: int,
        delays: Delays,
        smallest_first: bool = False,
    ) -> None:
        super().__init__()
        self.now, self.pilots, self.cores, self.delays = now, pilots, cores, delays
        self.smallest_first = smallest_first
        self.idle, self.borrowed = sorted(bobs), {node: list[int]() for node in cores}
        self.wishes: dict[str, deque[tuple[int, PartialReturn]]] = {one.run: deque() for one in pilots}
        self.log: list[tuple[int, str, int]] = []
        self.stated: dict[str, tuple[PilotReport, ReturnedPart]] = {}
        self._shown: deque[Shown] = deque(maxlen=delays.seen + 1)
        self.cores_owed = sum(cores.values()) / 2

    def wish(self, run: str, age: int = 0) -> PartialReturn | None:
        """What stands for a run, or stood so many seconds ago."""
        return next((one for at, one in reversed(self.wishes[run]) if at <= self.now - age), None)

    def lent(self, node: str) -> int:
        """What the startd lends, by what it has read."""
        return sum(self.stated[one.run][1].cores for one in self.pilots if one.node == node)

    def claimed(self, node: str) -> int:
        """What all slots of a node have together."""
        return sum(one.cores for one in self.pilots if one.node == node) + sum(self.borrowed[node])

    def play(self, seconds: int = 1) -> None:
        """Let time pass; never a core too many is in use."""
        for _ in range(seconds):
            self.now += 1
            for one in self.pilots:
                one.step(self.wish(one.run, self.delays.told), self._answer(one), self.now)
            if self.now % self.delays.cron == 0 or not self.stated:
                self.stated = {one.run: (one.report(self.now), one.part.stated) for one in self.pilots}
            if self.now % self.delays.scheduler == 0:
                self._schedule()
            for node, cores in self.cores.items():
                used = sum(one.workload.used for one in self.pilots if one.node == node)
                assert used + sum(self.borrowed[node]) <= cores, "a core too many"
            self._shown.append(self._look())

    def _answer(self, pilot: PlayedPilot) -> Acknowledgement | None:
        if pilot.run not in self.stated:
            return None
        stated = self.stated[pilot.run][1]
        borrowed = sum(self.borrowed[pilot.node])
        missing = max(0, borrowed - self.lent(pilot.node))
        return acknowledgement(stated, pilot.cores, missing + min(stated.cores, borrowed))

    def _schedule(self) -> None:
        for cores in sorted(self.idle, reverse=not self.smallest_first):
            for node, total in self.cores.items():
                if total - self.claimed(node) + self.lent(node) >= cores:
                    self.idle.remove(cores)
                    self.borrowed[node].append(cores)
                    break

    def _look(self) -> Shown:
        pilots = []
        for one in self.pilots:
            report, part = self.stated[one.run]
            cores = one.cores - part.cores
            pilots.append(
                Pilot(
                    one.run,
                    f"slot1_{one.number}@{one.node}",
                    one.node,
                    "group_a",
                    "alice",
                    cores,
                    int(one.lease.start),
                    None,
                    report,
                    place=f"slot1@{one.node}",
                    holds=Amounts(cores, cores * MEMORY),
                    returned=part.cores,
                    can_return=cores - 1,
                )
            )
        free = {node: max(0, total - self.claimed(node) + self.lent(node)) for node, total in self.cores.items()}
        return Shown(tuple(pilots), free, sum(map(sum, self.borrowed.values())))

    def snapshot(self, now: int) -> Snapshot:
        """The nodes as they were a while ago, and who waits now."""
        self.called("snapshot")
        shown, owed = self._shown[0], self.cores_owed
        kinds = []
        for cores, jobs in sorted(Counter(self.idle).items(), reverse=True):
            needs = Amounts(cores, 64)
            kinds.append(JobKind(kind_name("group_b", needs, ""), "group_b", jobs, needs, frozenset({"plain"})))
        places = [
            Place(f"slot1@{node}", node, "plain", Amounts(free, free * MEMORY), Amounts(self.cores[node], 8192))
            for node, free in shown.free.items()
        ]
        each = sum(self.idle) / len(self.idle) if self.idle else 1.0
        accounts = (
            Account(
                "group_a", float(sum(one.cores for one in shown.pilots)), sum(self.cores.values()) - owed, 0.0, 900.0
            ),
            Account("group_b", float(shown.held), owed, float(sum(self.idle)), 500.0, each),
        )
        priorities = {"alice": 900.0, "bob": 500.0}
        return Snapshot(
            now,
            tuple(map(self._with_wish, shown.pilots)),
            accounts,
            0.0,
            priorities,
            kinds=tuple(kinds),
            places=tuple(places),
        )

    def _with_wish(self, pilot: Pilot) -> Pilot:
        """Who asks waits until it is shown, so that is never old."""
        stands = asked(self.wish(pilot.run), pilot.cores + pilot.returned, self.now, pilot.returned)
        return replace(pilot, asked=stands.cores)

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:
        """Keep the wish; the pilot learns of it later."""
        self.called("ask_for_part", pilot.run)
        self.wishes[pilot.run].append((self.now, wish))
        self.log.append((self.now, pilot.run, wish.cores))

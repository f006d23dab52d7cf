"""The other group's own jobs as the demand: they come as in the trace, and the agent looks again and again.

They run first come, first served on places without a pilot: vacant ones, and those whose pilots were asked to leave. A
place goes back when no job waits for it. Each policy plays the whole time by itself from the same state, so the longer
it goes on the less do two policies decide on the same: no one decision can be held against another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

from drainwise.pool import Principal, Snapshot
from drainwise.reclaim.quota import owed
from drainwise.simulate.burst import COMER, HOLDER, Burst, Decided, decide, pilots_of
from drainwise.simulate.feed import BEGIN
from drainwise.simulate.job import Job
from drainwise.simulate.scenario import Scenario
from drainwise.simulate.site import Site


def parted(jobs: Sequence[Job], comers: str) -> tuple[list[Job], list[Job]]:
    """The jobs of the pilots' owners and those of the comers, a group or, where there is one group alone, a user."""
    by_user = len({job.group for job in jobs}) == 1
    theirs = [job for job in jobs if (job.user if by_user else job.group) == comers]
    return [job for job in jobs if (job.user if by_user else job.group) != comers], theirs


class Arrivals:
    """The comers on a site under one policy.

    waits: (s, cores) of each of their jobs that has started. asked: cores of their jobs that came. orders: what was
    decided so far.
    """

    def __init__(self, site: Site, jobs: Sequence[Job], burst: Burst, policy: str) -> None:
        self.site, self.asked = site, 0
        self.waits: list[tuple[float, int]] = []
        self.orders: list[Decided] = []
        self._burst, self._policy = burst, policy
        self._scenario: Scenario = burst.scenario
        self._all = sum(site.feed.sizes)
        self._coming = deque(job for job in jobs if job.submit >= burst.moment)
        self._waiting: deque[Job] = deque()
        self._running: list[tuple[float, int]] = []
        self._places: list[int] = []
        self._free = self._wanted = 0
        self._next_look = float(BEGIN + burst.moment)

    @property
    def owed(self) -> int:
        """Cores that the comers are owed."""
        return round(self._all * self._scenario.reclaimed)

    def play(self, until: float) -> None:
        """Let all happen until `until` (UNIX s), the agent looking in each period."""
        while True:
            comes = BEGIN + self._coming[0].submit if self._coming else inf
            ends = self._running[0][0] if self._running else inf
            now = min(comes, ends, self._next_look, self.site.next_event, until)
            self.site.advance(now)
            self._serve(now)
            if now >= until:
                return
            if now >= self._next_look:
                self._look(int(now))
                self._next_look += self._scenario.period

    def _serve(self, now: float) -> None:
        """Take in what ended, came and was freed; start what fits; give back what is not needed."""
        sizes = self.site.feed.sizes
        while self._running and self._running[0][0] <= now:
            self._free += heappop(self._running)[1]
        while self._coming and BEGIN + self._coming[0].submit <= now:
            self.asked += self._coming[0].cores
            self._wanted += self._coming[0].cores
            self._waiting.append(self._coming.popleft())
        while True:
            self._places += self.site.freed
            self._free += sum(sizes[place] for place in self.site.freed)
            self.site.freed.clear()
            while self._waiting and self._waiting[0].cores <= self._free:
                job = self._waiting.popleft()
                self._free -= job.cores
                self._wanted -= job.cores
                heappush(self._running, (now + job.run, job.cores))
                self.waits.append((now - BEGIN - job.submit, job.cores))
            vacant = self.site.next_vacant() if self._waiting else None
            if vacant is None or self._held() + sizes[vacant] > self.owed:
                break
            self.site.claim(vacant)
        if not self._waiting:
            for place in [place for place in self._places if sizes[place] <= self._free]:
                if sizes[place] <= self._free:
                    self._places.remove(place)
                    self._free -= sizes[place]
                    self.site.give_back(place)

    def _held(self) -> int:
        return sum(self.site.feed.sizes[place] for place in self._places)

    def _look(self, now: int) -> None:
        """One cycle of the agent, where anybody waits for more than is free or on its way."""
        if not self._waiting:
            return
        held, wanted = self._held(), self._wanted
        comer = Principal(COMER, held - self._free, self.owed, wanted, 1.0, wanted / len(self._waiting))
        if owed(comer) <= self._free + sum(self.site.pilots[run].lease.cores for run in self.site.asked):
            return
        pilots = pilots_of(self.site, now)
        mine = sum(pilot.cores for pilot in pilots)
        holder = Principal(HOLDER, mine, max(0, self._all - self.owed), 0.0, priority=1000.0)
        snapshot = Snapshot(now, pilots, (holder, comer), free_cores=float(self._free))
        decided = decide(self.site, snapshot, self._burst, self._policy)
        if decided.orders:
            self.orders.append(decided)
            for order in decided.orders:
                self.site.ask(order.run, order.deadline)

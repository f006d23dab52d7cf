"""The other group's own jobs as the demand: they come as in the trace, and the agent looks again and again.

They run first come, first served on places without a pilot: vacant ones, and those whose pilots were ordered to end. A
place goes back when no job waits for it. Each policy plays the whole time by itself from the same state, so the longer
it goes on the less do two policies decide on the same: no one decision can be held against another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

from drainwise.pool.facts import Account, Snapshot
from drainwise.reclaim.quota import owed
from drainwise_simulate.demand_burst import CLAIMANT, HOLDER, Burst, Decided, decide, pilots_of
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.site import Site
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN


def parted(jobs: Sequence[TraceJob], owner: str) -> tuple[list[TraceJob], list[TraceJob]]:
    """Return the jobs of the pilots' owners and those of `owner`: a group or, within a single group, a user."""
    by_user = len({job.group for job in jobs}) == 1
    theirs = [job for job in jobs if (job.user if by_user else job.group) == owner]
    return [job for job in jobs if (job.user if by_user else job.group) != owner], theirs


class Arrivals:
    """The arriving jobs on a site under one policy.

    waits: (s, cores) of each of their jobs that has started. asked: cores of their jobs that came. orders: what was
    decided so far.
    """

    def __init__(self, site: Site, jobs: Sequence[TraceJob], burst: Burst, policy: str) -> None:
        self.site, self.asked = site, 0
        self.waits: list[tuple[float, int]] = []
        self.orders: list[Decided] = []
        self._burst, self._policy = burst, policy
        self._scenario: Scenario = burst.scenario
        self._all = sum(site.workload.sizes)
        self._coming = deque(job for job in jobs if job.submit >= burst.moment)
        self._waiting: deque[TraceJob] = deque()
        self._running: list[tuple[float, int]] = []
        self._places: list[int] = []
        self._free = self._wanted = 0
        self._next_look = float(BEGIN + burst.moment)

    @property
    def owed(self) -> int:
        """Cores that the arriving jobs are owed."""
        return round(self._all * self._scenario.reclaimed)

    def decided(self, held: int) -> Decided:
        """Return all decisions as one; held: cores of all pilots before the first."""
        return Decided(
            held,
            self.asked,
            sum(one.given for one in self.orders),
            sum(one.predicted for one in self.orders),
            tuple(order for one in self.orders for order in one.orders),
        )

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
        sizes = self.site.workload.sizes
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
        return sum(self.site.workload.sizes[place] for place in self._places)

    def _look(self, now: int) -> None:
        """Run one cycle of the agent, where anybody waits for more than is free or on its way."""
        if not self._waiting:
            return
        held, wanted = self._held(), self._wanted
        claimant = Account(CLAIMANT, held - self._free, self.owed, wanted, 1.0, wanted / len(self._waiting))
        if owed(claimant) <= self._free + sum(self.site.pilots[run].lease.cores for run in self.site.ordered):
            return
        pilots = pilots_of(self.site, now)
        mine = sum(pilot.cores for pilot in pilots)
        holder = Account(HOLDER, mine, max(0, self._all - self.owed), 0.0, priority=1000.0)
        snapshot = Snapshot(now, pilots, (holder, claimant), free_cores=float(self._free))
        decided = decide(self.site, snapshot, self._burst, self._policy)
        if decided.orders:
            self.orders.append(decided)
            for order in decided.orders:
                self.site.give_order(order.run, order.deadline)

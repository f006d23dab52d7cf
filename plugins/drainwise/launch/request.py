"""A request: targets that somebody wants done, the pressure of each job towards them, and when they will be done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from drainwise.launch.pressure import needed_for, pressures, raise_before
from drainwise.launch.resources import Resources
from drainwise.launch.waiting import Waiting
from drainwise.launch.work import READY, Job

Eligible = Callable[[Resources, Job], bool]
"""Whether a job that leads that bucket may start now."""


class Request:
    """`targets`: what is wanted; None: everything, whatever comes later too."""

    def __init__(self, name: str, targets: Collection[Job] | None) -> None:
        self.name, self.targets = name, targets
        self.eta = 0.0
        """When it will be done, UNIX s, as far as one can tell."""
        self._pressure: dict[int, float] = {}
        self._waiting: dict[str, Waiting[Resources, Job]] = {}
        self._core_seconds = 0.0

    def pressure(self, job: Job) -> float | None:
        """Seconds; None when the job is not needed for the targets."""
        return self._pressure.get(job.index)

    def reckon(self, jobs: Iterable[Job]) -> None:
        """Reckon everything anew, as expected times have changed. `jobs`: all there are."""
        needed = needed_for(self.targets if self.targets is not None else jobs)
        self._pressure = pressures(needed)
        self._core_seconds = sum(job.ete * job.reserved.cpu for job in needed)
        entries: dict[str, list[tuple[Resources, float, int, Job]]] = {}
        for job in needed:
            if job.state == READY:
                entry = (job.bucket, -self._pressure[job.index], job.index, job)
                entries.setdefault(job.work.backend, []).append(entry)
        self._waiting = {}
        for backend, ready in entries.items():
            self._of(backend).fill(ready)

    def take_in(self, new: Iterable[Job]) -> None:
        """Jobs have come that are needed, or new reasons why: raise what is before them."""
        raised, fresh = raise_before(new, self._pressure)
        self._core_seconds += sum(job.ete * job.reserved.cpu for job in fresh)
        for job in raised:
            if job.state == READY:
                self.offer(job)

    def offer(self, job: Job) -> None:
        """The job can start; nothing happens when it is not needed here."""
        pressure = self._pressure.get(job.index)
        if pressure is not None:
            self._of(job.work.backend).add(job.bucket, -pressure, job.index, job)

    def _of(self, backend: str) -> Waiting[Resources, Job]:
        waiting = self._waiting.get(backend)
        if waiting is None:
            waiting = self._waiting[backend] = Waiting(self._still)
        return waiting

    def _still(self, rank: float, job: Job) -> bool:
        return job.state == READY and self._pressure.get(job.index) == -rank

    def choose(self, backend: str, eligible: Eligible) -> Job | None:
        """The eligible job of the highest pressure among those that lead their buckets; it goes on waiting."""
        waiting = self._waiting.get(backend)
        found = waiting.choose(eligible) if waiting is not None else None
        return None if found is None else found[1]

    def over(self, job: Job) -> bool:
        """The job is done, has failed or is skipped; whether it was needed."""
        if self._pressure.pop(job.index, None) is None:
            return False
        self._core_seconds -= job.ete * job.reserved.cpu
        return True

    def needed(self) -> Collection[int]:
        """The indices of the jobs it still needs."""
        return self._pressure.keys()

    @property
    def left(self) -> int:
        """How many jobs it still needs."""
        return len(self._pressure)

    def expect(self, started: Iterable[Job], parallel: int, now: float) -> None:
        """Say when it will be done at `now` (UNIX s): no sooner than its longest chain, nor than its work on so many
        cores takes."""
        longest = 0.0
        done = 0.0
        for job in started:
            pressure = self._pressure.get(job.index)
            if pressure is not None:
                ran = min(max(now - job.started, 0.0), job.ete)
                done += ran * job.reserved.cpu
                longest = max(longest, pressure - ran)
        for waiting in self._waiting.values():
            longest = max([longest, *(-rank for _, rank, _, _ in waiting.heads())])
        self.eta = now + max(longest, (self._core_seconds - done) / max(parallel, 1))

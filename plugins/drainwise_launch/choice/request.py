"""A request: targets that somebody wants done, the pressure of each job towards them, and when they will be done.

Pressure: the expected seconds from the start of a job to the end of the longest chain behind it. Source: SPEC §5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from drainwise.common.waiting import Waiting
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import DONE, FAILED, READY, SKIPPED, LaunchJob

_ENDED = frozenset({DONE, FAILED})


def needed_for(targets: Iterable[LaunchJob]) -> list[LaunchJob]:
    """Return the targets and all before them that are not over, each after whatever comes after it.

    What is before a target that is skipped is needed still: one failure does not decide what else is run.
    """
    seen: set[int] = set()
    found: list[LaunchJob] = []
    for target in targets:
        if target.index in seen or target.state in _ENDED:
            continue
        seen.add(target.index)
        path = [(target, iter(target.after))]
        while path:
            job, left = path[-1]
            for before in left:
                if before.index not in seen and before.state not in _ENDED:
                    seen.add(before.index)
                    path.append((before, iter(before.after)))
                    break
            else:
                path.pop()
                if job.state != SKIPPED:
                    found.append(job)
    found.reverse()
    return found


def pressures(jobs: Iterable[LaunchJob]) -> dict[int, float]:
    """Return the pressure of each job by index; each job stands after those that come after it."""
    known: dict[int, float] = {}
    for job in jobs:
        known[job.index] = job.ete + max((known.get(after.index, 0.0) for after in job.dependants or ()), default=0.0)
    return known


Eligible = Callable[[Resources, LaunchJob], bool]
"""Decides whether a job that leads that bucket may start now."""


class LaunchRequest:
    """`targets`: what is wanted; None: everything."""

    def __init__(self, name: str, targets: Collection[LaunchJob] | None) -> None:
        self.name, self.targets = name, targets
        self.eta = 0.0
        """Its estimated end, UNIX s."""
        self._pressure: dict[int, float] = {}
        self._waiting: dict[str, Waiting[Resources, LaunchJob]] = {}
        self._core_seconds = 0.0

    def pressure(self, job: LaunchJob) -> float | None:
        """Return the pressure in s; None when the job is not needed for the targets."""
        return self._pressure.get(job.index)

    def reckon(self, jobs: Iterable[LaunchJob]) -> None:
        """Reckon everything anew, as expected times have changed. `jobs`: all there are."""
        needed = needed_for(self.targets if self.targets is not None else jobs)
        self._pressure = pressures(needed)
        self._core_seconds = sum(job.ete * job.reserved.cpu for job in needed)
        entries: dict[str, list[tuple[Resources, float, int, LaunchJob]]] = {}
        for job in needed:
            if job.state == READY:
                entry = (job.bucket, -self._pressure[job.index], job.index, job)
                entries.setdefault(job.work.backend, []).append(entry)
        self._waiting = {}
        for backend, ready in entries.items():
            self._of(backend).fill(ready)

    def offer(self, job: LaunchJob) -> None:
        """Queue a job that can start; ignore it when it is not needed here."""
        pressure = self._pressure.get(job.index)
        if pressure is not None:
            self._of(job.work.backend).add(job.bucket, -pressure, job.index, job)

    def _of(self, backend: str) -> Waiting[Resources, LaunchJob]:
        waiting = self._waiting.get(backend)
        if waiting is None:
            waiting = self._waiting[backend] = Waiting(self._still)
        return waiting

    def _still(self, rank: float, job: LaunchJob) -> bool:
        return job.state == READY and self._pressure.get(job.index) == -rank

    def choose(self, backend: str, eligible: Eligible) -> LaunchJob | None:
        """Return the eligible job of the highest pressure among the heads of the buckets; it goes on waiting."""
        waiting = self._waiting.get(backend)
        found = waiting.choose(eligible) if waiting is not None else None
        return None if found is None else found[1]

    def over(self, job: LaunchJob) -> bool:
        """Remove a job that is done, has failed or is skipped; return True if it was needed."""
        if self._pressure.pop(job.index, None) is None:
            return False
        self._core_seconds -= job.ete * job.reserved.cpu
        return True

    def needed(self) -> Collection[int]:
        """Return the indices of the jobs it still needs."""
        return self._pressure.keys()

    @property
    def left(self) -> int:
        """Return the number of jobs it still needs."""
        return len(self._pressure)

    def expect(self, started: Iterable[LaunchJob], parallel: int, now: float) -> None:
        """Set the ETA at `now` (UNIX s), at least the end of its longest chain and of its work on `parallel` cores."""
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

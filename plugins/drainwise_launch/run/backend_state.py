"""The state of one backend: starts, how many wait of each bucket, back-offs of queries and of submissions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from drainwise.common.service import Backoff, Faults
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import RUNNING, Backend, JobState
from drainwise_launch.choice.resources import CPU, Resources
from drainwise_launch.choice.work import LaunchJob
from drainwise_launch.run.store import OpenStart
from drainwise_launch.this_machine.slots import enough


class Live:
    """A start that has not ended. native: its id there, "" as long as nobody knows whether it has begun.

    absent: it has not, and is to be made again, after a pause. queued: whether it waits there. priority: as the
    batch system received it last, UNIX s. unwanted: it is to end, as the job is another one by now.
    """

    __slots__ = ("absent", "backoff", "job", "killed", "native", "priority", "queued", "tag", "unwanted")

    def __init__(self, job: LaunchJob, tag: str, native: str = "") -> None:
        self.job, self.tag, self.native = job, tag, native
        self.priority = 0.0
        self.backoff = Backoff()
        self.absent = self.queued = self.killed = self.unwanted = False


class BackendState:
    """The launcher's side of a backend. `say` receives a line when it goes away and when it is back. Times: UNIX s.

    Queries and starts have a back-off each: a backend that takes no jobs may well say how others fare.
    at_once: the most jobs that may be there, those that wait there included; None: no limit of ours.
    """

    def __init__(self, backend: Backend, say: Callable[[str], None], at_once: int | None = None) -> None:
        self.backend, self._say, self._refusals = backend, say, Faults(say)
        free = backend.free()
        self.queues = free is None
        """Set where it queues and decides by itself when a job runs."""
        self._capacity = (free or {}).get(CPU, 0) if at_once is None else 0
        self.live: dict[str, Live] = {}
        """By tag."""
        self.orphaned: list[OpenStart] = []
        """Starts of an earlier run that are no job's of this one, and are to be ended."""
        self._queued: Counter[Resources] = Counter()
        self._most, self._at_once = backend.max_queued, at_once
        self._asking, self._starting = Backoff(), Backoff()
        self._in_trouble = self._is_full = self._said_full = False

    @property
    def capacity(self) -> int:
        """CPUs it has for us: its pool, or as many as ever ran at once; before any did, what was handed over.

        Where we limit how many jobs run at once, its pool says too much.
        """
        if not self.queues and self._at_once is None:
            return self._capacity
        running = sum(one.job.reserved.cpu for one in self.live.values() if not one.queued)
        self._capacity = max(self._capacity, running)
        return self._capacity or sum(one.job.reserved.cpu for one in self.live.values())

    @property
    def queued(self) -> int:
        """Return the number of jobs that wait there."""
        return sum(self._queued.values())

    def add(self, one: Live) -> None:
        """Add a start that was made, or is about to be."""
        self.live[one.tag] = one
        if self.queues:
            one.queued = True
            self._queued[one.job.bucket] += 1

    def remove(self, one: Live) -> None:
        """Remove a start that was never made, or has ended."""
        del self.live[one.tag]
        self._not_queued(one)

    def ended(self, one: Live) -> None:
        """Remove one that has ended or vanished: where there was a limit, there is room for another one."""
        self.remove(one)
        if self._is_full:
            self._starting.succeeded()

    def _not_queued(self, one: Live) -> None:
        if one.queued:
            one.queued = False
            self._queued[one.job.bucket] -= 1

    def has_room(self, bucket: Resources, job: LaunchJob) -> bool:
        """Decide whether the job may be submitted now: what it needs is free, or few enough of its bucket wait."""
        if self._at_once is not None and len(self.live) >= self._at_once:
            return False
        if self.queues:
            return self._most is None or self._queued[bucket] < self._most
        return enough(job.reserved, self.backend.free() or {})

    def reachable(self, now: float) -> bool:
        """Tell whether a query is due."""
        return self._asking.is_over(now)

    def takes(self, now: float) -> bool:
        """Tell whether a start may be tried."""
        return self._asking.is_over(now) and self._starting.is_over(now)

    def lost(self, fault: PoolUnreachable, now: float) -> None:
        """Note that it did not answer: the back-off of queries begins."""
        self._trouble(fault)
        self._asking.failed(now)

    def start_lost(self, one: Live, fault: PoolUnreachable, now: float) -> None:
        """Note that it did not say whether it took this one: the back-off of submissions begins."""
        self._trouble(fault)
        one.backoff.failed(now)
        one.absent = False
        self._starting.failed(now)
        self._is_full = False

    def full(self, fault: PoolFull, now: float) -> None:
        """Note that it takes no more: start nothing there for a while, or until one of those there has ended."""
        if not self._said_full:
            self._said_full = True
            self._say(f"{self.backend.name}: {fault}; the others are started there as it takes them")
        self._starting.failed(now)
        self._is_full = True

    def answered(self) -> None:
        """Note that the backend answered a query."""
        self._asking.succeeded()
        self._works()

    def took(self, one: Live, native: str) -> None:
        """Note that it has taken this one."""
        one.native, one.absent = native, False
        self._starting.succeeded()
        self._works()

    def refused(self, fault: ActionRefused) -> None:
        """Say that it refused a command about jobs that it has, once for as long as it says the same."""
        self._refusals.set(self.backend.name, str(fault))

    def _trouble(self, fault: PoolUnreachable) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            self._say(f"{self.backend.name}: {fault}; jobs there go on, it is asked again until it answers")

    def _works(self) -> None:
        if not self._in_trouble or self._asking.seconds or self._starting.seconds:
            return
        if all(one.native for one in self.live.values()):
            self._in_trouble = False
            self._say(f"{self.backend.name}: answers again")

    def settle_doubts(self) -> None:
        """Look for starts that nobody saw the end of. Raises PoolUnreachable."""
        doubtful = [one for one in self.live.values() if not one.native and not one.absent]
        if doubtful:
            found = self.backend.find([one.tag for one in doubtful])
            for one in doubtful:
                one.native = found.get(one.tag, "")
                one.absent = not one.native

    def absent(self) -> list[Live]:
        """Return the starts that were never made."""
        return [one for one in self.live.values() if one.absent]

    def news(self) -> list[tuple[Live, JobState]]:
        """Return the starts that began to run, ended or vanished, with their states. Raises PoolUnreachable."""
        by_id = {one.native: one for one in self.live.values() if one.native}
        if not by_id:
            return []
        changed = []
        for native, state in self.backend.poll(list(by_id)).items():
            one = by_id.get(native)
            if one is None:
                continue
            if state.has_ended:
                changed.append((one, state))
            elif state.state == RUNNING and one.queued:
                self._not_queued(one)
                changed.append((one, state))
        return changed

    def kill(self, all_of_them: bool) -> None:
        """End what was started here and is not wanted, or all of it, once each. Raises PoolUnreachable."""
        alive = [one for one in self.live.values() if (all_of_them or one.unwanted) and one.native and not one.killed]
        if alive:
            self.backend.kill([one.native for one in alive])
            for one in alive:
                one.killed = True

    def reprioritise(self, priority: Callable[[LaunchJob], float], least: float) -> None:
        """Tell new priorities (UNIX s) of those that wait there, where they differ by `least` seconds.

        Raises PoolUnreachable, ActionRefused.
        """
        moved: dict[str, float] = {}
        for one in self.live.values():
            if one.queued and one.native:
                new = priority(one.job)
                if abs(new - one.priority) >= least:
                    moved[one.native] = new
        if moved:
            self.backend.reprioritise(moved)
            for one in self.live.values():
                one.priority = moved.get(one.native, one.priority)

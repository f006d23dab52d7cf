"""What one backend has of us: who waits and runs there, how many wait of each bucket, when it may be asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from drainwise.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.launch.backend import DONE, RUNNING, VANISHED, Backend, State
from drainwise.launch.local_pool import enough
from drainwise.launch.pause import Pause
from drainwise.launch.resources import CPU, Resources
from drainwise.launch.work import Job


class Live:
    """A start that has not ended. native: its id there, "" as long as nobody knows whether it has begun.

    absent: it has not, and is to be made again, after a pause. queued: whether it waits there. told: the priority that
    was told last, UNIX s. unwanted: it is to end, as the job is another one by now.
    """

    __slots__ = ("absent", "job", "killed", "native", "pause", "queued", "tag", "told", "unwanted")

    def __init__(self, job: Job, tag: str, native: str = "") -> None:
        self.job, self.tag, self.native = job, tag, native
        self.told = 0.0
        self.pause = Pause()
        self.absent = self.queued = self.killed = self.unwanted = False


class Desk:
    """The launcher's side of a backend. `say` is told when it goes away and when it is back. Times: UNIX s.

    What it is asked and what is started there have a pause each: one that takes no jobs may well say how others fare.
    """

    def __init__(self, backend: Backend, say: Callable[[str], None]) -> None:
        self.backend, self._say = backend, say
        free = backend.free()
        self.queues = free is None
        """Whether it queues and decides by itself when a job runs."""
        self._capacity = (free or {}).get(CPU, 0)
        self.live: dict[str, Live] = {}
        """By tag."""
        self._queued: Counter[Resources] = Counter()
        self._most = backend.max_queued
        self._asking, self._starting = Pause(), Pause()
        self._in_trouble = self._is_full = self._told_full = False
        self._told_refusal = ""

    @property
    def capacity(self) -> int:
        """CPUs it has for us: its pool, or as many as ever ran at once; before any did, what was handed over."""
        if not self.queues:
            return self._capacity
        running = sum(one.job.reserved.cpu for one in self.live.values() if not one.queued)
        self._capacity = max(self._capacity, running)
        return self._capacity or sum(one.job.reserved.cpu for one in self.live.values())

    @property
    def queued(self) -> int:
        """How many wait there."""
        return sum(self._queued.values())

    def add(self, one: Live) -> None:
        """A start was made, or is about to be."""
        self.live[one.tag] = one
        if self.queues:
            one.queued = True
            self._queued[one.job.bucket] += 1

    def remove(self, one: Live) -> None:
        """It was never made, or has ended."""
        del self.live[one.tag]
        self._not_queued(one)

    def ended(self, one: Live) -> None:
        """It has ended, or vanished: where there was a limit, there is room for another one."""
        self.remove(one)
        if self._is_full:
            self._starting.end()

    def _not_queued(self, one: Live) -> None:
        if one.queued:
            one.queued = False
            self._queued[one.job.bucket] -= 1

    def has_room(self, bucket: Resources, job: Job) -> bool:
        """Whether the job may be handed over now: what it needs is free, or few enough of its bucket wait there."""
        if self.queues:
            return self._most is None or self._queued[bucket] < self._most
        return enough(job.reserved, self.backend.free() or {})

    def reachable(self, now: float) -> bool:
        """Whether it may be asked by now."""
        return self._asking.is_over(now)

    def takes(self, now: float) -> bool:
        """Whether a start may be tried by now."""
        return self._asking.is_over(now) and self._starting.is_over(now)

    def lost(self, fault: PoolUnreachable, now: float) -> None:
        """It did not answer: leave it alone for a while."""
        self._trouble(fault)
        self._asking.lengthen(now)

    def start_lost(self, one: Live, fault: PoolUnreachable, now: float) -> None:
        """It did not say whether it took this one: start nothing there for a while."""
        self._trouble(fault)
        one.pause.lengthen(now)
        one.absent = False
        self._starting.lengthen(now)
        self._is_full = False

    def full(self, fault: PoolFull, now: float) -> None:
        """It takes no more: start nothing there for a while, or until one of those there has ended."""
        if not self._told_full:
            self._told_full = True
            self._say(f"{self.backend.name}: {fault}; the others are started there as it takes them")
        self._starting.lengthen(now)
        self._is_full = True

    def answered(self) -> None:
        """It has."""
        self._asking.end()
        self._works()

    def took(self, one: Live, native: str) -> None:
        """It has taken this one."""
        one.native, one.absent = native, False
        self._starting.end()
        self._works()

    def refused(self, fault: ActionRefused) -> None:
        """It refused an order about jobs that it has; said once for as long as it says the same."""
        if str(fault) != self._told_refusal:
            self._told_refusal = str(fault)
            self._say(f"{self.backend.name}: {fault}")

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
        """Starts that were never made."""
        return [one for one in self.live.values() if one.absent]

    def news(self) -> list[tuple[Live, State]]:
        """What has changed with those that have an id: began to run, ended, vanished. Raises PoolUnreachable."""
        by_id = {one.native: one for one in self.live.values() if one.native}
        if not by_id:
            return []
        changed = []
        for native, state in self.backend.poll(list(by_id)).items():
            one = by_id.get(native)
            if one is None:
                continue
            if state.state in {DONE, VANISHED}:
                changed.append((one, state))
            elif state.state == RUNNING and one.queued:
                self._not_queued(one)
                changed.append((one, state))
        return changed

    def kill_unwanted(self) -> None:
        """End what is not wanted, once each. Raises PoolUnreachable."""
        self._kill([one for one in self.live.values() if one.unwanted])

    def kill_all(self) -> None:
        """End what was started here, once each. Raises PoolUnreachable."""
        self._kill(self.live.values())

    def _kill(self, found: Iterable[Live]) -> None:
        alive = [one for one in found if one.native and not one.killed]
        if alive:
            self.backend.kill([one.native for one in alive])
            for one in alive:
                one.killed = True

    def reprioritise(self, priority: Callable[[Job], float], least: float) -> None:
        """Tell new priorities (UNIX s) of those that wait there, where they differ by `least` seconds.

        Raises PoolUnreachable, ActionRefused.
        """
        moved: dict[str, float] = {}
        for one in self.live.values():
            if one.queued and one.native:
                new = priority(one.job)
                if abs(new - one.told) >= least:
                    moved[one.native] = new
        if moved:
            self.backend.reprioritise(moved)
            for one in self.live.values():
                one.told = moved.get(one.native, one.told)

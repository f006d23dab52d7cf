"""The loop: ask the backends how jobs fare, start what may start, tell new priorities, until all is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drainwise.errors import ActionRefused, PoolError, PoolUnreachable
from drainwise.launch.backend import Backend
from drainwise.launch.desk import Desk
from drainwise.launch.engine import Engine
from drainwise.launch.handover import HandOver
from drainwise.launch.outcome import Outcomes
from drainwise.launch.progress import Progress
from drainwise.launch.starts import Starts
from drainwise.launch.store import Store


@dataclass(frozen=True)
class Pace:
    """Seconds between two of the same: questions to a batch system, new priorities, new ETAs, looks.

    least_move: by how much a priority must have changed to be told. patience: for what is killed to end.
    """

    poll: float = 1.0
    priorities: float = 10.0
    least_move: float = 5.0
    expect: float = 0.5
    look: float = 0.25
    patience: float = 15.0


PACE = Pace()
_RECKON_EVERY = 2.0
_RECKON_SHARE = 20
"""Reckoning everything anew takes a twentieth of the time at most."""


def _no_news() -> None:
    """Nobody adds jobs."""


def _tell_nobody(_: Progress) -> None:
    """Nobody watches."""


class Runner:
    """Runs what the engine's requests need on `backends` (by the name that jobs have). state: begins every tag.

    news: is called before jobs are chosen and before those after a job that is done may start: jobs may have come.
    say: warnings and failures, a line each. clock: UNIX s. take_up: whether jobs of an earlier run that still run are
    this one's; else they are ended.
    """

    def __init__(
        self,
        engine: Engine,
        backends: Mapping[str, Backend],
        store: Store,
        starts: Starts,
        state: str,
        say: Callable[[str], None],
        news: Callable[[], None] = _no_news,
        pace: Pace = PACE,
        clock: Callable[[], float] = time.time,
        take_up: bool = True,
    ) -> None:
        self._engine, self._say, self._news, self._pace, self._clock = engine, say, news, pace, clock
        self._backends = backends
        self._desks: dict[str, Desk] = {}
        self._open_desks()
        self._outcomes = Outcomes(engine, store, starts.output_of, say)
        self._hand_over = HandOver(engine, store, starts, self._outcomes, state, say, lambda: self.stopped)
        self._due: dict[str, float] = {}
        self._reckon_every = _RECKON_EVERY
        self._stopping = 0
        self._take_up = take_up
        self.progress = Progress(engine)

    def _open_desks(self) -> None:
        for name, backend in self._backends.items():
            if name not in self._desks:
                self._desks[name] = Desk(backend, self._say)

    def stop(self) -> None:
        """Start nothing more and end what runs; told twice, without patience. A signal handler may call it."""
        self._stopping += 1

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping > 0

    def run(self, tell: Callable[[Progress], None] = _tell_nobody) -> None:
        """Run to the end, or until `stop`. `tell` is called with every look. Raises PoolError where nothing goes on."""
        self._hand_over.find_again(self._desks, self._take_up)
        for desk in self._desks.values():  # there may be nothing left to wait for
            self._guarded(desk, self._clock(), lambda each, _: self._hand_over.end_strangers(each))
        while not self._stopping and self._engine.unfinished:
            self.round(self._clock())
            tell(self.progress)
            if self._engine.unfinished:
                self._sleep()
        if self._stopping:
            self._end_all()
        self._outcomes.keep_rules()
        self._outcomes.keep()
        tell(self.progress)

    def round(self, now: float) -> None:
        """One look at everything at `now`, UNIX s."""
        for name, desk in self._desks.items():
            busy = desk.live or self._hand_over.has_strangers(desk)
            if busy and (not desk.queues or self._is_due(f"poll {name}", self._pace.poll, now)):
                self._guarded(desk, now, self._ask)
        self._news()
        self._open_desks()
        if self._is_due("expect", self._pace.expect, now):
            self._expect(now)
        for name, desk in self._desks.items():
            self._hand_over.fill(name, desk, now)
        self._outcomes.keep()
        self._refuse_deadlock(now)

    def _is_due(self, what: str, every: float, now: float) -> bool:
        # A time that lies further ahead than it ever is set was set before the clock was turned back.
        if now < self._due.get(what, now) <= now + every:
            return False
        self._due[what] = now + every
        return True

    def _guarded(self, desk: Desk, now: float, act: Callable[[Desk, float], None]) -> None:
        """Do something with a backend, if it may be asked now."""
        if not desk.reachable(now):
            return
        try:
            act(desk, now)
        except PoolUnreachable as fault:
            desk.lost(fault, now)
        except ActionRefused as fault:
            desk.refused(fault)

    def _sleep(self) -> None:
        """Until something ends in a backend that can tell, or the next look."""
        for desk in sorted(self._desks.values(), key=lambda desk: desk.queues)[:1]:
            desk.backend.wait(self._pace.look)

    def _ask(self, desk: Desk, now: float) -> None:
        """How all fare there; then, as that may be refused, end what is not wanted."""
        desk.settle_doubts()
        for one in desk.absent():
            if one.unwanted or self._stopping or not desk.queues:
                self._outcomes.take_back(desk, one)
        changed = desk.news()
        desk.answered()
        if changed:
            self._news()
        for one, state in changed:
            self._outcomes.take(desk, one, state, now)
        self._hand_over.end_strangers(desk)
        desk.kill_unwanted()

    def _expect(self, now: float) -> None:
        engine = self._engine
        engine.parallel = max(1, sum(desk.capacity for desk in self._desks.values()))
        if engine.stale and self._is_due("reckon", self._reckon_every, now):
            begin = time.perf_counter()
            engine.reckon()
            self._reckon_every = max(_RECKON_EVERY, _RECKON_SHARE * (time.perf_counter() - begin))
        self._outcomes.keep_rules()
        self.progress.eta = engine.expect(now)
        self.progress.queued = sum(desk.queued for desk in self._desks.values())
        if self._is_due("priorities", self._pace.priorities, now):
            for desk in self._desks.values():
                if desk.queues:
                    self._guarded(desk, now, self._reprioritise)

    def _reprioritise(self, desk: Desk, _: float) -> None:
        desk.reprioritise(lambda job: self._engine.urgency(job)[0], self._pace.least_move)

    def _refuse_deadlock(self, now: float) -> None:
        """Raises PoolError where nothing runs, nothing may start, and nobody has to be waited for."""
        desks = self._desks.items()
        if self._stopping or not self._engine.unfinished or any(d.live or not d.reachable(now) for _, d in desks):
            return
        if any(self._engine.choose(name, desk.has_room) for name, desk in desks):
            return
        raise PoolError(f"{self._engine.left()} jobs wait, nothing runs, and none of them can start on what there is")

    def _end_all(self) -> None:
        """Kill what was started, and see it end."""
        self._outcomes.stopping = True
        end = time.monotonic() + self._pace.patience
        while True:
            now = self._clock()
            for desk in self._desks.values():
                self._guarded(desk, now, lambda each, _: each.kill_all())
                if desk.live:
                    self._guarded(desk, now, self._ask)
            if self._stopping > 1 or time.monotonic() >= end or not any(desk.live for desk in self._desks.values()):
                break
            self._sleep()
        left = sum(len(desk.live) for desk in self._desks.values() if desk.queues)
        if left:
            self._say(f"{left} jobs have not been seen to end; the next run finds them again")

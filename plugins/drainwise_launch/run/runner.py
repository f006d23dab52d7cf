"""The loop: ask the backends how jobs fare, start what may start, tell new priorities, until all is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drainwise.facts.errors import ActionRefused, PoolError, PoolUnreachable
from drainwise_launch.backend import Backend
from drainwise_launch.choice.engine import Engine
from drainwise_launch.run.backend_state import BackendState
from drainwise_launch.run.job_runs import JobRuns
from drainwise_launch.run.starts import Starts
from drainwise_launch.run.store import Store


@dataclass(frozen=True)
class Intervals:
    """Seconds between two of the same: questions to a batch system, new priorities, new ETAs, looks.

    least_move: by how much a priority must have changed to be sent. patience: for what is killed to end.
    """

    poll: float = 1.0
    priorities: float = 10.0
    least_move: float = 5.0
    expect: float = 0.5
    look: float = 0.25
    patience: float = 15.0


INTERVALS = Intervals()
_RECKON_EVERY = 2.0
_RECKON_SHARE = 20
"""Reckoning everything anew takes a twentieth of the time at most."""
_BAR, _LEAST_BAR = 30, 5


class Progress:
    """`eta`: when all will be done, UNIX s. queued: of those that are started, how many wait in a batch system."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.eta = 0.0
        self.queued = 0

    def line(self, now: float, width: int = 80) -> str:
        """Return one line for people, of at most `width` columns; the bar has what the words leave."""
        left = self._engine.left()
        over = self._engine.over
        running = len(self._engine.started) - self.queued
        queued = f", {self.queued} queued" if self.queued else ""
        words = f"{over}/{over + left} over, {running} running{queued}, ETA {span(self.eta - now)}"
        bar = min(_BAR, width - len(words) - 3)
        if bar < _LEAST_BAR:
            return words[:width]
        filled = bar * over // max(over + left, 1)
        return f"[{'#' * filled}{'.' * (bar - filled)}] {words}"


def span(seconds: float) -> str:
    """Return a duration as h:mm:ss, with the days before it."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text


def _tell_nobody(_: Progress) -> None:
    """Show nobody the progress."""


class LaunchRunner:
    """Runs what the engine's requests need on `backends` (by the name that jobs have). state: begins every tag.

    must_hold: is called before jobs are chosen; raises where the launch is not this process's any more.
    say: warnings and failures, a line each. clock: UNIX s. take_up: whether jobs of an earlier run that still run are
    this one's; else they are ended. at_once: the most jobs of each backend at the same time; None: no limit.
    """

    def __init__(
        self,
        engine: Engine,
        backends: Mapping[str, Backend],
        store: Store,
        starts: Starts,
        state: str,
        say: Callable[[str], None],
        must_hold: Callable[[], None] = lambda: None,
        intervals: Intervals = INTERVALS,
        clock: Callable[[], float] = time.time,
        take_up: bool = True,
        at_once: int | None = None,
    ) -> None:
        self._engine, self._say, self._must_hold = engine, say, must_hold
        self._intervals, self._clock = intervals, clock
        self._states = {name: BackendState(backend, say, at_once) for name, backend in backends.items()}
        self._runs = JobRuns(engine, store, starts, state, say)
        self._due: dict[str, float] = {}
        self._reckon_every = _RECKON_EVERY
        self._stopping = 0
        self._take_up = take_up
        self.progress = Progress(engine)

    def stop(self) -> None:
        """Start nothing more and end what runs; at the second call, without patience. A signal handler may call it."""
        self._stopping += 1
        self._runs.stopped = True

    def run(self, tell: Callable[[Progress], None] = _tell_nobody) -> None:
        """Run to the end, or until `stop`. `tell` is called with every look. Raises PoolError where nothing goes on."""
        self._runs.find_again(self._states, self._take_up)
        for there in self._states.values():  # there may be nothing left to wait for
            self._guarded(there, self._clock(), lambda each, _: self._runs.end_orphaned(each))
        while not self._stopping and self._engine.unfinished:
            self.round(self._clock())
            tell(self.progress)
            if self._engine.unfinished:
                self._sleep()
        if self._stopping:
            self._end_all()
        self._runs.keep()
        tell(self.progress)

    def round(self, now: float) -> None:
        """Look once at everything at `now`, UNIX s."""
        for name, there in self._states.items():
            busy = there.live or there.orphaned
            if busy and (not there.queues or self._is_due(f"poll {name}", self._intervals.poll, now)):
                self._guarded(there, now, self._ask)
        self._must_hold()
        if self._is_due("expect", self._intervals.expect, now):
            self._expect(now)
        for name, there in self._states.items():
            self._runs.fill(name, there, now)
        self._runs.keep()
        self._refuse_deadlock(now)

    def _is_due(self, what: str, every: float, now: float) -> bool:
        # A time that lies further ahead than it ever is set was set before the clock was turned back.
        if now < self._due.get(what, now) <= now + every:
            return False
        self._due[what] = now + every
        return True

    def _guarded(self, there: BackendState, now: float, act: Callable[[BackendState, float], None]) -> None:
        """Do something with a backend, if it may be asked now."""
        if not there.reachable(now):
            return
        try:
            act(there, now)
        except PoolUnreachable as fault:
            there.lost(fault, now)
        except ActionRefused as fault:
            there.refused(fault)

    def _sleep(self) -> None:
        """Wait until something ends in a backend that can tell, or until the next look."""
        for there in sorted(self._states.values(), key=lambda there: there.queues)[:1]:
            there.backend.wait(self._intervals.look)

    def _ask(self, there: BackendState, now: float) -> None:
        """Take the states of all jobs there; then, as that may be refused, end what is not wanted."""
        there.settle_doubts()
        for one in there.absent():
            if one.unwanted or self._stopping or not there.queues:
                self._runs.not_started(there, one)
        changed = there.news()
        there.answered()
        for one, state in changed:
            self._runs.take(there, one, state, now)
        self._runs.end_orphaned(there)
        there.kill(all_of_them=False)

    def _expect(self, now: float) -> None:
        engine = self._engine
        engine.parallel = max(1, sum(there.capacity for there in self._states.values()))
        if engine.stale and self._is_due("reckon", self._reckon_every, now):
            begin = time.perf_counter()
            engine.reckon()
            self._reckon_every = max(_RECKON_EVERY, _RECKON_SHARE * (time.perf_counter() - begin))
        self.progress.eta = engine.expect(now)
        self.progress.queued = sum(there.queued for there in self._states.values())
        if self._is_due("priorities", self._intervals.priorities, now):
            least = self._intervals.least_move
            for there in self._states.values():
                if there.queues:
                    self._guarded(there, now, lambda each, _: each.reprioritise(engine.priority, least))

    def _refuse_deadlock(self, now: float) -> None:
        """Raise PoolError where nothing runs, nothing may start, and nothing has to be waited for."""
        states = self._states.items()
        if self._stopping or not self._engine.unfinished or any(d.live or not d.reachable(now) for _, d in states):
            return
        if any(self._engine.choose(name, there.has_room) for name, there in states):
            return
        raise PoolError(f"{self._engine.left()} jobs wait, nothing runs, and none of them can start on what there is")

    def _end_all(self) -> None:
        """Kill what was started, and see it end."""
        self._runs.ending = True
        end = time.monotonic() + self._intervals.patience
        while True:
            now = self._clock()
            for there in self._states.values():
                self._guarded(there, now, lambda each, _: each.kill(all_of_them=True))
                if there.live:
                    self._guarded(there, now, self._ask)
            if self._stopping > 1 or time.monotonic() >= end or not any(there.live for there in self._states.values()):
                break
            self._sleep()
        left = sum(len(there.live) for there in self._states.values() if there.queues)
        if left:
            self._say(f"{left} jobs have not been seen to end; the next run finds them again")

"""Handing jobs over to a backend, each once: what is about to be started is written down before, by its tag."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import READY, digest_of
from drainwise_launch.run.backend_state import BackendState, Live
from drainwise_launch.run.outcome import Outcomes
from drainwise_launch.run.starts import Starts, is_of, tag_of
from drainwise_launch.run.store import OpenStart, Store

_LONGEST = 1.0
_TOGETHER = 10
"""Starts that are written down at once."""
_UNTIL_IT_RUNS = inf


class Takeover:
    """`state`: begins every tag. stopped: whether nothing is to be started any more."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        starts: Starts,
        outcomes: Outcomes,
        state: str,
        say: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._engine, self._store, self._starts, self._outcomes = engine, store, starts, outcomes
        self._state, self._say, self._stopped = state, say, stopped
        self._orphaned: list[tuple[BackendState, OpenStart]] = []

    def fill(self, name: str, there: BackendState, now: float) -> None:
        """Hand over what may start in the backend that jobs call `name`, for a second at most: others wait, too."""
        ends = time.monotonic() + _LONGEST
        while not self._stopped() and there.takes(now):
            again = [one for one in there.absent() if one.backoff.is_over(now)]
            # One whose start was lost is the next; lost once more, it is tried after others, as it may be the fault.
            chosen = [one for one in again if one.backoff.failures <= 1] or self._choose(name, there, now) or again
            if not chosen:
                return
            self._start_some(there, chosen, now)
            if time.monotonic() >= ends:
                return

    def _start_some(self, there: BackendState, chosen: list[Live], now: float) -> None:
        """Hand them over in their order, as long as they are taken; what is left waits again."""
        while chosen and not self._stopped():
            try:
                self._start(there, chosen[0], now)
            except PoolFull as fault:
                there.full(fault, now)
                break
            except PoolUnreachable as fault:
                there.start_lost(chosen.pop(0), fault, now)  # it stays, and is looked for
                break
            del chosen[0]
        for one in chosen:
            if not one.absent:
                self._outcomes.not_started(there, one)

    def _choose(self, name: str, there: BackendState, now: float) -> list[Live]:
        """Choose the jobs that start next and write them down: one where the backend says what is free, else some."""
        chosen: list[Live] = []
        while len(chosen) < (_TOGETHER if there.queues else 1):
            job = self._engine.choose(name, there.has_room)
            if job is None:
                break
            self._engine.start(job, _UNTIL_IT_RUNS if there.queues else now)
            job.digest = digest_of(job.work, [before.digest for before in job.after])
            one = Live(job, tag_of(self._state, job.digest))
            there.add(one)
            chosen.append(one)
        if there.queues and chosen:
            self._store.starting(OpenStart(one.tag, one.job.name, name, None, now) for one in chosen)
            self._store.commit()
        return chosen

    def _start(self, there: BackendState, one: Live, now: float) -> None:
        """Hand one over. Raises PoolFull: then it has not begun; PoolUnreachable: then nobody knows."""
        job = one.job
        one.priority, pressure = self._engine.urgency(job)
        try:
            start = self._starts.start_of(job, one.tag, one.priority, pressure)
            native = there.backend.start(start)
        except (ActionRefused, OSError) as fault:
            there.remove(one)
            self._outcomes.settled(there, one)
            self._outcomes.fail(job, f"cannot be started: {fault}", now)
            return
        there.took(one, native)
        if there.queues:
            self._store.starting([OpenStart(one.tag, job.name, job.work.backend, one.native, now)])

    def find_again(self, states: dict[str, BackendState], take_up: bool) -> None:
        """Take up starts of an earlier run that nobody saw the end of; end those of jobs that are others by now.

        take_up: False ends them all.
        """
        for start in self._store.open_starts():
            there = states.get(start.backend)
            if there is None:
                self._say(f"job {start.name}: it may still run in {start.backend}, which this launch does not use")
                continue
            job = self._engine.graph.find(start.name) if start.name in self._engine.graph else None
            if job is None or job.state != READY:
                self._orphaned.append((there, start))
                continue
            self._engine.start(job, _UNTIL_IT_RUNS)
            one = Live(job, start.tag, start.native or "")
            moved = start.backend != job.work.backend
            one.unwanted = moved or not take_up or not is_of(start.tag, job.digest)
            there.add(one)

    def end_orphaned(self, there: BackendState) -> None:
        """End starts of an earlier run that are no job's of this one. Raises PoolUnreachable."""
        here = [start for at, start in self._orphaned if at is there]
        if not here:
            return
        doubtful = [start.tag for start in here if not start.native]
        found = there.backend.find(doubtful) if doubtful else {}
        alive = [native for start in here for native in (start.native or found.get(start.tag),) if native]
        if alive:
            there.backend.kill(alive)
        self._store.settled(start.tag for start in here)
        self._orphaned = [(at, start) for at, start in self._orphaned if at is not there]

    def has_orphaned(self, there: BackendState) -> bool:
        """Tell whether any orphaned start of this backend has not been ended yet."""
        return any(at is there for at, _ in self._orphaned)

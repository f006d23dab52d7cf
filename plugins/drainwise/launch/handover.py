"""Handing jobs over to a backend, each once: what is about to be started is written down before, by its tag."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from drainwise.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.launch.desk import Desk, Live
from drainwise.launch.engine import Engine
from drainwise.launch.outcome import Outcomes
from drainwise.launch.pause import FIRST
from drainwise.launch.starts import Starts, is_of, tag_of
from drainwise.launch.store import OpenStart, Store
from drainwise.launch.work import READY, digest_of

_LONGEST = 1.0
_TOGETHER = 10
"""Starts that are written down at once."""
_UNTIL_IT_RUNS = inf


class HandOver:
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
        self._strangers: list[tuple[Desk, OpenStart]] = []

    def fill(self, name: str, desk: Desk, now: float) -> None:
        """Hand over what may start in the backend that jobs call `name`, for a second at most: others wait, too."""
        ends = time.monotonic() + _LONGEST
        while not self._stopped() and desk.takes(now):
            again = [one for one in desk.absent() if one.pause.is_over(now)]
            # One whose start was lost is the next; lost once more, it is tried after others, as it may be the fault.
            chosen = [one for one in again if one.pause.seconds <= FIRST] or self._choose(name, desk, now) or again
            if not chosen:
                return
            self._start_some(desk, chosen, now)
            if time.monotonic() >= ends:
                return

    def _start_some(self, desk: Desk, chosen: list[Live], now: float) -> None:
        """Hand them over in their order, as long as they are taken; what is left waits again."""
        while chosen and not self._stopped():
            try:
                self._start(desk, chosen[0], now)
            except PoolFull as fault:
                desk.full(fault, now)
                break
            except PoolUnreachable as fault:
                desk.start_lost(chosen.pop(0), fault, now)  # it stays, and is looked for
                break
            del chosen[0]
        for one in chosen:
            if not one.absent:
                self._outcomes.take_back(desk, one)

    def _choose(self, name: str, desk: Desk, now: float) -> list[Live]:
        """Those that start next, written down: one where the backend says what is free, else some."""
        chosen: list[Live] = []
        while len(chosen) < (_TOGETHER if desk.queues else 1):
            job = self._engine.choose(name, desk.has_room)
            if job is None:
                break
            self._engine.start(job, _UNTIL_IT_RUNS if desk.queues else now)
            job.digest = digest_of(job.work, [before.digest for before in job.after])
            one = Live(job, tag_of(self._state, job.digest))
            desk.add(one)
            chosen.append(one)
        if desk.queues and chosen:
            self._store.starting(OpenStart(one.tag, one.job.name, name, None, now) for one in chosen)
            self._store.commit()
        return chosen

    def _start(self, desk: Desk, one: Live, now: float) -> None:
        """Hand one over. Raises PoolFull: then it has not begun; PoolUnreachable: then nobody knows."""
        job = one.job
        one.told, pressure = self._engine.urgency(job)
        try:
            start = self._starts.start_of(job, one.tag, one.told, pressure)
            native = desk.backend.start(start)
        except (ActionRefused, OSError) as fault:
            desk.remove(one)
            self._outcomes.settled(desk, one)
            self._outcomes.fail(job, f"cannot be started: {fault}", now)
            return
        desk.took(one, native)
        if desk.queues:
            self._store.starting([OpenStart(one.tag, job.name, job.work.backend, one.native, now)])

    def find_again(self, desks: dict[str, Desk], take_up: bool) -> None:
        """Take up starts of an earlier run that nobody saw the end of; end those of jobs that are others by now.

        take_up: False ends them all.
        """
        for start in self._store.open_starts():
            desk = desks.get(start.backend)
            if desk is None:
                self._say(f"job {start.name}: it may still run in {start.backend}, which this launch does not use")
                continue
            job = self._engine.graph.find(start.name) if start.name in self._engine.graph else None
            if job is None or job.state != READY:
                self._strangers.append((desk, start))
                continue
            self._engine.start(job, _UNTIL_IT_RUNS)
            one = Live(job, start.tag, start.native or "")
            moved = start.backend != job.work.backend
            one.unwanted = moved or not take_up or not is_of(start.tag, job.digest)
            desk.add(one)

    def end_strangers(self, desk: Desk) -> None:
        """End starts of an earlier run that are no job's of this one. Raises PoolUnreachable."""
        here = [start for at, start in self._strangers if at is desk]
        if not here:
            return
        doubtful = [start.tag for start in here if not start.native]
        found = desk.backend.find(doubtful) if doubtful else {}
        alive = [native for start in here for native in (start.native or found.get(start.tag),) if native]
        if alive:
            desk.backend.kill(alive)
        self._store.settled(start.tag for start in here)
        self._strangers = [(at, start) for at, start in self._strangers if at is not desk]

    def has_strangers(self, desk: Desk) -> bool:
        """Whether there are such that have not been ended yet."""
        return any(at is desk for at, _ in self._strangers)

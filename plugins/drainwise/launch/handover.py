"""Handing jobs over to a backend, each once: what is about to be started is written down before, by its tag."""

from __future__ import annotations

import time
from collections.abc import Callable

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.launch.desk import Desk, Live
from drainwise.launch.engine import Engine
from drainwise.launch.outcome import Outcomes
from drainwise.launch.starts import Starts, is_of, tag_of
from drainwise.launch.store import OpenStart, Store
from drainwise.launch.work import READY, digest_of

_LONGEST = 1.0
_TOGETHER = 10
"""Starts that are written down at once."""


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
        """Hand over what may start in the backend that jobs call `name`, for a second at most: others wait, too.

        Raises PoolUnreachable.
        """
        ends = time.monotonic() + _LONGEST
        while not self._stopped():
            chosen = self._choose(name, desk, now)
            if not chosen:
                return
            while chosen:
                one = chosen.pop(0)
                try:
                    if self._stopped():
                        self._outcomes.take_back(desk, one)
                    else:
                        self.start(desk, one, now)
                except PoolUnreachable:
                    for never in chosen:
                        self._outcomes.take_back(desk, never)
                    raise
            if time.monotonic() >= ends:
                return

    def _choose(self, name: str, desk: Desk, now: float) -> list[Live]:
        """Those that start next, written down: one where the backend says what is free, else some."""
        chosen: list[Live] = []
        while len(chosen) < (_TOGETHER if desk.queues else 1):
            job = self._engine.choose(name, desk.has_room)
            if job is None:
                break
            self._engine.start(job, now)
            job.digest = digest_of(job.work, [before.digest for before in job.after])
            one = Live(job, tag_of(self._state, job.digest))
            desk.add(one)
            chosen.append(one)
        if desk.queues and chosen:
            self._store.starting(OpenStart(one.tag, one.job.name, name, None, now) for one in chosen)
            self._store.commit()
        return chosen

    def start(self, desk: Desk, one: Live, now: float) -> None:
        """Hand one over. Raises PoolUnreachable: then nobody knows whether it has begun, and its `native` stays ""."""
        job = one.job
        one.told, pressure = self._engine.urgency(job)
        try:
            start = self._starts.start_of(job, one.tag, one.told, pressure)
            one.native = desk.backend.start(start)
        except (ActionRefused, OSError) as fault:
            desk.remove(one)
            self._outcomes.settled(desk, one)
            self._outcomes.fail(job, f"cannot be started: {fault}", now)
            return
        job.tries += 1
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
            self._engine.start(job, start.at)
            job.tries = 1 if start.native else 0
            one = Live(job, start.tag, start.native or "")
            moved = start.backend != job.work.backend
            one.unwanted = moved or not take_up or not is_of(start.tag, job.digest)
            desk.add(one)

    def end_strangers(self, desk: Desk) -> None:
        """End starts of an earlier run that are no job's of this one. Raises PoolUnreachable."""
        for at, start in list(self._strangers):
            if at is desk:
                native = start.native or desk.backend.find([start.tag]).get(start.tag)
                if native:
                    desk.backend.kill([native])
                self._store.settled([start.tag])
                self._strangers.remove((at, start))

    def has_strangers(self, desk: Desk) -> bool:
        """Whether there are such that have not been ended yet."""
        return any(at is desk for at, _ in self._strangers)

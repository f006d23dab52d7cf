"""The run of each job in its backend: handed over once, found again after a crash, taken in when it ends or vanishes.

What is about to be started in a batch system is written down before, by its tag.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import RUNNING, VANISHED, JobState
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import READY, LaunchJob, MovingAverage, digest_of
from drainwise_launch.run.backend_state import BackendState, Live
from drainwise_launch.run.starts import Starts, is_of, tag_of
from drainwise_launch.run.store import EndedJob, OpenStart, Store

_TRIES = 2
"""The number of times a job may vanish: the first time it is started once more."""
_LONGEST = 1.0
_TOGETHER = 10
"""Starts that are written down at once."""
_UNTIL_IT_RUNS = inf


class JobRuns:
    """Tells the engine, keeps results in the store, says what went wrong. `state`: begins every tag."""

    def __init__(self, engine: Engine, store: Store, starts: Starts, state: str, say: Callable[[str], None]) -> None:
        self._engine, self._store, self._starts, self._state, self._say = engine, store, starts, state, say
        self._learned: dict[str, MovingAverage] = {}
        self.stopped = False
        """Set when nothing is to be started any more."""
        self.ending = False
        """Set while this process ends its jobs: they have not failed, and are to be run again."""

    def fill(self, name: str, there: BackendState, now: float) -> None:
        """Hand over what may start in the backend that jobs call `name`, for a second at most: others wait, too."""
        ends = time.monotonic() + _LONGEST
        while not self.stopped and there.takes(now):
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
        while chosen and not self.stopped:
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
                self.not_started(there, one)

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
        one.priority = self._engine.priority(job)
        try:
            native = there.backend.start(self._starts.start_of(job, one.tag, one.priority))
        except (ActionRefused, OSError) as fault:
            there.remove(one)
            self._settled(there, one)
            self._fail(job, f"cannot be started: {fault}", now)
            return
        there.took(one, native)
        if there.queues:
            self._store.starting([OpenStart(one.tag, job.name, job.work.backend, one.native, now)])

    def not_started(self, there: BackendState, one: Live) -> None:
        """Let a job that was never started wait again."""
        there.remove(one)
        self._settled(there, one)
        self._engine.again(one.job)

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
                there.orphaned.append(start)
                continue
            self._engine.start(job, _UNTIL_IT_RUNS)
            one = Live(job, start.tag, start.native or "")
            moved = start.backend != job.work.backend
            one.unwanted = moved or not take_up or not is_of(start.tag, job.digest)
            there.add(one)

    def end_orphaned(self, there: BackendState) -> None:
        """End starts of an earlier run that are no job's of this one. Raises PoolUnreachable."""
        if not there.orphaned:
            return
        doubtful = [start.tag for start in there.orphaned if not start.native]
        found = there.backend.find(doubtful) if doubtful else {}
        alive = [native for start in there.orphaned for native in (start.native or found.get(start.tag),) if native]
        if alive:
            there.backend.kill(alive)
        self._store.settled(start.tag for start in there.orphaned)
        there.orphaned.clear()

    def take(self, there: BackendState, one: Live, state: JobState, now: float) -> None:
        """Take the state of a start from its backend: it runs, is done or has vanished; `now`: UNIX s."""
        job = one.job
        if state.state == RUNNING:
            self._engine.runs(job, now - (state.wall or 0.0))
            return
        there.ended(one)
        self._settled(there, one)
        wall = state.wall
        if wall is None and job.started <= now:  # else nobody saw it run
            wall = now - job.started
        if one.unwanted:
            self._engine.again(job)
        elif state.state == VANISHED:
            self._vanished(there, job, state.why, now)
        elif state.code == 0:
            job.code = 0
            self._engine.succeeded(job, wall)
            if job.work.rule and wall is not None:
                self._learned[job.work.rule] = self._engine.rules[job.work.rule]
            self._record(job, now, state.cpu)
        elif self.ending:
            self._engine.again(job)
        else:
            job.code = state.code
            self._fail(job, f"ended with {state.code}" + (f": {state.why}" if state.why else ""), now, wall, state.cpu)

    def _vanished(self, there: BackendState, job: LaunchJob, why: str, now: float) -> None:
        said = f"vanished from {there.backend.name}" + (f": {why}" if why else "")
        if self.ending:
            self._engine.again(job)
            return
        job.vanished += 1
        if job.vanished < _TRIES:
            self._engine.again(job)
            self._say(f"job {job.name}: {said}; it is started once more")
        else:
            self._fail(job, f"{said}, the second time", now)

    def _fail(self, job: LaunchJob, why: str, now: float, wall: float | None = None, cpu: float | None = None) -> None:
        """Note that the job has failed for good."""
        why = why.encode("utf-8", "backslashreplace").decode()  # it may name a file of any bytes
        skipped = self._engine.failed(job, why, wall)
        behind = f"; {len(skipped)} after it are not run" if skipped else ""
        self._say(f"job {job.name}: {why}{behind} ({self._starts.output_of(job)})")
        self._record(job, now, cpu)

    def _settled(self, there: BackendState, one: Live) -> None:
        """Forget a start that need not be found again."""
        if there.queues:
            self._store.settled([one.tag])

    def _record(self, job: LaunchJob, now: float, cpu: float | None) -> None:
        row = (job.name, job.digest, job.state, job.code, now, job.seconds, cpu, job.last_success, job.why)
        self._store.ended([EndedJob(*row)])

    def keep(self) -> None:
        """Keep on disk what was written since the last time, with the averages of the rules that have learned."""
        if self._learned:
            self._store.keep_rules(self._learned.items())
            self._learned.clear()
        self._store.commit()

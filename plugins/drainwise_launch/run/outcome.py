"""Handle a job that was started: it runs, ends or vanishes."""

from __future__ import annotations

from collections.abc import Callable

from drainwise_launch.backend import RUNNING, VANISHED, JobState
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import LaunchJob, MovingAverage
from drainwise_launch.run.backend_state import BackendState, Live
from drainwise_launch.run.store import EndedJob, Store

_TRIES = 2
"""The number of times a job may vanish: the first time it is started once more."""


class Outcomes:
    """Tells the engine, keeps results in the store, says what went wrong. output_of: the file of what a job printed."""

    def __init__(
        self, engine: Engine, store: Store, output_of: Callable[[LaunchJob], str], say: Callable[[str], None]
    ) -> None:
        self._engine, self._store, self._output_of, self._say = engine, store, output_of, say
        self._learned: dict[str, MovingAverage] = {}
        self.stopping = False
        """Set while this process ends its jobs: they have not failed, and are to be run again."""

    def take(self, there: BackendState, one: Live, state: JobState, now: float) -> None:
        """Take the state of a start from its backend: it runs, is done or has vanished; `now`: UNIX s."""
        job = one.job
        if state.state == RUNNING:
            self._engine.runs(job, now - (state.wall or 0.0))
            return
        there.ended(one)
        self.settled(there, one)
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
        elif self.stopping:
            self._engine.again(job)
        else:
            job.code = state.code
            self.fail(job, f"ended with {state.code}" + (f": {state.why}" if state.why else ""), now, wall, state.cpu)

    def _vanished(self, there: BackendState, job: LaunchJob, why: str, now: float) -> None:
        said = f"vanished from {there.backend.name}" + (f": {why}" if why else "")
        if self.stopping:
            self._engine.again(job)
            return
        job.vanished += 1
        if job.vanished < _TRIES:
            self._engine.again(job)
            self._say(f"job {job.name}: {said}; it is started once more")
        else:
            self.fail(job, f"{said}, the second time", now)

    def fail(self, job: LaunchJob, why: str, now: float, wall: float | None = None, cpu: float | None = None) -> None:
        """Note that the job has failed for good."""
        why = why.encode("utf-8", "backslashreplace").decode()  # it may name a file of any bytes
        skipped = self._engine.failed(job, why, wall)
        behind = f"; {len(skipped)} after it are not run" if skipped else ""
        self._say(f"job {job.name}: {why}{behind} ({self._output_of(job)})")
        self._record(job, now, cpu)

    def not_started(self, there: BackendState, one: Live) -> None:
        """Let a job that was never started wait again."""
        there.remove(one)
        self.settled(there, one)
        self._engine.again(one.job)

    def settled(self, there: BackendState, one: Live) -> None:
        """Forget a start that need not be found again."""
        if there.queues:
            self._store.settled([one.tag])

    def _record(self, job: LaunchJob, now: float, cpu: float | None) -> None:
        row = (job.name, job.digest, job.state, job.code, now, job.seconds, cpu, job.last_success, job.why)
        self._store.ended([EndedJob(*row)])

    def keep(self) -> None:
        """Keep on disk what was written since the last time."""
        self._store.commit()

    def keep_rules(self) -> None:
        """Write down the averages of the rules that have learned since the last time."""
        if self._learned:
            self._store.keep_rules(self._learned.items())
            self._learned.clear()

"""This machine as a backend: a pool of what there is, never overshot, and jobs held to what they asked for.

Enforced: CPUs (by affinity, each job on its own), memory (what each process of a job may allocate and, where control
groups are delegated, what all of them use), scratch (a TMPDIR of the job's own, looked at every few seconds), the wall
limit, and that nothing of a job outlives it: its process group goes with it, what has left that goes within seconds.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from drainwise.common.bounded_command import keep_exit_codes
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable, UsageError
from drainwise.processes.control_groups import hierarchy_here
from drainwise.processes.supervised import Supervisor
from drainwise_launch import backend
from drainwise_launch.backend import RUNNING, UNSEEN, JobState, LaunchPlace, Start
from drainwise_launch.choice.resources import CPU, Resources
from drainwise_launch.this_machine.memory_groups import CONTROLLER, MemoryGroup, MemoryGroups
from drainwise_launch.this_machine.process import (
    TAG,
    LocalProcess,
    command_of,
    complaint,
    end_escaped,
    opened_output,
    program_of,
)
from drainwise_launch.this_machine.scratch import ScratchSpace
from drainwise_launch.this_machine.slots import enough, misfit, pool_of

NAME = "local"
_BLIND = 0.01
"""Seconds between two looks while the backend is closed."""
_SWEEP, _SWEEP_SHARE = 2.0, 50
"""Seconds between two looks for what has left its job; they take a fiftieth of the time at most."""
_SWEEPS = 2
"""Looks after a job has ended, the last one some time later: what it had just started may hide from the first."""
_PATIENCE = 5.0
"""Seconds in which what was killed has to go when the backend is closed."""
_LOST = "the process that had started it was killed, and it was ended"


class LocalBackend:
    """`pool`: what there is, by name. scratch: the directory of the jobs' TMPDIRs, this launch's alone.

    state: what all tags begin with; by it what fled from its job is found. record: see `Supervisor`. groups: where the
    memory of a whole job is limited. Raises OSError: no scratch can be made.
    """

    name = NAME
    max_queued = None

    def __init__(
        self,
        pool: Mapping[str, int],
        scratch: str,
        state: str = "",
        record: str = "",
        groups: MemoryGroups | None = None,
    ) -> None:
        keep_exit_codes()
        self._record, self._groups = record, groups
        self._supervisor: Supervisor | None = None
        self.pool = dict(pool)
        self._free = dict(pool)
        self._scratch, self._state_name = ScratchSpace(scratch), state
        self._kept: list[ScratchSpace | MemoryGroups] = [self._scratch, *([groups] if groups else [])]
        usable = sorted(os.sched_getaffinity(0))
        # More CPUs than there are can only be counted.
        self._cpus = usable if self.pool[CPU] <= len(usable) else []
        self._running: dict[str, LocalProcess] = {}
        self._poll = select.poll()
        self._encoded = {text: os.fsencode(text) for pair in os.environ.items() for text in pair}
        self._sweeps = 0
        self._sweep_at = time.monotonic() + _SWEEP

    def fits(self, resources: Resources) -> str:
        """See `Backend`."""
        return misfit(resources, self.pool)

    def free(self) -> Mapping[str, int]:
        """See `Backend`."""
        return self._free

    def start(self, job: Start) -> str:
        """See `Backend`. Its id is its tag."""
        never = misfit(job.resources, self.pool)
        if never:
            raise ActionRefused(f"{job.name}: {never}")
        if not enough(job.resources, self._free):
            raise PoolFull(f"{job.name}: what it needs is not free now")
        scratch, group, mem = "", None, job.resources.mem
        cpus = self._cpus[: job.resources.cpu]
        try:
            program = program_of(job)
            scratch = self._scratch.make()
            group = self._groups.make(job.tag, mem) if self._groups and mem else None
            argv = command_of(job, program, group)
            began = time.monotonic()
            supervisor, pid = self._spawn(job, argv, self._environment_of(job, scratch), cpus)
        except (OSError, ValueError, ActionRefused) as fault:
            self._give_back(scratch, group)
            raise complaint(job, fault) from None
        del self._cpus[: job.resources.cpu]
        self._reserve(job.resources, -1)
        self._running[job.tag] = LocalProcess(job, supervisor, pid, began, cpus, scratch, group)
        return job.tag

    def _give_back(self, scratch: str, group: MemoryGroup | None) -> None:
        """Take away what a job had for itself."""
        if scratch:
            self._scratch.remove(scratch)
        if self._groups and group:
            self._groups.remove(group)

    def _environment_of(self, job: Start, scratch: str) -> dict[bytes, bytes]:
        """Return the job's variables as bytes: what most jobs share has been encoded before, which is most of it."""
        variables = {**job.environment, TAG: job.tag, "TMPDIR": scratch}
        known = self._encoded
        return {
            known.get(name) or os.fsencode(name): known.get(value) or os.fsencode(value)
            for name, value in variables.items()
        }

    def _spawn(
        self, job: Start, argv: tuple[str, ...], environment: Mapping[bytes, bytes], cpus: list[int]
    ) -> tuple[Supervisor, int]:
        """Start the process, by a supervisor that is there or a new one."""
        output = opened_output(job.stdout)
        try:
            if self._supervisor is None:
                self._supervisor = Supervisor(self._record)
                self._poll.register(self._supervisor, select.POLLIN)
            return self._supervisor, self._supervisor.start(job.name, job.tag, argv, job.cwd, environment, output, cpus)
        except ConnectionError:
            self._dismiss()
            raise
        finally:
            os.close(output)

    def _dismiss(self) -> None:
        if self._supervisor is not None:
            self._poll.unregister(self._supervisor)
            self._supervisor.dismiss()
            self._supervisor = None

    def _reserve(self, resources: Resources, sign: int) -> None:
        for name, amount in resources.amounts().items():
            if amount:
                self._free[name] += sign * amount

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`. What an earlier launcher started here was ended when this one began."""
        return {tag: tag for tag in tags if tag in self._running}

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """See `Backend`."""
        now = time.monotonic()
        states = {each: self._state(each, now) for each in ids}
        for each in self._kept:
            each.tidy()
        if self._sweeps and now >= self._sweep_at:
            self._sweep(now)
        return states

    def _state(self, tag: str, now: float) -> JobState:
        running = self._running.get(tag)
        if running is None:
            return JobState(backend.VANISHED, why="its launcher was killed, and it was ended")
        try:
            state = running.end_state()
            if state is None:
                running.enforce(now)
                return JobState(RUNNING, wall=now - running.began)
        except ConnectionError:
            self._lost(running.supervisor)
            state = JobState(backend.VANISHED, why=_LOST)
        self._give_back(running.scratch, running.group)
        self._cpus += running.cpus
        self._reserve(running.job.resources, 1)
        del self._running[tag]
        self._sweeps = _SWEEPS if self._state_name else 0
        return state

    def _lost(self, supervisor: Supervisor) -> None:
        """End what a supervisor had started that is gone."""
        if self._supervisor is supervisor:
            self._dismiss()
        if self._state_name:
            others = {tag for tag, running in self._running.items() if running.supervisor is not supervisor}
            end_escaped(self._state_name, others)

    def _sweep(self, now: float) -> None:
        """End what has left a job that is over: it uses what others have reserved."""
        end_escaped(self._state_name, self._running)
        self._sweeps -= 1
        self._sweep_at = now + max(_SWEEP, _SWEEP_SHARE * (time.monotonic() - now))

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`. SIGTERM to its process group, SIGKILL later, when it is polled."""
        now = time.monotonic()
        for each in ids:
            if each in self._running:
                with suppress(ConnectionError):
                    self._running[each].end(now, "killed")

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Nothing waits here."""

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        if self._supervisor is None or not self._supervisor.has_news:
            self._poll.poll(max(0.0, seconds) * 1000)

    def close(self) -> None:
        """End what runs still, at once: nobody would see how it ends. What the kernel does not let go of stays."""
        end = time.monotonic() + _PATIENCE
        for running in self._running.values():
            with suppress(ConnectionError):
                running.kill()
        while self._running and time.monotonic() < end:
            self.wait(_BLIND)
            self.poll(list(self._running))
        self._dismiss()
        if self._state_name:
            end_escaped(self._state_name)
        for each in self._kept:
            each.close()


def open_backend(settings: Mapping[str, object], options: str, place: LaunchPlace) -> LocalBackend:
    """Open the local backend, as every room's `open_backend`; end what an earlier launcher of this place left.

    Raises UsageError for wrong settings, PoolUnreachable where no scratch can be made.
    """
    if options.strip():
        raise UsageError("--backend-options: the local backend has none")
    keep_exit_codes()
    if place.state:
        end_escaped(place.state)
    scratch = os.path.join(place.directory, "scratch")
    try:
        ScratchSpace(scratch).close()  # what an earlier launch used is free before that is counted
        pool = pool_of(settings, scratch, place.file)
        groups = None
        if place.state:
            groups = MemoryGroups(place.directory, place.state, place.say, hierarchy_here(CONTROLLER))
        return LocalBackend(pool, scratch, place.state, os.path.join(place.directory, UNSEEN), groups)
    except OSError as fault:
        raise PoolUnreachable(f"{fault.filename}: {fault.strerror}") from None

"""The runs of a validation as jobs of a batch system: started, found again by their names, looked at, ended."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drainwise_launch.backend import DONE, RUNNING, VANISHED, Backend, Start
from drainwise_launch.choice.resources import CPU, MEM, Resources, parse_resources, wrong
from drainwise_tasks.validate.machine import filled
from drainwise_tasks.validate.measurement import mebibytes
from drainwise_tasks.validate.start import (
    LEEWAY,
    NODE_PYTHON,
    REPORT,
    RUN,
    RUNNER,
    RUNNER_WORDS,
    Run,
    last_line,
    prepare,
    report_in,
)

TAGS = "v-"
"""The beginning of the tags of all runs."""
NAME_VARIABLE = "DRAINWISE_VALIDATION_RUN"
"""The variable of a job that holds the name of its run."""

_LATE = 60.0  # seconds after which a report is not to come any more: file systems tell later than batch systems
_OUT, _ERR = "out", "err"
_SCRIPT = f'exec "$0" "$@" 2>{_ERR}'
_OF_A_LOGIN = ("HOME", "USER", "LOGNAME", "PATH")


@dataclass(frozen=True)
class RunState:
    """The state of a run: WAITING, RUNNING, DONE or VANISHED. `note`: why it waits or ended. code: its exit code.

    report: the runner's, None when there is none. said: the end of what the program wrote on its stderr.
    """

    state: str
    code: int = 0
    note: str = ""
    report: bytes | None = None
    said: str = ""


class RunJobs:
    """Jobs of a backend, which is opened when it is needed first. Every method raises PoolError when it is silent.

    directory: what lies below it is ours, a directory for each run; the nodes have it under the same path, or the
    batch system carries files. resources: what each run asks for beside cores and memory; {cores} and {memory} (MB) in
    its texts are filled in. whose: where they stand, for complaints. python: what starts the runner. late: seconds, see
    _LATE.
    """

    def __init__(
        self,
        opener: Callable[[], Backend],
        directory: str,
        resources: Mapping[str, object],
        whose: str,
        python: str = NODE_PYTHON,
        late: float = _LATE,
    ) -> None:
        for name in (CPU, MEM):
            if name in resources:
                raise wrong(whose, name, resources[name], "nothing: it is what a run has")
        self._opener, self._directory, self._late = opener, os.path.abspath(directory), late
        self._resources, self._whose = dict(resources), whose
        self._argv = ("/bin/sh", "-c", _SCRIPT, python, *RUNNER_WORDS)
        self._opened: Backend | None = None
        self._own: set[str] = set()
        """Handles that are known to be a run's."""
        self._ended: dict[str, float] = {}
        """The times (monotonic clock) since which the reports of runs that ended well are missing."""

    def refusal(self, run: Run) -> str:
        """Say why the batch system could never run this; empty when it could, as far as it says before the start."""
        return self._backend.fits(self._asked(run))

    def find(self, name: str) -> str | None:
        """Return the handle of the run that was started under this name, ended or not; None: there is none.

        Whoever was killed between a start and writing it down finds it so, and nothing is started twice.
        """
        tag = tag_of(name)
        handle = self._backend.find([tag]).get(tag)
        if handle is not None:
            self._own.add(handle)
        return handle

    def start(self, run: Run) -> str:
        """Start a run; return the handle for `poll` and `kill`.

        Raises ActionRefused or UsageError when it cannot be, PoolFull when a limit on jobs is reached.
        """
        work = self._work(run.name)
        prepare(work, run)
        environment = {name: os.environ[name] for name in _OF_A_LOGIN if name in os.environ}
        job = Start(
            name=run.name,
            tag=tag_of(run.name),
            argv=self._argv,
            cwd=work,
            resources=self._asked(run),
            stdout=f"{work}/{_OUT}",
            environment={**environment, NAME_VARIABLE: run.name},
            priority=time.time(),
            wall_limit=run.wall_limit + LEEWAY,
            inputs=(RUNNER, RUN, REPORT),
            outputs=(REPORT, _ERR),
        )
        handle = self._backend.start(job)
        self._own.add(handle)
        return handle

    def poll(self, handle: str, name: str) -> RunState:
        """Say how the run fares. A handle that belongs to another run by now has VANISHED."""
        own = handle in self._own or self.find(name) == handle
        state = self._backend.poll([handle]).get(handle)
        if state is None:  # it has just ended, and nobody knows how yet
            return RunState(RUNNING)
        if state.state == VANISHED:
            return RunState(VANISHED, note=state.why)
        # What had just ended when it was looked for is found by now.
        if not own and self.find(name) != handle:
            return RunState(VANISHED, note=f"job {handle} is another one by now")
        if state.state != DONE:
            return RunState(state.state, note=state.why)
        work = self._work(name)
        report = report_in(work)
        if state.code == 0 and report is None and not self._is_late(handle):
            return RunState(RUNNING, note="it has ended, and its report is not to be seen yet")
        said = last_line(f"{work}/{_ERR}") or last_line(f"{work}/{_OUT}")
        if state.why:
            return RunState(DONE, state.code, f"ended by {self._backend.name}: {state.why}", report, said)
        if state.code and not os.path.exists(f"{work}/{_ERR}"):
            said = said or f"it has written nothing; do the nodes have {work}?"
        return RunState(DONE, state.code, report=report, said=said)

    def kill(self, handle: str, name: str) -> None:
        """End the run, if it has not ended."""
        found = handle if handle in self._own else self.find(name)
        if found is not None:
            self._backend.kill([found])

    def wait(self, seconds: float) -> None:
        """Sleep until a run may have ended, at most so long."""
        self._backend.wait(seconds)

    def close(self) -> None:
        """Let go of the batch system, if it was opened."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _backend(self) -> Backend:
        if self._opened is None:
            self._opened = self._opener()
        return self._opened

    def _asked(self, run: Run) -> Resources:
        """Return what a run asks for. Raises UsageError for resources that are none."""
        figures = {"cores": run.cores, "memory": run.memory}
        others = {
            name: filled(value, figures) if isinstance(value, str) else value for name, value in self._resources.items()
        }
        return parse_resources({**others, CPU: run.cores, MEM: mebibytes(run.memory)}, self._whose)

    def _is_late(self, handle: str) -> bool:
        now = time.monotonic()
        return now - self._ended.setdefault(handle, now) >= self._late

    def _work(self, name: str) -> str:
        return f"{self._directory}/{name}"


def tag_of(name: str) -> str:
    """Return the launcher's tag for the run of this name, by which it is found again."""
    return TAGS + hashlib.sha256(name.encode()).hexdigest()[:16]

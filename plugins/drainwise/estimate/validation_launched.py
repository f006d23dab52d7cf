"""Any backend of the launcher's as the `Backend` of a validation: a run is a job whose directory the nodes see, too."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence

from drainwise.estimate.validation_backend import ENDED, RUNNING, VANISHED, Run, RunState
from drainwise.estimate.validation_left import report_in, said_in
from drainwise.estimate.validation_machine import filled
from drainwise.estimate.validation_memory import mebibytes
from drainwise.estimate.validation_start import LEEWAY, NODE_PYTHON, RUNNER_WORDS, prepare
from drainwise.launch import backend as launched
from drainwise.launch.resources import CPU, MEM, Resources, parse_resources, wrong

TAGS = "v-"
"""What the tags of all runs begin with."""

_LATE = 60.0  # seconds after which a report is not to come any more: file systems tell later than batch systems
_OUT, _ERR = "out", "err"
_COMMAND = ("/bin/sh", "-c", f'exec "$0" "$@" 2>{_ERR}', NODE_PYTHON, *RUNNER_WORDS)
_OF_A_LOGIN = ("HOME", "USER", "LOGNAME", "PATH")


class LaunchedValidationBackend:
    """Runs as jobs of a launcher's backend, which is opened when it is needed first.

    directory: what lies below it is ours, a directory for each run; the nodes have it under the same path.
    resources: what each run asks for beside cores and memory; {cores} and {memory} (MB) in its texts are filled in.
    whose: where they stand, for complaints. late: seconds, see _LATE.
    """

    first_pause = 1.0

    def __init__(
        self,
        opener: Callable[[], launched.Backend],
        directory: str,
        resources: Mapping[str, object],
        whose: str,
        late: float = _LATE,
    ) -> None:
        for name in (CPU, MEM):
            if name in resources:
                raise wrong(whose, name, resources[name], "nothing: it is what a run has")
        self._opener, self._directory, self._late = opener, os.path.abspath(directory), late
        self._resources, self._whose = dict(resources), whose
        self._opened: launched.Backend | None = None
        self._own: set[str] = set()
        """Handles that are known to be a run's."""
        self._ended: dict[str, float] = {}
        """Since when (monotonic clock) the report of a run that ended well is missing."""

    def doubt(self, counts: Sequence[int]) -> str:  # noqa: ARG002 - only the batch system knows
        """See `Backend`."""
        return ""

    def refusal(self, run: Run) -> str:
        """See `Backend`: as far as the launcher knows. How large the nodes are, the batch system says at the start."""
        return self._backend.fits(self._asked(run))

    def find(self, name: str) -> str | None:
        """See `Backend`."""
        tag = tag_of(name)
        handle = self._backend.find([tag]).get(tag)
        if handle is not None:
            self._own.add(handle)
        return handle

    def start(self, run: Run) -> str:
        """See `Backend`."""
        work = self._work(run.name)
        prepare(work, run)
        job = launched.Start(
            name=run.name,
            tag=tag_of(run.name),
            argv=_COMMAND,
            cwd=work,
            resources=self._asked(run),
            stdout=f"{work}/{_OUT}",
            environment={name: os.environ[name] for name in _OF_A_LOGIN if name in os.environ},
            priority=time.time(),
            wall_limit=run.wall_limit + LEEWAY,
        )
        handle = self._backend.start(job)
        self._own.add(handle)
        return handle

    def poll(self, handle: str, name: str) -> RunState:
        """See `Backend`."""
        own = handle in self._own or self.find(name) == handle
        state = self._backend.poll([handle]).get(handle)
        if state is None:  # it has just ended, and nobody knows how yet
            return RunState(RUNNING)
        if state.state == launched.VANISHED:
            return RunState(VANISHED, note=state.why)
        # What had just ended when it was looked for is found by now.
        if not own and self.find(name) != handle:
            return RunState(VANISHED, note=f"job {handle} is another one by now")
        if state.state != launched.DONE:
            return RunState(state.state, note=state.why)
        work = self._work(name)
        report = report_in(work)
        if state.code == 0 and report is None and not self._is_late(handle):
            return RunState(RUNNING, note="it has ended, and its report is not to be seen yet")
        said = said_in(f"{work}/{_ERR}") or said_in(f"{work}/{_OUT}")
        if state.why:
            return RunState(ENDED, state.code, f"ended by {self._backend.name}: {state.why}", report, said)
        if state.code and not os.path.exists(f"{work}/{_ERR}"):
            said = said or f"it has written nothing; do the nodes have {work}?"
        return RunState(ENDED, state.code, report=report, said=said)

    def kill(self, handle: str, name: str) -> None:
        """See `Backend`."""
        found = handle if handle in self._own else self.find(name)
        if found is not None:
            self._backend.kill([found])

    @property
    def _backend(self) -> launched.Backend:
        if self._opened is None:
            self._opened = self._opener()
        return self._opened

    def _asked(self, run: Run) -> Resources:
        """What a run asks for. Raises UsageError for resources that are none."""
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
    """The launcher's tag for the run of this name, by which it is found again."""
    return TAGS + hashlib.sha256(name.encode()).hexdigest()[:16]

"""What a validation needs of a batch system: start a run, find it again, ask how it fares, end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

WAITING, RUNNING, ENDED, VANISHED = "waiting", "running", "ended", "vanished"
"""The states of a run. VANISHED: the batch system does not know what became of it, or lost it."""

REPORT = "validation.json"
"""The file in which the runner reports, in the directory where the batch system starts it."""


@dataclass(frozen=True)
class Run:
    """One run to start: `name` is its own and nobody else's, also after a crash. memory: MB. wall_limit: seconds.

    command, environment: the program's own; a batch system starts the runner around it, see `validation_start`.
    events: how many the program is told to process.
    """

    name: str
    cores: int
    memory: int
    events: int
    wall_limit: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunState:
    """How a run fares. `note`: why it waits or ended. code: its exit code, None where a signal ended it.

    report: what the runner wrote, None when there is nothing. said: the end of what the program wrote on its stderr.
    """

    state: str
    code: int | None = None
    note: str = ""
    report: bytes | None = None
    said: str = ""


class Backend(Protocol):
    """A batch system, as far as a validation uses it. Every method raises PoolError when it does not answer."""

    @property
    def first_pause(self) -> float:
        """Seconds between the first two looks at a run; later ones come less often."""

    def doubt(self, counts: Sequence[int]) -> str:
        """Why CPU efficiencies measured on so many cores at the same time say little, in words; empty where they do."""

    def refusal(self, run: Run) -> str:
        """Why it could never run this, in words; empty when it could."""

    def find(self, name: str) -> str | None:
        """The handle of the run that was started under this name, whether it has ended or not; None: there is none.

        Whoever was killed between a start and writing it down finds it so, and nothing is started twice.
        """

    def start(self, run: Run) -> str:
        """Start a run; the handle for `poll` and `kill`.

        Raises ActionRefused or UsageError when it cannot be, PoolFull when a limit on jobs is reached.
        """

    def poll(self, handle: str, name: str) -> RunState:
        """How the run fares. A handle that belongs to another run by now has VANISHED."""

    def kill(self, handle: str, name: str) -> None:
        """End the run, if it has not ended."""

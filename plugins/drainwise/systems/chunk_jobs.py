"""The protocol by which a leader, a pilot in a batch job, asks for further jobs on its own node: its chunk jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ChunkJob:
    """One chunk job to submit.

    cores: its own; share: of the leader's memory, 1.0 for a chunk job with as many cores as the leader. argv: the
    program, by absolute path, and its arguments. name: of the job and of its directory. seconds: how long it may run.
    options: further ones in the batch system's own words, which take the place of those that the leader's job gives.
    """

    cores: int
    share: float
    argv: tuple[str, ...]
    name: str
    seconds: int
    options: Sequence[str] = ()


class ChunkJobs(Protocol):
    """The batch system that runs the leader's job, as the leader reaches it from inside of that job."""

    @property
    def node(self) -> str:
        """The leader's node, by the batch system's name."""

    def submit(self, job: ChunkJob) -> str:
        """Submit a job that can start on the leader's node alone, as the leader's user, and return its id.

        Raises PoolUnreachable for no answer, ActionRefused when it will not have it.
        """

    def remove_waiting(self, ids: Sequence[str]) -> None:
        """Remove those of these jobs that have not started. Raises PoolUnreachable, ActionRefused."""
